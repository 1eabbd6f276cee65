//! Everything that keeps orders in the gateway at once, over links that are full now and then: whatever happens, the journal
//! gives it again, also cut off anywhere, and what is counted is what a recount finds.

use crate::cross::{at, price};
use crate::first_stage::{OTHER, OTHER_VENUE, assert_replays, report, say};
use crate::fix::{Logon, order};
use crate::fixture::*;
use crate::held::TYPES;
use crate::recovery::{came_in, cut, entries};
use gateway::control::{Action, Order};
use orders::KillScope;
use proptest::prelude::*;
use proto::fix::NewOrderSingle;
use proto::native;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecReport, ExecType, MassCancel, NewOrder, OrderTerms, OrderType,
    Price, Quantity, Reason, ReplaceOrder, Request, Side, TimeInForce, TradingDay, VenueId,
};

/// Both sessions cross; the native one's orders are too fast now and then, cancel own ones, and go to two venues by account,
/// one of which has a limit of the loss.
const PARTS: [(&str, &str); 6] = [
    ("[[accounts]]\n", OTHER_VENUE),
    (
        "[[accounts]]\nid = 1\n",
        "[[accounts]]\nid = 2\nmax_quantity_lots = 1_000\nmax_notional = \"1000000\"\nmax_open_orders = 100\n\
         max_open_notional = \"1000000\"\nmax_loss = \"1000\"\n[[accounts]]\nid = 1\n",
    ),
    ("mark_every_ms = 1_000", "mark_every_ms = 10"),
    (
        "accounts = [1]\nowner = 2\n",
        "accounts = [1, 2]\nowner = 2\ncrossing = true\nself_match = \"cancel_oldest\"\nmax_orders_per_second = 200\n\
         max_orders_at_once = 3\nrate_action = \"queue\"\n",
    ),
    (
        "owner = 1\n",
        "owner = 1\ncrossing = true\ncancel_on_disconnect = false\n",
    ),
    (
        "[capacity]",
        "[[routes]]\naccount = 2\nvenue = \"other\"\n[first_stage]\nown_cancel_wait_ms = 30\nwaiting_orders = 2\n\
         held_orders = 6\npeg_interval_ms = 5\n[first_stage.crossing]\nsymbols = [\"ALFA\"]\nrest_ms = 20\n\
         [feed]\nlisten = \"127.0.0.1:7110\"\nrequest = \"127.0.0.1:7100\"\n\
         [risk.rate_queue]\norders = 3\nwait_ms = 50\n[capacity]",
    ),
];

#[derive(Clone, Debug)]
enum Step {
    Native {
        kind: u8,
        account: u32,
        buy: bool,
        ticks: i64,
        lots: u64,
    },
    Fix {
        buy: bool,
        ticks: i64,
        lots: u64,
    },
    /// Of one of the last native orders.
    Cancel(u64),
    Replace(u64, u64),
    MassCancel,
    Lost,
    Kill(bool),
    Roll,
    /// Places left on a venue's link; eight are set aside for cancels.
    Room(u8, usize),
    Venue(u8, bool),
    /// What the venue says of the last that it was sent.
    Answer(u8, u8, u64),
    Market(i64, i64),
    Later(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0u8..8, 1u32..3, any::<bool>(), -2i64..3, 1u64..15)
            .prop_map(|(kind, account, buy, ticks, lots)| Step::Native { kind, account, buy, ticks, lots }),
        4 => (any::<bool>(), -1i64..2, 1u64..15).prop_map(|(buy, ticks, lots)| Step::Fix { buy, ticks, lots }),
        5 => (0u64..6).prop_map(Step::Cancel),
        4 => (0u64..6, 1u64..20).prop_map(|(back, lots)| Step::Replace(back, lots)),
        1 => Just(Step::MassCancel),
        1 => Just(Step::Lost),
        1 => any::<bool>().prop_map(Step::Kill),
        1 => Just(Step::Roll),
        5 => (0u8..2, prop::sample::select(vec![0, 8, 64])).prop_map(|(venue, room)| Step::Room(venue, room)),
        1 => (0u8..2, prop::bool::weighted(0.7)).prop_map(|(venue, is_up)| Step::Venue(venue, is_up)),
        10 => (0u8..2, 0u8..4, 1u64..15).prop_map(|(venue, mood, lots)| Step::Answer(venue, mood, lots)),
        5 => (-2i64..3, -3i64..4).prop_map(|(bid, last)| Step::Market(bid, last)),
        6 => (1u64..30).prop_map(Step::Later),
    ]
}

struct Run {
    fixture: Fixture,
    number: u64,
    /// Native orders.
    orders: Vec<NewOrder>,
    day: u32,
}

impl Run {
    fn new() -> Self {
        let mut fixture = Fixture::changed(&[&PARTS[..], &[("name = \"sim\"", TYPES)]].concat());
        fixture.fix(&Logon);
        Self {
            fixture,
            number: 0,
            orders: Vec::new(),
            day: 20_261_130,
        }
    }

    fn step(&mut self, step: &Step) {
        self.number += 1;
        let number = self.number;
        match *step {
            Step::Native { .. } => self.native(step),
            Step::Fix { buy, ticks, lots } => {
                let id = format!("A-{number}");
                self.fixture.fix(&NewOrderSingle {
                    side: if buy { b'1' } else { b'2' },
                    price: at(ticks),
                    quantity: lots,
                    ..order(&id, "ALFA")
                });
            }
            Step::Cancel(back) => {
                if let Some(order) = self.recent(back) {
                    self.fixture.native(&Request::Cancel(CancelOrder {
                        client_order_id: ClientOrderId(number),
                        orig_client_order_id: order.client_order_id,
                        instrument: ALFA,
                        session: NATIVE,
                        side: order.side,
                    }));
                }
            }
            Step::Replace(back, lots) => {
                if let Some(order) = self.recent(back) {
                    self.fixture.native(&Request::Replace(ReplaceOrder {
                        client_order_id: ClientOrderId(number),
                        orig_client_order_id: order.client_order_id,
                        instrument: ALFA,
                        session: NATIVE,
                        side: order.side,
                        price: order.price,
                        quantity: Quantity(lots),
                        terms: order.terms,
                    }));
                }
            }
            Step::MassCancel => {
                self.fixture.native(&Request::MassCancel(MassCancel {
                    client_order_id: ClientOrderId(number),
                    instrument: None,
                    session: NATIVE,
                }));
            }
            Step::Lost => {
                self.fixture.shard.disconnect(NATIVE);
                self.fixture.shard.connect(NATIVE);
            }
            Step::Kill(on) => {
                let scope = KillScope::Account(AccountId(2));
                let action = if on { Action::Kill(scope) } else { Action::Revive(scope) };
                self.fixture.shard.control(&Order {
                    operator: 1,
                    number,
                    action,
                });
            }
            Step::Roll => {
                self.day += 1;
                self.fixture.shard.roll(TradingDay(self.day));
            }
            Step::Room(venue, room) => self.fixture.shard.set_venue_room(VenueId(venue), room),
            Step::Venue(venue, is_up) => self.fixture.shard.set_venue_up(VenueId(venue), is_up),
            Step::Answer(venue, mood, lots) => self.answer(VenueId(venue), mood, lots),
            Step::Market(bid, last) => {
                let mut book = alfa(self.fixture.now);
                (book.bid.price, book.ask.price, book.last) = (at(bid - 1), at(bid + 1), at(last));
                self.fixture.shard.price(ALFA, &book);
            }
            Step::Later(ms) => {
                self.fixture.now = self.fixture.now + Duration::from_millis(ms);
                self.fixture.shard.set_now(self.fixture.now);
            }
        }
        self.fixture.shard.turn();
        self.fixture.native_reports();
        self.fixture.shard.shard().orders().audit().expect("all is counted");
    }

    fn native(&mut self, step: &Step) {
        let &Step::Native {
            kind,
            account,
            buy: buys,
            ticks,
            lots,
        } = step
        else {
            return;
        };
        let (side, away) = if buys { (Side::Buy, 2) } else { (Side::Sell, -2) };
        let terms = OrderTerms {
            stop_price: if kind == 1 || kind == 2 { at(away) } else { Price::NULL },
            display: if kind == 3 { Quantity(2) } else { Quantity::ZERO },
            ..OrderTerms::NONE
        };
        let order_type = match kind {
            1 => OrderType::Stop,
            2 => OrderType::StopLimit,
            4 => OrderType::PegPrimary,
            _ => OrderType::Limit,
        };
        let order = NewOrder {
            account: AccountId(account),
            side,
            order_type,
            time_in_force: match kind {
                5 => TimeInForce::ImmediateOrCancel,
                6 => TimeInForce::GoodTillCancel,
                _ => TimeInForce::Day,
            },
            price: if kind == 1 { Price::NULL } else { at(ticks) },
            quantity: Quantity(lots),
            terms,
            ..buy(self.number)
        };
        self.orders.push(order);
        self.fixture.native(&Request::New(order));
    }

    fn recent(&self, back: u64) -> Option<NewOrder> {
        let back = usize::try_from(back).expect("few");
        self.orders.iter().rev().nth(back).copied()
    }

    fn answer(&mut self, venue: VenueId, mood: u8, lots: u64) {
        let (_, last) = self.fixture.shard.sent_to_venue(venue);
        let Ok(request) = native::decode_request(last) else {
            return;
        };
        let (exec_type, side, most) = match request {
            Request::New(order) => (
                [ExecType::New, ExecType::Fill, ExecType::Fill, ExecType::Rejected],
                order.side,
                order.quantity.0,
            ),
            Request::Cancel(cancel) => {
                let canceled = ExecType::Canceled;
                (
                    [canceled, canceled, canceled, ExecType::RequestRejected],
                    cancel.side,
                    0,
                )
            }
            Request::Replace(replace) => {
                let replaced = ExecType::Replaced;
                (
                    [replaced, replaced, replaced, ExecType::RequestRejected],
                    replace.side,
                    0,
                )
            }
            _ => return,
        };
        let exec_type = exec_type[usize::from(mood)];
        let is_fill = exec_type == ExecType::Fill;
        let said = ExecReport {
            side,
            last_quantity: if is_fill {
                Quantity(lots.min(most))
            } else {
                Quantity::ZERO
            },
            last_price: if is_fill { price("100") } else { Price::NULL },
            reason: if exec_type == ExecType::RequestRejected {
                Reason::TooLate
            } else {
                Reason::None
            },
            ..report(request.client_order_id(), exec_type)
        };
        say(&mut self.fixture, venue, &said);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 256, ..ProptestConfig::default() })]
    #[test]
    fn whatever_keeps_orders_here_and_whichever_link_is_full_the_journal_gives_it_again(
        steps in prop::collection::vec(step(), 20..120),
        first in 2usize..20,
    ) {
        let mut run = Run::new();
        for step in &steps {
            run.step(step);
        }
        let (config, _folder) = run.fixture.stop();
        let whole = entries(&config.journal.of_shard(types::ShardId(0)).directory);
        gateway::replay::verify(&config, types::ShardId(0)).expect("it replays");
        for end in (first..whole.len()).step_by(whole.len() / 6 + 1) {
            let (config, folder) = cut(&config, &whole[..end]);
            let (messages, reports) = came_in(&whole[..end]);
            let fixture = Fixture::go_on(&config, folder, messages + 1, reports);
            fixture.shard.shard().orders().audit().expect("all is counted");
            assert_replays(fixture);
        }
    }
}

/// The other venue is in use too.
#[test]
fn the_steps_reach_both_venues() {
    let mut run = Run::new();
    for account in [1, 2] {
        run.step(&Step::Native {
            kind: 0,
            account,
            buy: true,
            ticks: 3,
            lots: 1,
        });
    }
    assert_eq!(
        [VENUE, OTHER].map(|venue| run.fixture.shard.sent_to_venue(venue).0),
        [1, 1]
    );
}
