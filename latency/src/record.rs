//! What a component writes down about an order, and how it lies in a recording. `docs/recording.md` has the tables.
//!
//! Every record has the same length, little-endian, kind first, fields in the order of the structs here and without
//! padding between them; the rest is zeros. A record travels from the hot thread as the Rust value and becomes bytes on
//! the cold one.

use core::fmt;

use types::{
    ClientOrderId, ExecType, InstrumentId, OrderId, Price, Quantity, Reason, SessionId, Side, Timestamp, Trigger,
};

use crate::tap::Stamps;

/// Length of every record, bytes.
pub const RECORD_LENGTH: usize = 96;

/// Why bytes are no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordError {
    /// The kind is not one of ours.
    UnknownKind(u16),
    /// A field of this kind has a value that it cannot have.
    BadField(&'static str, &'static str),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => write!(f, "record kind {kind} is unknown"),
            Self::BadField(kind, field) => write!(f, "record {kind}: field {field} has no valid value"),
        }
    }
}

impl std::error::Error for RecordError {}

/// The counter by which the exchange says how many orders are still in its book, and that it listed them all.
pub const OPEN_ORDERS: &str = "exchange.open_orders";

/// A name in a record: at most [`Name::MAX_LENGTH`] bytes of ASCII. What is longer is cut, what is not ASCII becomes `?`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name {
    /// Padded on the right with zeros.
    bytes: [u8; Self::MAX_LENGTH],
}

impl Name {
    /// Longest name, bytes.
    pub const MAX_LENGTH: usize = 32;

    /// A name from text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; Self::MAX_LENGTH];
        for (to, from) in bytes.iter_mut().zip(text.chars()) {
            *to = u8::try_from(from)
                .ok()
                .filter(|b| matches!(b, 0x20..=0x7e))
                .unwrap_or(b'?');
        }
        Self { bytes }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self
            .bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(Self::MAX_LENGTH);
        core::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A protocol that clients speak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Protocol {
    /// FIX over TCP.
    Fix = 1,
    /// The native protocol over SoupBinTCP.
    Native = 2,
}

impl Protocol {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Fix, Self::Native];

    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fix => "FIX",
            Self::Native => "native",
        }
    }
}

/// What a client asked of a live order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RequestKind {
    /// Cancel one order.
    Cancel = 1,
    /// Replace one order.
    Replace = 2,
    /// Cancel many orders.
    MassCancel = 3,
}

/// A stretch of network that an order crosses; each has its own floor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum FloorLeg {
    /// Exchange to client, market data.
    Feed = 1,
    /// Client to gateway and back.
    Client = 2,
    /// Gateway to venue and back.
    Venue = 3,
}

/// How a field lies in a record.
trait Field: Copy {
    /// Bytes it takes.
    const LENGTH: usize;
    /// Writes it to `LENGTH` bytes.
    fn put(self, to: &mut [u8]);
    /// Reads it from `LENGTH` bytes; `None` when it cannot have that value.
    fn take(from: &[u8]) -> Option<Self>;
}

macro_rules! integer_fields {
    ($($integer:ty),*) => {$(
        impl Field for $integer {
            const LENGTH: usize = size_of::<Self>();
            fn put(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }
            fn take(from: &[u8]) -> Option<Self> {
                from.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}
integer_fields!(u8, u16, u32, u64, i64);

macro_rules! newtype_fields {
    ($($name:ident($inner:ty)),*) => {$(
        impl Field for $name {
            const LENGTH: usize = <$inner as Field>::LENGTH;
            fn put(self, to: &mut [u8]) {
                self.0.put(to);
            }
            fn take(from: &[u8]) -> Option<Self> {
                <$inner as Field>::take(from).map(Self)
            }
        }
    )*};
}
newtype_fields!(
    ClientOrderId(u64),
    InstrumentId(u32),
    OrderId(u64),
    Price(i64),
    Quantity(u64),
    SessionId(u16),
    Timestamp(u64),
    Trigger(u64)
);

macro_rules! enum_fields {
    ($($name:ident as $inner:ty: $($value:ident),*;)*) => {$(
        impl Field for $name {
            const LENGTH: usize = size_of::<$inner>();
            fn put(self, to: &mut [u8]) {
                (self as $inner).put(to);
            }
            fn take(from: &[u8]) -> Option<Self> {
                let value = <$inner as Field>::take(from)?;
                [$(Self::$value),*].into_iter().find(|&known| known as $inner == value)
            }
        }
    )*};
}
enum_fields! {
    Protocol as u8: Fix, Native;
    Side as u8: Buy, Sell;
    RequestKind as u8: Cancel, Replace, MassCancel;
    FloorLeg as u8: Feed, Client, Venue;
}

impl Field for ExecType {
    const LENGTH: usize = 1;
    fn put(self, to: &mut [u8]) {
        (self as u8).put(to);
    }
    fn take(from: &[u8]) -> Option<Self> {
        u8::take(from).and_then(Self::from_u8)
    }
}

impl Field for Reason {
    const LENGTH: usize = 2;
    fn put(self, to: &mut [u8]) {
        (self as u16).put(to);
    }
    fn take(from: &[u8]) -> Option<Self> {
        u16::take(from).and_then(Self::from_u16)
    }
}

impl Field for Name {
    const LENGTH: usize = Self::MAX_LENGTH;
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes);
    }
    fn take(from: &[u8]) -> Option<Self> {
        let bytes: [u8; Self::MAX_LENGTH] = from.try_into().ok()?;
        bytes
            .iter()
            .all(|&byte| matches!(byte, 0 | 0x20..=0x7e))
            .then_some(Self { bytes })
    }
}

impl Field for Stamps {
    const LENGTH: usize = Self::COUNT * Timestamp::LENGTH;
    fn put(self, to: &mut [u8]) {
        for (time, to) in self.times().into_iter().zip(to.chunks_exact_mut(Timestamp::LENGTH)) {
            time.put(to);
        }
    }
    fn take(from: &[u8]) -> Option<Self> {
        let mut times = [Timestamp::NONE; Self::COUNT];
        for (time, from) in times.iter_mut().zip(from.chunks_exact(Timestamp::LENGTH)) {
            *time = Timestamp::take(from)?;
        }
        Some(times.into())
    }
}

/// Where a field lies: its name, offset and length in bytes.
pub type FieldLayout = (&'static str, usize, usize);

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $kind:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            const _: () = assert!(KIND_LENGTH $(+ <$type as Field>::LENGTH)* <= RECORD_LENGTH);

            impl From<$name> for Record {
                #[inline]
                fn from(record: $name) -> Self {
                    Self::$name(record)
                }
            }
        )*

        /// One record.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Record {
            $($(#[$doc])* $name($name),)*
        }

        impl Record {
            /// Writes the record's bytes.
            pub fn encode(&self, to: &mut [u8; RECORD_LENGTH]) {
                to.fill(0);
                match self {
                    $(Self::$name(record) => {
                        let rest = put(&mut to[..], $kind as u16);
                        $(let rest = put(rest, record.$field);)*
                        let _ = rest;
                    })*
                }
            }

            /// Reads a record's bytes.
            ///
            /// # Errors
            /// When the kind is unknown or a field has a value that it cannot have.
            pub fn decode(from: &[u8; RECORD_LENGTH]) -> Result<Self, RecordError> {
                let mut rest = &from[..];
                let kind: u16 = take(&mut rest).ok_or(RecordError::UnknownKind(0))?;
                match kind {
                    $($kind => Ok(Self::$name($name {
                        $($field: take(&mut rest)
                            .ok_or(RecordError::BadField(stringify!($name), stringify!($field)))?,)*
                    })),)*
                    unknown => Err(RecordError::UnknownKind(unknown)),
                }
            }

            /// Name, kind and fields of every record.
            #[must_use]
            pub fn layouts() -> Vec<(&'static str, u16, Vec<FieldLayout>)> {
                vec![$({
                    let mut offset = KIND_LENGTH;
                    let mut fields: Vec<FieldLayout> = Vec::new();
                    $(
                        let length = <$type as Field>::LENGTH;
                        fields.push((stringify!($field), offset, length));
                        offset += length;
                    )*
                    let _ = offset;
                    (stringify!($name), $kind, fields)
                },)*]
            }
        }
    };
}

/// The kind, at the start of every record, bytes.
const KIND_LENGTH: usize = 2;

fn put<T: Field>(to: &mut [u8], field: T) -> &mut [u8] {
    let (here, rest) = to.split_at_mut(T::LENGTH);
    field.put(here);
    rest
}

fn take<T: Field>(from: &mut &[u8]) -> Option<T> {
    let (here, rest) = from.split_at_checked(T::LENGTH)?;
    *from = rest;
    T::take(here)
}

records! {
    /// The last record: what was written, so that a torn recording shows.
    End = 1 {
        /// When the recording was finished.
        time: Timestamp,
        /// Records before this one.
        records: u64,
        /// Records that found the ring full and are lost.
        dropped: u64,
    }
    /// Orders sent in `[start, end)` belong to this phase of the run.
    Phase = 2 {
        /// From when.
        start: Timestamp,
        /// Until when.
        end: Timestamp,
        /// What the table is called.
        name: Name,
    }
    /// A figure of a component: a counter's value at the end of a phase or run.
    Counter = 3 {
        /// When it was read.
        time: Timestamp,
        /// The value.
        value: u64,
        /// Such as `link.retransmits`.
        name: Name,
    }
    /// The bare round trip on a leg, measured in the same run: spinning sockets and nothing else. A percentile with too few
    /// samples is 0.
    Floor = 4 {
        /// Which leg.
        leg: FloorLeg,
        /// The clients whose leg it is. The feed's and the venue's floors are recorded for each protocol.
        protocol: Protocol,
        /// Round trips measured.
        count: u64,
        /// Median, ns.
        p50_ns: u64,
        /// 90th percentile, ns.
        p90_ns: u64,
        /// 99th percentile, ns.
        p99_ns: u64,
        /// 99.9th percentile, ns.
        p999_ns: u64,
        /// Longest, ns.
        max_ns: u64,
        /// Such as `TCP loopback`.
        transport: Name,
    }
    /// The exchange published a packet with these ticks.
    TickSent = 10 {
        /// The first tick.
        trigger: Trigger,
        /// Ticks in the packet; their sequence numbers follow one another.
        count: u32,
        /// Tap `tick_sent`.
        time: Timestamp,
    }
    /// A client sent a new order.
    ClientOrder = 20 {
        /// What it spoke.
        protocol: Protocol,
        /// Buy or sell.
        side: Side,
        /// Its session.
        session: SessionId,
        /// What it traded.
        instrument: InstrumentId,
        /// Its number for the order.
        client_order_id: ClientOrderId,
        /// The tick that caused it.
        trigger: Trigger,
        /// When the order was to be sent by plan; [`Timestamp::NONE`] for an order that a tick caused.
        planned: Timestamp,
        /// Tap `tick_received`; [`Timestamp::NONE`] for an order that no tick caused.
        tick_received: Timestamp,
        /// Tap `order_sent`.
        order_sent: Timestamp,
        /// Lots.
        quantity: Quantity,
        /// Limit, 1e-9; [`Price::NULL`] for a market order.
        price: Price,
    }
    /// A client sent a cancel or a replace.
    ClientRequest = 21 {
        /// What it spoke.
        protocol: Protocol,
        /// What it asked.
        request: RequestKind,
        /// Its session.
        session: SessionId,
        /// Its number for the request.
        client_order_id: ClientOrderId,
        /// Its number for the order.
        orig_client_order_id: ClientOrderId,
        /// When it was sent.
        time: Timestamp,
    }
    /// A client received a report.
    ClientReport = 22 {
        /// What it tells.
        exec_type: ExecType,
        /// Why, for refusals and cancels.
        reason: Reason,
        /// The client's session.
        session: SessionId,
        /// The client's number, of the order or the request, as in the report.
        client_order_id: ClientOrderId,
        /// The gateway's number for the order; 0 when the report names none.
        order_id: OrderId,
        /// Tap `report_received`.
        time: Timestamp,
        /// Fill: lots traded.
        last_quantity: Quantity,
        /// Fill: the trade's price, 1e-9.
        last_price: Price,
        /// Lots still open.
        leaves: Quantity,
    }
    /// The gateway took or refused a new order.
    GatewayOrder = 30 {
        /// What the client spoke.
        protocol: Protocol,
        /// Why it was refused; [`Reason::None`] when it was taken.
        reason: Reason,
        /// The client's session.
        session: SessionId,
        /// What it trades; 0 when the master does not have it.
        instrument: InstrumentId,
        /// The client's number for the order.
        client_order_id: ClientOrderId,
        /// The gateway's number for it.
        order_id: OrderId,
        /// The tick that caused it.
        trigger: Trigger,
        /// The kernel's receive stamp of the bytes; [`Timestamp::NONE`] where there is none.
        kernel_received: Timestamp,
        /// Taps `gateway_received` to `venue_sent`. An order that was taken and has no `venue_sent` is kept: it waits or is
        /// held, and what goes to the venue for it is in records [`GatewayChild`].
        stamps: Stamps,
    }
    /// The gateway sent a client a report.
    GatewayReport = 31 {
        /// What it tells.
        exec_type: ExecType,
        /// Why, for refusals and cancels.
        reason: Reason,
        /// The gateway's number for the order; 0 when there is none.
        order_id: OrderId,
        /// Tap `venue_received`; [`Timestamp::NONE`] when the gateway refused by itself.
        venue_received: Timestamp,
        /// Tap `report_encoded`.
        report_encoded: Timestamp,
        /// Tap `report_sent`.
        report_sent: Timestamp,
        /// Fill: lots traded.
        last_quantity: Quantity,
        /// Fill: the trade's price, 1e-9.
        last_price: Price,
        /// Lots still open.
        leaves: Quantity,
    }
    /// The gateway sent the venue an order for one that it had kept.
    GatewayChild = 32 {
        /// The gateway's number for the order that was kept.
        order_id: OrderId,
        /// The number that it went to the venue by.
        child_id: OrderId,
        /// When what kept it was over: the time of the book that moved a held order, but not before the order last changed; else
        /// when the shard's turn began in which it went.
        released: Timestamp,
        /// Tap `venue_sent`.
        venue_sent: Timestamp,
    }
    /// The order was open in the gateway alone when the recording ended: nothing of it was at a venue.
    GatewayOpen = 33 {
        /// The gateway's number for the order.
        order_id: OrderId,
        /// Lots still open.
        leaves: Quantity,
    }
    /// The exchange received a new order.
    ExchangeOrder = 40 {
        /// The client order id on the venue's session, which is the gateway's number for it, or for a child of it.
        order_id: OrderId,
        /// Tap `exchange_received`.
        time: Timestamp,
    }
    /// The exchange sent a report.
    ExchangeReport = 41 {
        /// What it tells.
        exec_type: ExecType,
        /// The gateway's number for the order, or for a child of it.
        order_id: OrderId,
        /// Tap `exchange_reported`.
        time: Timestamp,
    }
    /// The order was still in the exchange's book when the recording ended. The accounting holds the clients' open orders
    /// against these, provided that the exchange also wrote the counter [`OPEN_ORDERS`].
    ExchangeOpen = 42 {
        /// The gateway's number for the order, or for a child of it.
        order_id: OrderId,
        /// Lots still open.
        leaves: Quantity,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of some record: of a known kind, the rest anything that its fields allow.
    pub(crate) fn some_record() -> impl Strategy<Value = Record> {
        let bytes = proptest::array::uniform32(any::<[u8; 3]>());
        let kinds: Vec<u16> = Record::layouts().into_iter().map(|(_, kind, _)| kind).collect();
        (bytes, proptest::sample::select(kinds)).prop_filter_map("fields have valid values", |(bytes, kind)| {
            let mut record = [0; RECORD_LENGTH];
            for (to, from) in record.iter_mut().zip(bytes.as_flattened()) {
                *to = *from & 0x7f;
            }
            record[..2].copy_from_slice(&kind.to_le_bytes());
            // Enumerations and reasons come first in every record; keep them small.
            for byte in &mut record[2..8] {
                *byte = 1 + (*byte & 1);
            }
            record[3..5].copy_from_slice(&[1, 0]);
            Record::decode(&record).ok()
        })
    }

    proptest! {
        #[test]
        fn a_record_comes_back_from_its_bytes(record in some_record()) {
            let mut bytes = [0xff; RECORD_LENGTH];
            record.encode(&mut bytes);
            prop_assert_eq!(Record::decode(&bytes), Ok(record));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::array::uniform32(any::<[u8; 3]>())) {
            let bytes: [u8; RECORD_LENGTH] = bytes.as_flattened().try_into().unwrap();
            let _ = Record::decode(&bytes);
        }
    }

    #[test]
    fn a_foreign_kind_or_value_is_named() {
        let mut bytes = [0; RECORD_LENGTH];
        bytes[0] = 99;
        assert_eq!(Record::decode(&bytes), Err(RecordError::UnknownKind(99)));
        bytes[0] = 22;
        assert_eq!(
            Record::decode(&bytes),
            Err(RecordError::BadField("ClientReport", "exec_type"))
        );
    }

    #[test]
    fn a_name_is_cut_and_kept_ascii() {
        assert_eq!(Name::new("1 % loss").as_str(), "1 % loss");
        assert_eq!(Name::new("µs\n").as_str(), "?s?");
        assert_eq!(Name::new(&"x".repeat(99)).as_str().len(), Name::MAX_LENGTH);
    }

    #[test]
    fn the_page_of_tables_has_every_field_at_its_offset() {
        let page = include_str!("../../docs/recording.md");
        for (name, kind, fields) in Record::layouts() {
            let heading = format!("### {name} (kind {kind})");
            let section = page
                .split(&heading)
                .nth(1)
                .unwrap_or_else(|| panic!("docs/recording.md lacks {heading:?}"));
            let section = section.split("\n#").next().unwrap();
            for (field, offset, length) in fields {
                let row = format!("| {offset} | {length} | `{field}` |");
                assert!(section.contains(&row), "docs/recording.md, {name}: lacks {row:?}");
            }
        }
    }
}
