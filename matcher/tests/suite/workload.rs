//! A committed workload, whose trades and final books were computed by an independent matcher: a Python program that
//! keeps a dictionary of deques for each side and heaps of prices. The numbers below are its results on the events that
//! [`events`] makes.

use matcher::{BookIndex, Capacity, Matcher, NewOrder, OwnerId, Priority, Replace, Report, SelfMatch};
use types::{OrderId, OrderType, Price, Quantity, Reason, Side, TimeInForce};

#[derive(Clone, Copy)]
enum Event {
    New(NewOrder),
    Cancel(OrderId),
    Replace(Replace),
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((mixed >> 32) * bound) >> 32
    }
}

/// 20,000 events on `symbols` books: of ten, six new orders around a middle, two cancels and two replaces of any earlier
/// id, dead ones too. One new order in five is immediate-or-cancel, one in fifty is far from the rest.
fn events(symbols: u32, seed: u64) -> Vec<Event> {
    let mut random = Random(seed);
    let mut ids = 0;
    (0..20_000)
        .map(|_| {
            let kind = random.below(10);
            let price = 10_000 + random.below(40).cast_signed() - 20;
            let quantity = Quantity(1 + random.below(500));
            let known = OrderId(1 + random.below(ids + 1));
            match kind {
                0..=5 => {
                    ids += 1;
                    let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
                    let far = if random.below(50) == 0 {
                        5_000 + random.below(4_000).cast_signed()
                    } else {
                        0
                    };
                    Event::New(NewOrder {
                        id: OrderId(ids),
                        book: BookIndex(u32::try_from(random.below(u64::from(symbols))).unwrap()),
                        owner: OwnerId::NONE,
                        side,
                        order_type: OrderType::Limit,
                        time_in_force: if random.below(5) == 0 {
                            TimeInForce::ImmediateOrCancel
                        } else {
                            TimeInForce::Day
                        },
                        price: Price(if side == Side::Buy { price - far } else { price + far }),
                        quantity,
                    })
                }
                6 | 7 => Event::Cancel(known),
                _ => Event::Replace(Replace {
                    id: known,
                    new_id: known,
                    price: Price(price),
                    leaves: quantity,
                    priority: Priority::Lost,
                }),
            }
        })
        .collect()
}

/// Folds words as the reference does.
struct Hash(u64);

impl Hash {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn words(&mut self, words: &[u64]) {
        for word in words {
            self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
            self.0 ^= self.0 >> 29;
        }
    }
}

/// Trades, refusals, hash of all trades, hash of the final books.
fn results(symbols: u32, seed: u64) -> (u64, u64, u64, u64) {
    let capacity = Capacity {
        books: symbols as usize,
        orders: 8_192,
        levels: 2_048,
        special: 0,
    };
    let mut matcher = Matcher::new(capacity, SelfMatch::Allow);
    let (mut trades, mut rejects, mut trade_hash, mut book_hash) = (0, 0, Hash::new(), Hash::new());
    for event in events(symbols, seed) {
        let sink = &mut |report| match report {
            Report::Trade(trade) => {
                trades += 1;
                let price = trade.price.0.cast_unsigned();
                trade_hash.words(&[trade.taker.0, trade.maker.0, price, trade.quantity.0]);
            }
            Report::Rejected(rejected) => {
                assert_eq!(rejected.reason, Reason::UnknownOrder);
                rejects += 1;
            }
            _ => {}
        };
        match event {
            Event::New(order) => matcher.add(&order, sink),
            Event::Cancel(id) => matcher.cancel(id, Reason::Requested, sink),
            Event::Replace(replace) => matcher.replace(&replace, sink),
        }
    }
    matcher.audit();
    for book in (0..symbols).map(BookIndex) {
        for side in [Side::Buy, Side::Sell] {
            for order in matcher.orders(book, side) {
                book_hash.words(&[order.id.0, order.price.0.cast_unsigned(), order.leaves.0]);
            }
        }
    }
    (trades, rejects, trade_hash.0, book_hash.0)
}

#[test]
fn one_busy_symbol_gives_the_reference_results() {
    assert_eq!(
        results(1, 1),
        (8_977, 7_201, 0x620b_9e7d_fd06_9a4a, 0xac23_5c97_8f35_a454)
    );
}

#[test]
fn thirty_symbols_give_the_reference_results() {
    assert_eq!(
        results(30, 2),
        (8_478, 6_796, 0x7ae1_8c2e_0cd4_b4bf, 0xa513_e98d_219c_dbff)
    );
}
