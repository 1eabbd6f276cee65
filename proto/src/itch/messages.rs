//! The messages as they lie on the wire, in the order of the specification.
//!
//! Numbers are big-endian with alignment 1, so a struct is a view over received bytes and the bytes to send alike.

use core::fmt;
use types::{Price, Side, Symbol};
use zerocopy::byteorder::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

/// What every message starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Type of the message, ASCII.
    pub message_type: u8,
    /// The day's number of the stock; 0 for messages about the market.
    pub stock_locate: U16,
    /// The exchange's own; 0 in what we write.
    pub tracking_number: U16,
    /// Nanoseconds since midnight. See [`Header::time_ns`].
    pub timestamp: [u8; 6],
}

/// Whose message, and when: what a writer gives for the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The day's number of the stock; 0 for messages about the market.
    pub stock_locate: u16,
    /// Nanoseconds since midnight, below 2^48; higher bits are cut off.
    pub time_ns: u64,
}

/// A symbol of at most 8 characters, padded with blanks on the right.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct Stock(pub [u8; 8]);

/// Side of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(u8)]
pub enum BuySell {
    /// Buy.
    Buy = b'B',
    /// Sell.
    Sell = b'S',
}

/// S: start and end of the day's phases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SystemEvent {
    /// Type S.
    pub header: Header,
    /// See the constants of [`SystemEvent`].
    pub event: u8,
}

/// R: which symbol a stock locate stands for today. Only the fields up to the round lot tell us anything; a writer leaves
/// the rest at what an ordinary share has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct StockDirectory {
    /// Type R.
    pub header: Header,
    /// The symbol.
    pub stock: Stock,
    /// Listing market, such as Q for Nasdaq Global Select.
    pub market_category: u8,
    /// N is a company in good order.
    pub financial_status: u8,
    /// Shares in a round lot. It rounds what is displayed; orders of any number of shares trade, see `round_lots_only`.
    pub round_lot_size: U32,
    /// Y when orders must be whole round lots.
    pub round_lots_only: u8,
    /// C is a common share.
    pub issue_classification: u8,
    /// Z is not applicable.
    pub issue_sub_type: [u8; 2],
    /// P is a live issue, T one for tests.
    pub authenticity: u8,
    /// Y, N, or blank.
    pub short_sale_threshold: u8,
    /// Y, N, or blank.
    pub ipo_flag: u8,
    /// Limit up, limit down: tier 1, 2, or blank.
    pub luld_tier: u8,
    /// Y, N, or blank.
    pub etp_flag: u8,
    /// Leverage of an exchange-traded product; 0 for others.
    pub etp_leverage_factor: U32,
    /// Y for an inverse product.
    pub inverse_indicator: u8,
}

/// H: trading halts and goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TradingAction {
    /// Type H.
    pub header: Header,
    /// The symbol.
    pub stock: Stock,
    /// H halted, P paused, Q quotation only, T trading.
    pub trading_state: u8,
    /// Nothing.
    pub reserved: u8,
    /// The exchange's code for why.
    pub reason: [u8; 4],
}

/// A: an order joins the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AddOrder {
    /// Type A, or F inside of [`AddOrderAttributed`].
    pub header: Header,
    /// The order's number, unique in the day and over all stocks.
    pub reference: U64,
    /// Side.
    pub buy_sell: BuySell,
    /// Shares.
    pub shares: U32,
    /// The symbol.
    pub stock: Stock,
    /// Limit, 4 decimals.
    pub price_e4: U32,
}

/// F: an order joins the book, with its market participant's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AddOrderAttributed {
    /// As in type A.
    pub order: AddOrder,
    /// Market participant identifier.
    pub attribution: [u8; 4],
}

/// E: a resting order trades at its own price.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OrderExecuted {
    /// Type E, or C inside of [`OrderExecutedWithPrice`].
    pub header: Header,
    /// The order.
    pub reference: U64,
    /// Shares that traded; the order has so many fewer now.
    pub shares: U32,
    /// The trade's number, unique in the day.
    pub match_number: U64,
}

/// C: a resting order trades at another price.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OrderExecutedWithPrice {
    /// As in type E.
    pub executed: OrderExecuted,
    /// N when the trade is told elsewhere too (an auction's) and must not be counted. See
    /// [`OrderExecutedWithPrice::is_printable`].
    pub printable: u8,
    /// The trade's price, 4 decimals.
    pub price_e4: U32,
}

/// X: a resting order becomes smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OrderCancel {
    /// Type X.
    pub header: Header,
    /// The order.
    pub reference: U64,
    /// Shares that it loses.
    pub shares: U32,
}

/// D: a resting order leaves the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OrderDelete {
    /// Type D.
    pub header: Header,
    /// The order.
    pub reference: U64,
}

/// U: a resting order gets a new reference, size and price. Side and stock stay, priority is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OrderReplace {
    /// Type U.
    pub header: Header,
    /// The order that leaves.
    pub original: U64,
    /// The order that comes in its place.
    pub reference: U64,
    /// Its shares.
    pub shares: U32,
    /// Its limit, 4 decimals.
    pub price_e4: U32,
}

/// P: a trade against an order that the book never showed. It does not change the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Trade {
    /// Type P.
    pub header: Header,
    /// 0 nowadays.
    pub reference: U64,
    /// Buy nowadays, whatever the hidden order's side.
    pub buy_sell: BuySell,
    /// Shares.
    pub shares: U32,
    /// The symbol.
    pub stock: Stock,
    /// Price, 4 decimals.
    pub price_e4: U32,
    /// The trade's number, unique in the day.
    pub match_number: U64,
}

/// Q: the trade of an auction. It does not change the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CrossTrade {
    /// Type Q.
    pub header: Header,
    /// Shares; 0 when nothing met.
    pub shares: U64,
    /// The symbol.
    pub stock: Stock,
    /// Price, 4 decimals.
    pub price_e4: U32,
    /// The trade's number, unique in the day.
    pub match_number: U64,
    /// O opening, C closing, H after a halt; others may come.
    pub cross_type: u8,
}

/// B: an earlier trade is void. It does not change the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BrokenTrade {
    /// Type B.
    pub header: Header,
    /// The trade.
    pub match_number: U64,
}

const _: () = {
    assert!(size_of::<Header>() == 11);
    assert!(size_of::<SystemEvent>() == 12);
    assert!(size_of::<StockDirectory>() == 39);
    assert!(size_of::<TradingAction>() == 25);
    assert!(size_of::<AddOrder>() == 36);
    assert!(size_of::<AddOrderAttributed>() == 40);
    assert!(size_of::<OrderExecuted>() == 31);
    assert!(size_of::<OrderExecutedWithPrice>() == 36);
    assert!(size_of::<OrderCancel>() == 23);
    assert!(size_of::<OrderDelete>() == 19);
    assert!(size_of::<OrderReplace>() == 35);
    assert!(size_of::<Trade>() == 44);
    assert!(size_of::<CrossTrade>() == 40);
    assert!(size_of::<BrokenTrade>() == 19);
};

impl Header {
    /// Nanoseconds since midnight of the exchange's day.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        let [a, b, c, d, e, f] = self.timestamp;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    const fn new(message_type: u8, stamp: Stamp) -> Self {
        let [_, _, a, b, c, d, e, f] = stamp.time_ns.to_be_bytes();
        Self {
            message_type,
            stock_locate: U16::new(stamp.stock_locate),
            tracking_number: U16::ZERO,
            timestamp: [a, b, c, d, e, f],
        }
    }
}

impl Stock {
    /// `None` when the symbol has more than 8 characters.
    #[must_use]
    pub fn new(symbol: &Symbol) -> Option<Self> {
        let text = symbol.as_bytes();
        let mut bytes = [b' '; 8];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self(bytes))
    }

    /// `None` when the field is blank or not printable.
    #[must_use]
    pub fn symbol(&self) -> Option<Symbol> {
        Symbol::new(&self.0)
    }
}

impl fmt::Display for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.trim_ascii_end().escape_ascii())
    }
}

impl From<BuySell> for Side {
    fn from(value: BuySell) -> Self {
        match value {
            BuySell::Buy => Self::Buy,
            BuySell::Sell => Self::Sell,
        }
    }
}

impl From<Side> for BuySell {
    fn from(value: Side) -> Self {
        match value {
            Side::Buy => Self::Buy,
            Side::Sell => Self::Sell,
        }
    }
}

/// A wire price in our unit. Every u32 with 4 decimals fits in an i64 with 9.
fn price(price_e4: U32) -> Price {
    Price(i64::from(price_e4.get()) * 100_000)
}

impl SystemEvent {
    /// First message of the day.
    pub const START_OF_MESSAGES: u8 = b'O';
    /// The system takes orders.
    pub const START_OF_SYSTEM_HOURS: u8 = b'S';
    /// Continuous trading starts.
    pub const START_OF_MARKET_HOURS: u8 = b'Q';
    /// Continuous trading has ended.
    pub const END_OF_MARKET_HOURS: u8 = b'M';
    /// The system takes no more orders.
    pub const END_OF_SYSTEM_HOURS: u8 = b'E';
    /// Last message of the day.
    pub const END_OF_MESSAGES: u8 = b'C';

    /// An event at `time_ns` since midnight.
    #[must_use]
    pub const fn new(time_ns: u64, event: u8) -> Self {
        let stamp = Stamp {
            stock_locate: 0,
            time_ns,
        };
        Self {
            header: Header::new(b'S', stamp),
            event,
        }
    }
}

impl StockDirectory {
    /// An ordinary share with round lots of `round_lot_size` shares.
    #[must_use]
    pub const fn new(stamp: Stamp, stock: Stock, round_lot_size: u32, round_lots_only: bool) -> Self {
        Self {
            header: Header::new(b'R', stamp),
            stock,
            market_category: b'Q',
            financial_status: b'N',
            round_lot_size: U32::new(round_lot_size),
            round_lots_only: if round_lots_only { b'Y' } else { b'N' },
            issue_classification: b'C',
            issue_sub_type: *b"Z ",
            authenticity: b'P',
            short_sale_threshold: b'N',
            ipo_flag: b' ',
            luld_tier: b'1',
            etp_flag: b'N',
            etp_leverage_factor: U32::ZERO,
            inverse_indicator: b'N',
        }
    }

    /// Shares in which orders are counted: the round lot where nothing else trades, else 1.
    #[must_use]
    pub const fn lot_size(&self) -> u32 {
        match (self.round_lots_only, self.round_lot_size.get()) {
            (b'Y', size @ 1..) => size,
            _ => 1,
        }
    }
}

impl AddOrder {
    /// An order that joins the book; `price_e4` has 4 decimals.
    #[must_use]
    pub const fn new(
        stamp: Stamp,
        reference: u64,
        buy_sell: BuySell,
        shares: u32,
        stock: Stock,
        price_e4: u32,
    ) -> Self {
        Self {
            header: Header::new(b'A', stamp),
            reference: U64::new(reference),
            buy_sell,
            shares: U32::new(shares),
            stock,
            price_e4: U32::new(price_e4),
        }
    }

    /// Side.
    #[must_use]
    pub fn side(&self) -> Side {
        self.buy_sell.into()
    }

    /// Limit.
    #[must_use]
    pub fn price(&self) -> Price {
        price(self.price_e4)
    }
}

impl OrderExecuted {
    /// `shares` of the order traded at its own price.
    #[must_use]
    pub const fn new(stamp: Stamp, reference: u64, shares: u32, match_number: u64) -> Self {
        Self {
            header: Header::new(b'E', stamp),
            reference: U64::new(reference),
            shares: U32::new(shares),
            match_number: U64::new(match_number),
        }
    }
}

impl OrderExecutedWithPrice {
    /// `shares` of the order traded at `price_e4` (4 decimals).
    #[must_use]
    pub const fn new(
        stamp: Stamp,
        reference: u64,
        shares: u32,
        match_number: u64,
        printable: bool,
        price_e4: u32,
    ) -> Self {
        let mut executed = OrderExecuted::new(stamp, reference, shares, match_number);
        executed.header.message_type = b'C';
        Self {
            executed,
            printable: if printable { b'Y' } else { b'N' },
            price_e4: U32::new(price_e4),
        }
    }

    /// The trade's price.
    #[must_use]
    pub fn price(&self) -> Price {
        price(self.price_e4)
    }

    /// Whether the trade counts as volume.
    #[must_use]
    pub const fn is_printable(&self) -> bool {
        self.printable != b'N'
    }
}

impl OrderCancel {
    /// The order loses `shares`.
    #[must_use]
    pub const fn new(stamp: Stamp, reference: u64, shares: u32) -> Self {
        Self {
            header: Header::new(b'X', stamp),
            reference: U64::new(reference),
            shares: U32::new(shares),
        }
    }
}

impl OrderDelete {
    /// The order leaves the book.
    #[must_use]
    pub const fn new(stamp: Stamp, reference: u64) -> Self {
        Self {
            header: Header::new(b'D', stamp),
            reference: U64::new(reference),
        }
    }
}

impl OrderReplace {
    /// Order `reference` comes in place of `original`; `price_e4` has 4 decimals.
    #[must_use]
    pub const fn new(stamp: Stamp, original: u64, reference: u64, shares: u32, price_e4: u32) -> Self {
        Self {
            header: Header::new(b'U', stamp),
            original: U64::new(original),
            reference: U64::new(reference),
            shares: U32::new(shares),
            price_e4: U32::new(price_e4),
        }
    }

    /// The new order's limit.
    #[must_use]
    pub fn price(&self) -> Price {
        price(self.price_e4)
    }
}

impl Trade {
    /// A trade against an order that was not shown; `price_e4` has 4 decimals.
    #[must_use]
    pub const fn new(stamp: Stamp, shares: u32, stock: Stock, price_e4: u32, match_number: u64) -> Self {
        Self {
            header: Header::new(b'P', stamp),
            reference: U64::ZERO,
            buy_sell: BuySell::Buy,
            shares: U32::new(shares),
            stock,
            price_e4: U32::new(price_e4),
            match_number: U64::new(match_number),
        }
    }

    /// The trade's price.
    #[must_use]
    pub fn price(&self) -> Price {
        price(self.price_e4)
    }
}

impl CrossTrade {
    /// What an auction traded; `price_e4` has 4 decimals.
    #[must_use]
    pub const fn new(
        stamp: Stamp,
        shares: u64,
        stock: Stock,
        price_e4: u32,
        match_number: u64,
        cross_type: u8,
    ) -> Self {
        Self {
            header: Header::new(b'Q', stamp),
            shares: U64::new(shares),
            stock,
            price_e4: U32::new(price_e4),
            match_number: U64::new(match_number),
            cross_type,
        }
    }

    /// The auction's price.
    #[must_use]
    pub fn price(&self) -> Price {
        price(self.price_e4)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Message, parse};
    use super::*;

    const STAMP: Stamp = Stamp {
        stock_locate: 7,
        time_ns: 34_200_000_000_001,
    };
    const STOCK: Stock = Stock(*b"AAPL    ");

    #[test]
    fn what_is_written_is_read_back() {
        macro_rules! read_back {
            ($($variant:ident: $message:expr;)*) => {
                $({
                    let written = $message;
                    match parse(written.as_bytes()) {
                        Ok(Message::$variant(read)) => assert_eq!(*read, written),
                        other => panic!("{other:?}"),
                    }
                })*
            };
        }
        read_back! {
            SystemEvent: SystemEvent::new(1, SystemEvent::START_OF_MESSAGES);
            StockDirectory: StockDirectory::new(STAMP, STOCK, 100, false);
            AddOrder: AddOrder::new(STAMP, 1, BuySell::Sell, 300, STOCK, 1_000_000);
            OrderExecuted: OrderExecuted::new(STAMP, 1, 100, 5);
            OrderExecutedWithPrice: OrderExecutedWithPrice::new(STAMP, 1, 100, 6, false, 999_900);
            OrderCancel: OrderCancel::new(STAMP, 1, 50);
            OrderDelete: OrderDelete::new(STAMP, 1);
            OrderReplace: OrderReplace::new(STAMP, 1, 2, 100, 1_000_100);
            Trade: Trade::new(STAMP, 10, STOCK, 1_000_050, 7);
        }
    }

    #[test]
    fn fields_lie_where_the_specification_has_them() {
        let add = AddOrder::new(
            STAMP,
            0x0102_0304_0506_0708,
            BuySell::Sell,
            0x0a0b_0c0d,
            STOCK,
            0x1112_1314,
        );
        let bytes = add.as_bytes();
        assert_eq!(&bytes[..11], b"A\0\x07\0\0\x1f\x1a\xce\xd9\xf0\x01");
        assert_eq!(&bytes[11..19], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[19], b'S');
        assert_eq!(&bytes[20..24], [10, 11, 12, 13]);
        assert_eq!(&bytes[24..32], b"AAPL    ");
        assert_eq!(&bytes[32..], [0x11, 0x12, 0x13, 0x14]);
        let executed = OrderExecutedWithPrice::new(STAMP, 1, 2, 3, true, 4);
        assert_eq!(
            (executed.as_bytes()[31], &executed.as_bytes()[32..]),
            (b'Y', [0, 0, 0, 4].as_slice())
        );
        let replace = OrderReplace::new(STAMP, 1, 2, 3, 4);
        assert_eq!(
            (replace.as_bytes()[26], replace.as_bytes()[30], replace.as_bytes()[34]),
            (2, 3, 4)
        );
        let trade = Trade::new(STAMP, 1, STOCK, 2, 3);
        assert_eq!(
            (trade.as_bytes()[23], trade.as_bytes()[35], trade.as_bytes()[43]),
            (1, 2, 3)
        );
        assert_eq!(STAMP.time_ns, add.header.time_ns());
    }

    #[test]
    fn a_symbol_that_is_too_long_is_no_stock() {
        let stock = |text: &[u8]| Symbol::new(text).and_then(|symbol| Stock::new(&symbol));
        assert_eq!(stock(b"AAPL"), Some(STOCK));
        assert_eq!(stock(b"ABCDEFGH"), Some(Stock(*b"ABCDEFGH")));
        assert_eq!(stock(b"ABCDEFGHI"), None);
    }

    #[test]
    fn only_round_lots_make_a_lot_larger_than_a_share() {
        let lot_size = |size, only| StockDirectory::new(STAMP, STOCK, size, only).lot_size();
        assert_eq!(
            (lot_size(100, true), lot_size(100, false), lot_size(0, true)),
            (100, 1, 1)
        );
    }
}
