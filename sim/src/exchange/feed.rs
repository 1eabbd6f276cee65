//! The messages that the market publishes about its orders.

use super::listing::{Listing, price_e4, stamp};
use super::market::Outputs;
use matcher::{Auction, AuctionFill, BookIndex, RestingOrder, Trade};
use proto::itch::{
    self, AddOrder, CrossTrade, Header, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace,
    StockDirectory,
};
use types::{OrderId, Price, Quantity, Timestamp};
use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

/// What an auction came to.
pub(super) struct Cross {
    pub(super) book: BookIndex,
    pub(super) auction: Auction,
    pub(super) price: Price,
    pub(super) quantity: Quantity,
}

/// The market's instruments, each with its locate.
pub(super) fn directory(out: &mut impl Outputs, now: Timestamp, listing: &Listing) {
    for book in listing.books() {
        let listed = listing.get(book);
        let is_fixed = listed.lot_size > 1;
        let message = StockDirectory::new(stamp(now, Some(book)), listed.stock, listed.lot_size, is_fixed);
        out.publish(message.as_bytes());
    }
}

/// An order joins the book, with as much as it shows.
pub(super) fn added(out: &mut impl Outputs, now: Timestamp, listing: &Listing, order: &RestingOrder) {
    let listed = listing.get(order.book);
    let message = AddOrder::new(
        stamp(now, Some(order.book)),
        order.id.0,
        order.side.into(),
        listed.shares(order.shown),
        listed.stock,
        price_e4(order.price),
    );
    out.publish(message.as_bytes());
}

/// A resting order trades with one that came in.
pub(super) fn executed(out: &mut impl Outputs, now: Timestamp, listing: &Listing, trade: &Trade, match_number: u64) {
    let shares = listing.get(trade.book).shares(trade.quantity);
    out.publish(OrderExecuted::new(stamp(now, Some(trade.book)), trade.maker.0, shares, match_number).as_bytes());
}

/// A resting order traded in an auction.
pub(super) fn executed_in_auction(
    out: &mut impl Outputs,
    now: Timestamp,
    listing: &Listing,
    fill: &AuctionFill,
    match_number: u64,
) {
    let stamp = stamp(now, Some(fill.book));
    let (shares, price) = (listing.get(fill.book).shares(fill.from_shown), price_e4(fill.price));
    out.publish(OrderExecutedWithPrice::new(stamp, fill.id.0, shares, match_number, false, price).as_bytes());
}

/// What an auction traded in all.
pub(super) fn crossed(out: &mut impl Outputs, now: Timestamp, listing: &Listing, cross: &Cross, match_number: u64) {
    let listed = listing.get(cross.book);
    let shares = cross.quantity.0 * u64::from(listed.lot_size);
    let cross_type = match cross.auction {
        Auction::Opening => b'O',
        Auction::Closing => b'C',
    };
    let (stamp, price) = (stamp(now, Some(cross.book)), price_e4(cross.price));
    out.publish(CrossTrade::new(stamp, shares, listed.stock, price, match_number, cross_type).as_bytes());
}

/// A resting order gets smaller and keeps its place.
pub(super) fn reduced(
    out: &mut impl Outputs,
    now: Timestamp,
    listing: &Listing,
    book: BookIndex,
    reference: OrderId,
    lots: Quantity,
) {
    let shares = listing.get(book).shares(lots);
    out.publish(OrderCancel::new(stamp(now, Some(book)), reference.0, shares).as_bytes());
}

/// An order leaves the book.
pub(super) fn deleted(out: &mut impl Outputs, now: Timestamp, book: BookIndex, reference: OrderId) {
    out.publish(OrderDelete::new(stamp(now, Some(book)), reference.0).as_bytes());
}

/// A recorded order gets a new reference, size and price.
pub(super) fn replaced(out: &mut impl Outputs, now: Timestamp, book: BookIndex, replace: &OrderReplace) {
    let (original, reference) = (replace.original.get(), replace.reference.get());
    let (shares, price) = (replace.shares.get(), replace.price_e4.get());
    out.publish(OrderReplace::new(stamp(now, Some(book)), original, reference, shares, price).as_bytes());
}

/// A recorded message goes on as it is, with our locate and our time.
pub(super) fn forwarded(out: &mut impl Outputs, now: Timestamp, book: Option<BookIndex>, message: &[u8]) {
    let mut buffer = [0; itch::MAX_MESSAGE_LENGTH];
    let copy = &mut buffer[..message.len()];
    copy.copy_from_slice(message);
    restamp(copy, now, book);
    out.publish(copy);
}

/// As [`forwarded`], for a message that adds or executes an order: with other shares. Both have them at one offset.
pub(super) fn forwarded_with_shares(
    out: &mut impl Outputs,
    now: Timestamp,
    book: BookIndex,
    message: &[u8],
    shares: u32,
) {
    let offset = match message.first() {
        Some(b'A' | b'F') => core::mem::offset_of!(AddOrder, shares),
        _ => core::mem::offset_of!(OrderExecuted, shares),
    };
    let mut buffer = [0; itch::MAX_MESSAGE_LENGTH];
    let copy = &mut buffer[..message.len()];
    copy.copy_from_slice(message);
    copy[offset..offset + size_of::<u32>()].copy_from_slice(U32::new(shares).as_bytes());
    restamp(copy, now, Some(book));
    out.publish(copy);
}

/// Our locate and our time in place of those of the recording.
fn restamp(message: &mut [u8], now: Timestamp, book: Option<BookIndex>) {
    if let Ok((header, _)) = Header::mut_from_prefix(message) {
        let stamp = stamp(now, book);
        let [_, _, time @ ..] = stamp.time_ns.to_be_bytes();
        header.stock_locate = U16::new(stamp.stock_locate);
        header.tracking_number = U16::ZERO;
        header.timestamp = time;
    }
}
