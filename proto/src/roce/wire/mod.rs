//! The bytes of a RoCEv2 packet behind its UDP header, without the check at its end (see `icrc`).
//!
//! ```text
//! BTH 12 | RETH 16, AETH 4, immediate 4: as the opcode says | payload | pad to a multiple of 4 | ICRC 4
//! ```

mod opcode;
mod syndrome;

pub use opcode::{Class, Opcode, Shape};
pub use syndrome::{NakCode, Syndrome, rnr_delay};

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The UDP port of RoCEv2.
pub const UDP_PORT: u16 = 4791;

/// The longest packet without its ICRC for a payload of `mtu`, bytes.
#[must_use]
pub const fn packet_length_max(mtu: usize) -> usize {
    size_of::<Bth>() + size_of::<Reth>() + IMMEDIATE_LENGTH + mtu
}

/// The base transport header, which every packet begins with.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Bth {
    /// An [`Opcode`].
    pub opcode: u8,
    /// Bit 7: solicited event. Bit 6: migration state, 1 where there is no other path. Bits 5 and 4: pad bytes behind the
    /// payload. Bits 3 to 0: version, 0.
    pub flags: u8,
    /// The partition.
    pub partition: U16,
    /// Bit 7: FECN. Bit 6: BECN. Routers may change it, so the ICRC leaves it out.
    pub congestion: u8,
    /// The queue pair that it is for, 24 bits.
    pub destination: [u8; 3],
    /// Bit 7: an acknowledgement is asked for.
    pub acknowledge: u8,
    /// The packet sequence number, 24 bits.
    pub psn: [u8; 3],
}

/// The RDMA extended header: of the first packet of an RDMA WRITE, and of an RDMA READ request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Reth {
    /// Where in the responder's address space.
    pub address: U64,
    /// The key of the memory region.
    pub remote_key: U32,
    /// Of the whole message, bytes.
    pub length: U32,
}

/// The acknowledgement header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Aeth {
    /// A [`Syndrome`].
    pub syndrome: u8,
    /// How many messages the responder has executed, 24 bits.
    pub msn: [u8; 3],
}

const _: () = {
    assert!(size_of::<Bth>() == 12);
    assert!(size_of::<Reth>() == 16);
    assert!(size_of::<Aeth>() == 4);
};

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// What it is.
    pub opcode: Opcode,
    /// The queue pair that it is for.
    pub destination: u32,
    /// 24 bits of its sequence number.
    pub psn: u32,
    /// The sender wants an acknowledgement.
    pub ack_request: bool,
    /// The packet reports congestion on the way to its receiver's peer.
    pub is_backward_congestion: bool,
    /// As the opcode says.
    pub reth: Option<Reth>,
    /// As the opcode says.
    pub acknowledgement: Option<Acknowledgement>,
    /// As the opcode says.
    pub immediate: Option<u32>,
    /// Without its padding.
    pub payload: &'a [u8],
}

/// The content of an acknowledgement header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// The verdict.
    pub syndrome: Syndrome,
    /// How many messages the responder has executed, 24 bits.
    pub msn: u32,
}

/// Why bytes are no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Too short for its headers or its padding, or not a multiple of 4.
    Length,
    /// An opcode of no reliable connection.
    Opcode,
    /// Another version of the transport.
    Version,
    /// Another partition than the default one.
    Partition,
    /// A reserved syndrome.
    Syndrome,
}

/// Reads a packet without its ICRC.
///
/// # Errors
/// It is none.
pub fn decode(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (bth, mut rest) = Bth::ref_from_prefix(bytes).map_err(|_| Malformed::Length)?;
    let opcode = Opcode::from_u8(bth.opcode).ok_or(Malformed::Opcode)?;
    if bth.flags & VERSION_BITS != 0 {
        return Err(Malformed::Version);
    }
    if bth.partition.get() & !FULL_MEMBER != PARTITION & !FULL_MEMBER {
        return Err(Malformed::Partition);
    }
    let shape = opcode.shape();
    let reth = take::<Reth>(shape.has_reth(), &mut rest)?;
    let acknowledgement = match take::<Aeth>(shape.has_aeth(), &mut rest)? {
        None => None,
        Some(aeth) => Some(Acknowledgement {
            syndrome: Syndrome::from_u8(aeth.syndrome).ok_or(Malformed::Syndrome)?,
            msn: read_24(aeth.msn),
        }),
    };
    let immediate = take::<U32>(shape.has_immediate, &mut rest)?;
    let pad = usize::from(bth.flags >> PAD_SHIFT & 0x3);
    if rest.len() % 4 != 0 || rest.len() < pad {
        return Err(Malformed::Length);
    }
    Ok(Packet {
        opcode,
        destination: read_24(bth.destination),
        psn: read_24(bth.psn),
        ack_request: bth.acknowledge & ACK_REQUEST != 0,
        is_backward_congestion: bth.congestion & BECN != 0,
        reth: reth.copied(),
        acknowledgement,
        immediate: immediate.map(|immediate| immediate.get()),
        payload: &rest[..rest.len() - pad],
    })
}

/// Takes a header off the front, if there is to be one.
fn take<'a, T: FromBytes + Immutable + KnownLayout + Unaligned>(
    is_there: bool,
    rest: &mut &'a [u8],
) -> Result<Option<&'a T>, Malformed> {
    if !is_there {
        return Ok(None);
    }
    let (header, behind) = T::ref_from_prefix(rest).map_err(|_| Malformed::Length)?;
    *rest = behind;
    Ok(Some(header))
}

impl Packet<'_> {
    /// Writes it without its ICRC and gives its length.
    ///
    /// # Panics
    /// `out` is shorter than the packet, which is at most [`packet_length_max`].
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let pad = self.payload.len().wrapping_neg() % 4;
        let bth = Bth {
            opcode: self.opcode as u8,
            flags: MIGRATED | [0, 1, 2, 3][pad] << PAD_SHIFT,
            partition: U16::new(PARTITION),
            congestion: if self.is_backward_congestion { BECN } else { 0 },
            destination: write_24(self.destination),
            acknowledge: if self.ack_request { ACK_REQUEST } else { 0 },
            psn: write_24(self.psn),
        };
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(bth.as_bytes());
        if let Some(reth) = &self.reth {
            put(reth.as_bytes());
        }
        if let Some(Acknowledgement { syndrome, msn }) = self.acknowledgement {
            put(Aeth {
                syndrome: syndrome.to_u8(),
                msn: write_24(msn),
            }
            .as_bytes());
        }
        if let Some(immediate) = self.immediate {
            put(&immediate.to_be_bytes());
        }
        put(self.payload);
        put(&[0; 3][..pad]);
        at
    }
}

/// The queue pair that a packet is for, before anything else of it is looked at.
#[must_use]
pub fn destination(bytes: &[u8]) -> Option<u32> {
    Bth::ref_from_prefix(bytes)
        .ok()
        .map(|(bth, _)| read_24(bth.destination))
}

/// The low 24 bits, as the wire has them.
const fn write_24(number: u32) -> [u8; 3] {
    let [_, high, middle, low] = number.to_be_bytes();
    [high, middle, low]
}

const fn read_24([high, middle, low]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, high, middle, low])
}

/// Bytes of immediate data.
pub const IMMEDIATE_LENGTH: usize = 4;

/// Bytes of padding that a congestion notification has for payload.
pub(super) const CNP_PAYLOAD: [u8; 16] = [0; 16];

/// The default partition, as a full member of it.
const PARTITION: u16 = 0xffff;
const FULL_MEMBER: u16 = 0x8000;
const MIGRATED: u8 = 0x40;
const PAD_SHIFT: u32 = 4;
const VERSION_BITS: u8 = 0x0f;
const BECN: u8 = 0x40;
const ACK_REQUEST: u8 = 0x80;
