//! Everything that keeps orders in the gateway at once, over links that are full now and then, and everything that an operator
//! stops, closes and ends: whatever happens, the journal gives it again, with the state that it led to, also cut off anywhere,
//! and what is counted is what a recount finds.

use crate::cross::{at, price};
use crate::first_stage::{OTHER, OTHER_VENUE, assert_replays, report, say};
use crate::fix::{Logon, order};
use crate::fixture::*;
use crate::held::TYPES;
use crate::recovery::{came_in, cut, entries};
use gateway::control::{Action, Order};
use gateway::harness::Harness;
use orders::{KillScope, Limit, LimitScope, LimitValue, Party, Traded};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use proto::fix::NewOrderSingle;
use proto::journal::Kind;
use proto::native;
use types::{
    AccountId, CancelOrder, ClientOrderId, Duration, ExecReport, ExecType, InstrumentId, LimitClass, MassCancel,
    NewOrder, OrderTerms, OrderType, Price, Quantity, Reason, ReplaceOrder, Request, ShardId, Side, TimeInForce,
    TradingDay, VenueId,
};

/// Both sessions cross; the native one's orders are too fast now and then, cancel own ones, and go to two venues by account,
/// one of which has a limit of the loss that a few ticks reach.
const PARTS: [(&str, &str); 6] = [
    ("[[accounts]]\n", OTHER_VENUE),
    (
        "[[accounts]]\nid = 1\n",
        "[[accounts]]\nid = 2\nmax_quantity_lots = 1_000\nmax_notional = \"1000000\"\nmax_open_orders = 100\n\
         max_open_notional = \"1000000\"\nmax_loss = \"0.2\"\n[[accounts]]\nid = 1\n",
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
    Stop(Stop, KillScope),
    /// The native session is shut out, and comes again.
    Disable,
    Close(Party, Traded),
    /// All that was stopped or closed goes on.
    GoOn,
    Roll,
    /// A venue tells of a trade of one of the orders that it was sent, whatever became of that.
    Late(u8, usize, u64),
    /// Places left on a venue's link; eight are set aside for cancels.
    Room(u8, usize),
    Venue(u8, bool),
    /// What the venue says of the last that it was sent.
    Answer(u8, u8, u64),
    Market(i64, i64),
    Later(u64),
}

/// What an operator does to a firm, an account or a session.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Kill,
    LetReduce,
    Cancel,
}

fn scopes() -> [KillScope; 5] {
    let [one, other] = [1, 2].map(|id| KillScope::Account(AccountId(id)));
    [
        KillScope::Firm,
        one,
        other,
        KillScope::Session(FIX),
        KillScope::Session(NATIVE),
    ]
}

fn closings() -> Vec<(Party, Traded)> {
    let [one, other] = [1, 2].map(|id| Party::Account(AccountId(id)));
    let parties = [one, other, Party::Session(FIX), Party::Session(NATIVE)];
    let [alfa, beta] = [1, 2].map(|id| Traded::Instrument(InstrumentId(id)));
    let all = [Traded::Class(LimitClass(0)), alfa, beta];
    parties
        .into_iter()
        .flat_map(|party| all.map(|traded| (party, traded)))
        .collect()
}

fn step() -> impl Strategy<Value = Step> {
    let stop = prop::sample::select(vec![Stop::Kill, Stop::LetReduce, Stop::Cancel]);
    let closing = prop::sample::select(closings());
    prop_oneof![
        20 => (0u8..14, 1u32..3, any::<bool>(), -2i64..3, 1u64..15)
            .prop_map(|(kind, account, buy, ticks, lots)| Step::Native { kind, account, buy, ticks, lots }),
        12 => (any::<bool>(), -1i64..2, 1u64..15).prop_map(|(buy, ticks, lots)| Step::Fix { buy, ticks, lots }),
        5 => (0u64..6).prop_map(Step::Cancel),
        4 => (0u64..6, 1u64..20).prop_map(|(back, lots)| Step::Replace(back, lots)),
        1 => Just(Step::MassCancel),
        1 => Just(Step::Lost),
        1 => (stop, prop::sample::select(scopes().to_vec())).prop_map(|(stop, scope)| Step::Stop(stop, scope)),
        1 => Just(Step::Disable),
        1 => closing.prop_map(|(party, traded)| Step::Close(party, traded)),
        4 => Just(Step::GoOn),
        1 => Just(Step::Roll),
        4 => (0u8..2, 0usize..8, 1u64..5).prop_map(|(venue, back, lots)| Step::Late(venue, back, lots)),
        4 => (0u8..2, prop::sample::select(vec![0, 8, 64, 64, 64, 64, 64])).prop_map(|(venue, room)| Step::Room(venue, room)),
        1 => (0u8..2, prop::bool::weighted(0.8)).prop_map(|(venue, is_up)| Step::Venue(venue, is_up)),
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
    /// By venue: orders that were the last it was sent when a step had ended.
    sent: [Vec<NewOrder>; 2],
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
            sent: [const { Vec::new() }; 2],
            day: 20_261_200,
        }
    }

    fn operator(&mut self, action: Action) {
        self.fixture.shard.control(&Order {
            operator: 1,
            number: self.number,
            action,
        });
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
            Step::Stop(stop, scope) => self.operator(match stop {
                Stop::Kill => Action::Kill(scope),
                Stop::LetReduce => Action::LetReduce(scope),
                Stop::Cancel => Action::Cancel(scope),
            }),
            Step::Disable => {
                self.operator(Action::Disable(NATIVE));
                self.fixture.shard.disconnect(NATIVE);
                self.operator(Action::Enable(NATIVE));
                self.fixture.shard.connect(NATIVE);
            }
            Step::Close(party, traded) => self.close(party, traded, true),
            Step::GoOn => {
                scopes()
                    .into_iter()
                    .for_each(|scope| self.operator(Action::Revive(scope)));
                closings()
                    .into_iter()
                    .for_each(|(party, traded)| self.close(party, traded, false));
            }
            Step::Roll => {
                self.day += 1;
                self.operator(Action::Roll(TradingDay(self.day)));
            }
            Step::Late(venue, back, lots) => self.late(VenueId(venue), back, lots),
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
        self.note_sent();
        self.fixture.shard.shard().orders().audit().expect("all is counted");
    }

    fn close(&mut self, party: Party, traded: Traded, closes: bool) {
        self.operator(Action::SetLimit {
            scope: LimitScope::Trade(party, traded),
            limit: Limit::Restricted,
            value: LimitValue::Switch(closes),
        });
    }

    fn note_sent(&mut self) {
        for (venue, orders) in (0..).map(VenueId).zip(&mut self.sent) {
            let (_, last) = self.fixture.shard.sent_to_venue(venue);
            if let Ok(Request::New(order)) = native::decode_request(last)
                && orders.last() != Some(&order)
            {
                orders.push(order);
            }
        }
    }

    fn late(&mut self, venue: VenueId, back: usize, lots: u64) {
        let Some(order) = self.sent[usize::from(venue.0)].iter().rev().nth(back) else {
            return;
        };
        let said = ExecReport {
            side: order.side,
            last_quantity: Quantity(lots),
            last_price: price("100"),
            ..report(order.client_order_id, ExecType::Fill)
        };
        say(&mut self.fixture, venue, &said);
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

/// After so many steps the state is looked at, to be found again in a replay of the journal so far.
const STEPS_BETWEEN_LOOKS: usize = 12;

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 256, ..ProptestConfig::default() })]
    #[test]
    fn whatever_keeps_orders_here_and_whichever_link_is_full_the_journal_gives_it_again(
        steps in prop::collection::vec(step(), 20..120),
        first in 2usize..20,
    ) {
        let mut run = Run::new();
        let mut lived = Vec::new();
        for some in steps.chunks(STEPS_BETWEEN_LOOKS) {
            some.iter().for_each(|step| run.step(step));
            let records = entries(&run.fixture.config.journal.of_shard(ShardId(0)).directory).len();
            lived.push((records, run.fixture.shard.state(&run.fixture.config)));
        }
        let (config, _folder) = run.fixture.stop();
        let whole = entries(&config.journal.of_shard(ShardId(0)).directory);
        gateway::replay::verify(&config, ShardId(0)).expect("it replays");
        for (records, lived) in lived {
            let (config, _folder) = cut(&config, &whole[..records]);
            prop_assert_eq!(Harness::replayed_state(&config).expect("it replays"), lived);
        }
        for end in (first..whole.len()).step_by(whole.len() / 6 + 1) {
            let (config, folder) = cut(&config, &whole[..end]);
            let (messages, reports) = came_in(&whole[..end]);
            let fixture = Fixture::go_on(&config, folder, messages + 1, reports);
            fixture.shard.shard().orders().audit().expect("all is counted");
            assert_replays(fixture);
        }
    }
}

/// What the steps are there for happens in them.
#[test]
fn the_steps_reach_both_venues_and_all_that_is_refused_and_told_late() {
    const REFUSALS: [Reason; 5] = [
        Reason::Restricted,
        Reason::LossLimit,
        Reason::Killed,
        Reason::VenueFull,
        Reason::VenueDown,
    ];
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 120);
    let (mut refused, mut late, mut crossed, mut marked) = ([0; REFUSALS.len()], 0, 0, 0);
    let mut sent = [0; 2];
    for _ in 0..32 {
        let mut run = Run::new();
        for step in &steps.new_tree(&mut runner).expect("steps").current() {
            run.step(step);
        }
        let counters = run.fixture.shard.shard().orders().counters();
        for (count, reason) in refused.iter_mut().zip(REFUSALS) {
            *count += counters.refused(reason);
        }
        (late, crossed) = (late + counters.late_trades, crossed + counters.crossed);
        for (count, venue) in sent.iter_mut().zip([VENUE, OTHER]) {
            *count += run.fixture.shard.sent_to_venue(venue).0;
        }
        let (config, _folder) = run.fixture.stop();
        let records = entries(&config.journal.of_shard(ShardId(0)).directory);
        marked += records.iter().filter(|(kind, ..)| *kind == Kind::Mark as u16).count();
    }
    let seen = format!("{refused:?} refused, {late} late, {crossed} crossed, {marked} marks, {sent:?} sent");
    assert!(refused.iter().all(|&count| count > 0), "{seen}");
    assert!(late > 0 && crossed > 0 && marked > 0 && !sent.contains(&0), "{seen}");
}
