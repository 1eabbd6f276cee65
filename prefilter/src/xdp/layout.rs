//! What this process and the program share, as `bpf/prefilter.c` has it. The program runs on this machine, and machines
//! that Linux runs it on here are little-endian.

use crate::abi::{MESSAGE_LENGTH, POST_ONLY, Slot, Verdict};
use crate::limits::{Caps, Control, SessionLimits, SymbolLimits};
use std::net::SocketAddrV4;
use types::{Price, SessionId, Side};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Whose datagrams are a session's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Where they come from.
    pub peer: SocketAddrV4,
    /// The tag of LTP that they carry.
    pub tag: u32,
    /// The session that orders in them must name.
    pub session: SessionId,
    /// Bytes behind the payload: 8 where both ends have a key, or 0.
    pub trailer: u16,
}

/// A verdict, and what it was given on.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Record {
    /// Its sequence is the low half of the message's number.
    pub verdict: Verdict,
    pub(super) flow: U32,
    /// Bytes of the message.
    pub length: U16,
    reserved: U16,
    /// The message, if it has 48 bytes; otherwise zeros.
    pub message: [u8; MESSAGE_LENGTH],
}

/// `struct flow`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct FlowValue {
    source: [u8; 4],
    local: [u8; 4],
    tag: U32,
    index: U32,
    window_mask: U32,
    session: U32,
    port: [u8; 2],
    trailer: U16,
}

/// Key of a flow: the local port, as the frame has it.
#[derive(IntoBytes, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Key {
    port: [u8; 2],
    zero: [u8; 2],
}

/// An entry of the table: `struct head`, `struct session` or `struct symbol`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Entry {
    words: [U32; 2],
    low: I64,
    high: I64,
}

/// `struct touch`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct TouchValue {
    bid: I64,
    ask: I64,
}

/// `struct control`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct ControlValue {
    enable: U32,
    kill: U32,
    pub(super) closes_at: U64,
}

/// `struct counters`.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct CountersValue {
    pub(super) received: U64,
    pub(super) passed: U64,
    pub(super) refused: U64,
    pub(super) reasons: [U64; 9],
    pub(super) strangers: U64,
    pub(super) repeats: U64,
    pub(super) lost: U64,
}

/// An order in a frame of its own, behind what the program is told of it.
#[derive(IntoBytes, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Trial {
    now: U64,
    /// Bit 0: post-only. Bit 1: its number counts on with each run.
    flags: U64,
    headers: [u8; HEADERS],
    message: [u8; MESSAGE_LENGTH],
}

const _: () = assert!(size_of::<Record>() == 72);
const _: () = assert!(size_of::<FlowValue>() == 28);
const _: () = assert!(size_of::<Key>() == 4);
const _: () = assert!(size_of::<Entry>() == 24);
const _: () = assert!(size_of::<TouchValue>() == 16);
const _: () = assert!(size_of::<ControlValue>() == 16);
const _: () = assert!(size_of::<CountersValue>() == 120);
const _: () = assert!(size_of::<Trial>() == Trial::METADATA + HEADERS + MESSAGE_LENGTH);

impl FlowValue {
    pub(super) fn of(local: SocketAddrV4, flow: Option<&Flow>, index: u32, window_mask: u32) -> Self {
        let mut value = Self::new_zeroed();
        value.local = local.ip().octets();
        value.index = index.into();
        value.window_mask = window_mask.into();
        if let Some(flow) = flow {
            value.source = flow.peer.ip().octets();
            value.port = flow.peer.port().to_be_bytes();
            value.tag = flow.tag.into();
            value.session = u32::from(flow.session.0).into();
            value.trailer = flow.trailer.into();
        }
        value
    }

    /// Of trials: nobody sends from or to port 0.
    pub(super) fn of_trial(index: u32, window_mask: u32) -> Self {
        let mut value = Self::new_zeroed();
        value.index = index.into();
        value.window_mask = window_mask.into();
        value.tag = TRIAL_TAG.into();
        value.session = ANY_SESSION.into();
        value
    }
}

impl Key {
    pub(super) fn of(port: u16) -> Self {
        Self {
            port: port.to_be_bytes(),
            zero: [0; 2],
        }
    }
}

impl Entry {
    pub(super) fn head(generation: u32, caps: Caps) -> Self {
        Self {
            words: [generation.into(), caps.sessions.into()],
            low: i64::from(caps.symbols).into(),
            high: 0.into(),
        }
    }

    pub(super) fn session(limits: Option<SessionLimits>) -> Self {
        let (interval, ahead) = limits.map_or((0, 0), |limits| (limits.interval_ns, limits.ahead_ns));
        Self {
            words: [interval.into(), 0.into()],
            low: ahead.cast_signed().into(),
            high: 0.into(),
        }
    }

    pub(super) fn symbol(limits: Option<SymbolLimits>) -> Self {
        let Some(limits) = limits else {
            return Self::new_zeroed();
        };
        Self {
            words: [limits.max_quantity.into(), u32::from(limits.route).into()],
            low: limits.lowest.0.into(),
            high: limits.highest.0.into(),
        }
    }

    /// Of a head.
    pub(super) fn generation(&self) -> u32 {
        self.words[0].get()
    }
}

impl TouchValue {
    /// Neither side has a price.
    pub(super) const NONE: Self = Self {
        bid: I64::new(i64::MIN),
        ask: I64::new(i64::MAX),
    };

    pub(super) fn set(&mut self, side: Side, price: Price) {
        match side {
            Side::Buy => self.bid = price.0.into(),
            Side::Sell => {
                self.ask = if price.is_null() {
                    Self::NONE.ask
                } else {
                    price.0.into()
                }
            }
        }
    }
}

impl ControlValue {
    pub(super) fn of(control: Control, closes_at: u64) -> Self {
        Self {
            enable: u32::from(control.enable).into(),
            kill: u32::from(control.kill).into(),
            closes_at: closes_at.into(),
        }
    }
}

impl Trial {
    /// Bytes before the frame.
    pub(super) const METADATA: usize = 16;

    pub(super) fn of(slot: &Slot, counts_on: bool) -> Self {
        let length = slot.length.get().min(LENGTH_MAX);
        let mut headers = [0; HEADERS];
        // Ethernet and IPv4 without options, UDP, from nobody to nobody.
        headers[12..14].copy_from_slice(&[8, 0]);
        headers[14] = 0x45;
        headers[23] = 17;
        headers[38..40].copy_from_slice(&(24 + length).to_be_bytes());
        // LTP.
        headers[42..46].copy_from_slice(&TRIAL_TAG.to_le_bytes());
        headers[46..50].copy_from_slice(&slot.sequence.get().to_le_bytes());
        headers[54..56].copy_from_slice(&length.to_le_bytes());
        headers[56] = LTP_DATA;
        Self {
            now: slot.now,
            flags: (u64::from(slot.flags & POST_ONLY) | u64::from(counts_on) << 1).into(),
            headers,
            message: slot.message,
        }
    }
}

/// Before the order: Ethernet, IPv4, UDP, LTP.
const HEADERS: usize = 14 + 20 + 8 + 16;
const TRIAL_TAG: u32 = 1;
const ANY_SESSION: u32 = u32::MAX;
const LTP_DATA: u8 = 1;
/// Longest message that a trial's headers speak of, bytes.
const LENGTH_MAX: u16 = 1_024;
