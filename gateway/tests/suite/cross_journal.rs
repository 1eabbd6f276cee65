//! Crossing when the process dies: a journal of it is cut behind each of its records, and a shard goes on with what is left.

use crate::cross::{at, buys, crossing_with, price, sells};
use crate::first_stage::{assert_replays, report, say};
use crate::fix::field;
use crate::fixture::*;
use crate::recovery::{Entry, came_in, cut, entries};
use gateway::record::Record;
use proptest::prelude::*;
use proto::fix::{NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest, OrderFields};
use proto::journal::Kind;
use proto::native;
use std::collections::BTreeSet;
use types::{
    CancelOrder, ClientOrderId, ExecReport, ExecType, NewOrder, Quantity, Reason, Request, ShardId, Side, TimeInForce,
};

/// Their orders outlive them, so that what rested when the process died rests on.
const STAYS: (&str, &str) = ("crossing = true\n", "crossing = true\ncancel_on_disconnect = false\n");

#[derive(Clone, Debug)]
enum Step {
    Buy {
        lots: u64,
        ticks: i64,
        immediate: bool,
    },
    Sell {
        lots: u64,
        ticks: i64,
    },
    CancelBuy,
    CancelSell,
    ReplaceSell {
        lots: u64,
    },
    Later(u64),
    Market(bool),
    /// The venue trades lots of what was sent to it last, if that was an order.
    Trade(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u64..15, -1i64..2, prop::bool::weighted(0.2))
            .prop_map(|(lots, ticks, immediate)| Step::Buy { lots, ticks, immediate }),
        6 => (1u64..15, -1i64..2).prop_map(|(lots, ticks)| Step::Sell { lots, ticks }),
        1 => Just(Step::CancelBuy),
        1 => Just(Step::CancelSell),
        1 => (1u64..20).prop_map(|lots| Step::ReplaceSell { lots }),
        3 => (1u64..25).prop_map(Step::Later),
        1 => any::<bool>().prop_map(Step::Market),
        2 => (1u64..15).prop_map(Step::Trade),
    ]
}

/// Two clients at work. Their numbers rise, and a cancel or replace names the last order.
struct Run {
    fixture: Fixture,
    number: u64,
    last_buy: u64,
    last_sell: u64,
}

impl Run {
    fn new() -> Self {
        Self {
            fixture: crossing_with(&[STAYS]),
            number: 0,
            last_buy: 0,
            last_sell: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        self.number += 1;
        let (number, id) = (self.number, format!("A-{}", self.number));
        let last = format!("A-{}", self.last_sell);
        let fixture = &mut self.fixture;
        match *step {
            Step::Buy { lots, ticks, immediate } => {
                let time_in_force = if immediate {
                    TimeInForce::ImmediateOrCancel
                } else {
                    TimeInForce::Day
                };
                self.last_buy = number;
                fixture.native(&Request::New(NewOrder {
                    time_in_force,
                    price: at(ticks),
                    ..buys(number, lots, "100")
                }));
            }
            Step::Sell { lots, ticks } => {
                self.last_sell = number;
                fixture.fix(&NewOrderSingle {
                    quantity: lots,
                    price: at(ticks),
                    ..sells(&id, "100")
                });
            }
            Step::CancelBuy => {
                fixture.native(&Request::Cancel(CancelOrder {
                    client_order_id: ClientOrderId(number),
                    orig_client_order_id: ClientOrderId(self.last_buy),
                    instrument: ALFA,
                    session: NATIVE,
                    side: Side::Buy,
                }));
            }
            Step::CancelSell => {
                let transact_time = fixture.now;
                fixture.fix(&OrderCancelRequest {
                    cl_ord_id: id.as_bytes(),
                    orig_cl_ord_id: last.as_bytes(),
                    quantity: 10,
                    side: b'2',
                    symbol: b"ALFA",
                    transact_time,
                });
            }
            Step::ReplaceSell { lots } => {
                let transact_time = fixture.now;
                self.last_sell = number;
                fixture.fix(&OrderCancelReplaceRequest {
                    cl_ord_id: id.as_bytes(),
                    orig_cl_ord_id: last.as_bytes(),
                    account: b"",
                    time_in_force: 0,
                    symbol: b"ALFA",
                    side: b'2',
                    quantity: lots,
                    ord_type: b'2',
                    price: price("100"),
                    transact_time,
                    fields: OrderFields::NONE,
                });
            }
            Step::Later(ms) => {
                fixture.pass(ms);
            }
            Step::Market(up) => {
                let market = if up { ["100", "100.02"] } else { ["99.99", "100.01"] };
                fixture.market(market, [100, 100]);
            }
            Step::Trade(lots) => self.trade(lots),
        }
    }

    fn trade(&mut self, lots: u64) {
        let (_, Some(Request::New(child))) = self.fixture.sent() else {
            return;
        };
        let fill = ExecReport {
            side: child.side,
            last_quantity: Quantity(lots.min(child.quantity.0)),
            last_price: child.price,
            ..report(child.client_order_id, ExecType::Fill)
        };
        say(&mut self.fixture, VENUE, &fill);
    }
}

/// What one report says of a trade.
struct Trade {
    account: u32,
    side: Side,
    lots: u64,
    number: u64,
    is_inside: bool,
}

/// All trades that clients were told of, by the records of a journal.
fn trades(entries: &[Entry]) -> Vec<Trade> {
    let mut trades = Vec::new();
    for (kind, _, _, payload) in entries {
        match Record::decode(*kind, payload) {
            Ok(Record::ClientOutput {
                session: NATIVE,
                message,
            }) => {
                let Ok(native::Message::Report(report)) = native::decode(message) else {
                    continue;
                };
                if report.exec_type == ExecType::Fill {
                    trades.push(Trade {
                        account: 2,
                        side: report.side,
                        lots: report.last_quantity.0,
                        number: report.exec_id.0,
                        is_inside: report.reason != Reason::None,
                    });
                }
            }
            Ok(Record::ClientOutput { session: FIX, message } | Record::ClientHeld { session: FIX, message }) => {
                let message = String::from_utf8_lossy(message).replace('\u{1}', "|");
                let number = |tag| field(&message, tag).and_then(|text| text.parse().ok()).unwrap_or(0);
                if field(&message, 150) == Some("F") && field(&message, 43).is_none() {
                    trades.push(Trade {
                        account: 1,
                        side: Side::Sell,
                        lots: number(32),
                        number: number(17),
                        is_inside: field(&message, 30) == Some("XOFF"),
                    });
                }
            }
            _ => {}
        }
    }
    trades
}

/// Each trade inside was told to either side, once, and the positions are what was told.
fn assert_told_once(fixture: &Fixture, entries: &[Entry], at: usize) {
    let trades = trades(entries);
    let numbers = trades.iter().map(|trade| trade.number).collect::<BTreeSet<_>>();
    assert_eq!(numbers.len(), trades.len(), "at {at}: a trade is told twice");
    let sum = |wanted: &dyn Fn(&Trade) -> bool| {
        let wanted = trades.iter().filter(|trade| wanted(trade));
        wanted.map(|trade| trade.lots).sum::<u64>()
    };
    let inside = [Side::Buy, Side::Sell].map(|side| sum(&|trade| trade.is_inside && trade.side == side));
    assert_eq!(inside[0], inside[1], "at {at}: one side was told");
    for account in [1, 2] {
        let told = [Side::Buy, Side::Sell].map(|side| sum(&|trade| trade.account == account && trade.side == side));
        let [bought, sold, ..] = fixture.held_by(account);
        assert_eq!([bought, sold], told, "at {at}: account {account}");
    }
    fixture.shard.shard().orders().audit().expect("all is counted");
}

fn is_output(entry: &Entry) -> bool {
    Kind::from_u16(entry.0).is_some_and(Kind::is_output)
}

fn is_answer(entry: &Entry) -> bool {
    matches!(
        Kind::from_u16(entry.0),
        Some(Kind::Refusal | Kind::TooFast | Kind::ReferencePrice)
    )
}

/// Trades inside, and outputs that were cut off and made again.
fn run(steps: &[Step]) -> (u64, u64) {
    let mut made_again = 0;
    let mut run = Run::new();
    for step in steps {
        run.step(step);
    }
    let crossed = run.fixture.crossed()[1];
    let (config, _folder) = run.fixture.stop();
    let whole = entries(&config.journal.of_shard(ShardId(0)).directory);
    for end in 2..=whole.len() {
        let (config, folder) = cut(&config, &whole[..end]);
        let (messages, reports) = came_in(&whole[..end]);
        let fixture = Fixture::go_on(&config, folder, messages + 1, reports);
        let journal = config.journal.of_shard(ShardId(0)).directory;
        let goes_on = entries(&journal);
        // Up to the next input, or to where the world was asked for something whose answer is lost, the same bytes come again.
        let outputs = whole[end..].iter().take_while(|entry| is_output(entry));
        for (first, again) in outputs.zip(&goes_on[end..]).take_while(|(_, again)| !is_answer(again)) {
            assert_eq!((first.0, &first.3), (again.0, &again.3), "at {end}");
            made_again += 1;
        }
        assert_told_once(&fixture, &goes_on, end);
        assert_replays(fixture);
    }
    (crossed, made_again)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn wherever_the_journal_of_a_crossing_run_ends_no_trade_is_lost_doubled_or_told_to_one_side(
        steps in prop::collection::vec(step(), 10..30)
    ) {
        run(&steps);
    }
}

/// The same for a run that crosses for certain, in every way there is.
#[test]
fn wherever_the_journal_ends_around_a_trade_inside_the_same_bytes_come_again() {
    let sell = |lots, ticks| Step::Sell { lots, ticks };
    let buy = |lots, ticks, immediate| Step::Buy { lots, ticks, immediate };
    let (crossed, made_again) = run(&[
        sell(10, 0),
        buy(4, 0, false),
        buy(14, 1, true),
        sell(5, 0),
        sell(5, 0),
        buy(10, 0, false),
        buy(3, 0, false),
        sell(5, -1),
        Step::Later(21),
        Step::Trade(2),
        sell(9, 0),
        buy(2, 0, false),
        Step::Market(true),
        buy(2, 0, false),
        Step::ReplaceSell { lots: 4 },
        Step::CancelSell,
        Step::Later(21),
    ]);
    assert!(crossed >= 5 && made_again >= 20, "{crossed} {made_again}");
}
