//! A naive model: maps in place of tables, wide integers, and the native decoder to say what is well formed. And scripts at
//! random, with the verdicts that it gives.

use prefilter::conformance::{Frame, Step};
use prefilter::{Action, Control, Reasons, SessionLimits, Slot, SymbolLimits};
use proto::native;
use std::collections::HashMap;
use types::{
    CancelOrder, ClientOrderId, InstrumentId, MassCancel, NewOrder, OrderTerms, OrderType, Price, Quantity,
    ReplaceOrder, Request, SessionId, Side, TimeInForce, Trigger,
};

#[derive(Default)]
struct Model {
    control: Control,
    symbols: HashMap<u32, SymbolLimits>,
    sessions: HashMap<u16, SessionLimits>,
    staged: Vec<Step>,
    bids: HashMap<u32, i128>,
    asks: HashMap<u32, i128>,
    due: HashMap<u16, i128>,
}

/// What the limits hold of a request.
struct Asked {
    instrument: u32,
    side: Side,
    price: Price,
    quantity: u64,
}

impl Model {
    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Control(control) => self.control = control,
            Step::Symbol(..) | Step::Session(..) => self.staged.push(step.clone()),
            Step::Touch(instrument, side, price) => {
                let table = match side {
                    Side::Buy => &mut self.bids,
                    Side::Sell => &mut self.asks,
                };
                table.remove(&instrument.0);
                if !price.is_null() {
                    table.insert(instrument.0, price.0.into());
                }
            }
            Step::Commit => {
                for change in std::mem::take(&mut self.staged) {
                    match change {
                        Step::Symbol(id, Some(limits)) => drop(self.symbols.insert(id.0, limits)),
                        Step::Symbol(id, None) => drop(self.symbols.remove(&id.0)),
                        Step::Session(id, Some(limits)) => drop(self.sessions.insert(id.0, limits)),
                        Step::Session(id, None) => drop(self.sessions.remove(&id.0)),
                        _ => {}
                    }
                }
            }
            Step::Frame(_) => {}
        }
    }

    fn judge(&mut self, now: u64, post_only: bool, message: &[u8]) -> (Reasons, u8, u8) {
        let closed = if self.control.enable { 0 } else { Action::CLOSED };
        if message.len() != 48 {
            return (Reasons::LEN, closed | Action::REFUSE, 0);
        }
        let session = u16::from_le_bytes([message[36], message[37]]);
        let request = match native::decode_request(message) {
            Ok(Request::New(order)) => Some((Some(asked_new(&order)), order.instrument)),
            Ok(Request::Replace(replace)) => Some((Some(asked_replace(&replace)), replace.instrument)),
            Ok(Request::Cancel(cancel)) => Some((None, cancel.instrument)),
            Ok(Request::MassCancel(mass)) => Some((None, mass.instrument.unwrap_or_default())),
            Ok(Request::Status(_) | Request::MassStatus(_)) | Err(_) => None,
        };
        let mut reasons = 0;
        let is_cancel = matches!(request, Some((None, _)));
        if !self.control.enable || (self.control.kill && !is_cancel) {
            reasons |= Reasons::KILL.0;
        }
        let limits = self.sessions.get(&session);
        if limits.is_none() {
            reasons |= Reasons::SESSION.0;
        }
        let Some((asked, instrument)) = request else {
            return (Reasons(reasons | Reasons::FIELD.0), closed | Action::REFUSE, 0);
        };
        let symbol = self.symbols.get(&instrument.0);
        let route = symbol.map_or(0, |symbol| symbol.route);
        let mut action = closed;
        if let Some(asked) = asked {
            match symbol {
                None => reasons |= Reasons::SYMBOL.0,
                Some(symbol) => {
                    if asked.quantity > u64::from(symbol.max_quantity) {
                        reasons |= Reasons::QTY.0;
                    }
                    let is_within = (symbol.lowest..=symbol.highest).contains(&asked.price);
                    if !asked.price.is_null() && !is_within {
                        reasons |= Reasons::PRICE.0;
                    }
                    if self.would_trade(&asked) {
                        action |= Action::MARKETABLE;
                        reasons |= if post_only { Reasons::TOUCH.0 } else { 0 };
                    }
                }
            }
            if let Some(limits) = limits {
                let due = self.due.entry(session).or_default();
                if *due > i128::from(now) + i128::from(limits.ahead_ns) {
                    reasons |= Reasons::RATE.0;
                } else if reasons == 0 {
                    *due = (*due).max(now.into()) + i128::from(limits.interval_ns);
                }
            }
        }
        if reasons != 0 {
            action |= Action::REFUSE;
        }
        (Reasons(reasons), action, route)
    }

    fn would_trade(&self, asked: &Asked) -> bool {
        let price = i128::from(asked.price.0);
        if asked.price.is_null() {
            return true;
        }
        match asked.side {
            // An order at the highest price of all counts as one that trades.
            Side::Buy => price >= self.asks.get(&asked.instrument).copied().unwrap_or(i64::MAX.into()),
            Side::Sell => self.bids.get(&asked.instrument).is_some_and(|&bid| price <= bid),
        }
    }
}

fn asked_new(order: &NewOrder) -> Asked {
    Asked {
        instrument: order.instrument.0,
        side: order.side,
        price: order.price,
        quantity: order.quantity.0,
    }
}

fn asked_replace(replace: &ReplaceOrder) -> Asked {
    Asked {
        instrument: replace.instrument.0,
        side: replace.side,
        price: replace.price,
        quantity: replace.quantity.0,
    }
}

/// xorshift64*: a run is a function of its seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).expect("an index")]
    }
}

/// A script of so many orders.
pub(crate) fn script(seed: u64, frames: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut model = Model::default();
    let mut steps = vec![Step::Commit];
    let mut now = 1_000_000_000;
    let mut count = 0;
    while count < frames {
        if random.one_in(8) {
            let step = change(&mut random, &model);
            model.apply(&step);
            steps.push(step);
            continue;
        }
        count += 1;
        now += random.of(&[0, 0, 1, 3, 500, 1_000, 1_000_000, 1 << 33]);
        let message = message(&mut random, &model, count as u64);
        let post_only = random.one_in(3);
        let (reasons, action, route) = model.judge(now, post_only, &message);
        steps.push(Step::Frame(Frame {
            slot: Slot::of(&message, now, post_only),
            reasons,
            action,
            route,
        }));
    }
    steps
}

/// Instruments and sessions that have limits at some time are below these.
const INSTRUMENTS: u64 = 12;
const SESSIONS: u64 = 6;

fn change(random: &mut Random, model: &Model) -> Step {
    let instrument = InstrumentId(u32::try_from(random.below(INSTRUMENTS)).expect("small"));
    let session = SessionId(u16::try_from(random.below(SESSIONS)).expect("small"));
    match random.below(10) {
        0 => Step::Control(Control {
            enable: !random.one_in(8),
            kill: random.one_in(8),
        }),
        1 if !model.control.enable => Step::Control(Control {
            enable: true,
            kill: false,
        }),
        1..=3 => {
            let lowest = price(random);
            let limits = SymbolLimits {
                max_quantity: random.of(&[1, 5, 1 << 16, u32::MAX - 2, u32::MAX]),
                lowest: Price(lowest),
                highest: Price(lowest.saturating_add(random.of(&[0, 1, 1 << 31, 1 << 32, 1 << 62]))),
                route: random.of(&[0, 1, 255]),
            };
            Step::Symbol(instrument, (!random.one_in(8)).then_some(limits))
        }
        4 | 5 => {
            let limits = SessionLimits {
                interval_ns: random.of(&[1, 1_000, u32::MAX]),
                ahead_ns: random.of(&[0, 1, 4_000, 1 << 32, (1 << 48) - 1]),
            };
            Step::Session(session, (!random.one_in(8)).then_some(limits))
        }
        6 | 7 => {
            let side = random.of(&[Side::Buy, Side::Sell]);
            let price = if random.one_in(4) { i64::MIN } else { price(random) };
            Step::Touch(instrument, side, Price(price))
        }
        _ => Step::Commit,
    }
}

/// Never the null.
fn price(random: &mut Random) -> i64 {
    let base = random.of(&[
        0,
        7,
        1 << 32,
        -(1 << 32),
        i64::MAX / 2,
        i64::MIN / 2,
        i64::MAX - 9,
        i64::MIN + 9,
    ]);
    base + random.of(&[-2, -1, 0, 1, 2])
}

fn message(random: &mut Random, model: &Model, number: u64) -> Vec<u8> {
    let instrument = u32::try_from(random.below(INSTRUMENTS)).expect("small");
    let limits = model.symbols.get(&instrument);
    let near = |random: &mut Random, value: i64| value.saturating_add(random.of(&[-1, 0, 0, 1]));
    let price = match limits {
        Some(limits) if !random.one_in(4) => {
            let bound = random.of(&[limits.lowest.0, limits.highest.0]);
            near(random, bound)
        }
        _ => price(random),
    };
    let price = Price(price.clamp(i64::MIN + 1, i64::MAX - 1));
    let most = limits.map_or(3, |limits| i64::from(limits.max_quantity));
    let quantity = if random.one_in(3) { near(random, most) } else { 1 };
    let quantity = Quantity(quantity.clamp(1, i64::from(u32::MAX) - 1).cast_unsigned());
    let side = random.of(&[Side::Buy, Side::Sell]);
    let instrument = InstrumentId(
        instrument
            + if random.one_in(20) {
                random.of(&[1 << 20, 1 << 31])
            } else {
                0
            },
    );
    let session = u16::try_from(random.below(SESSIONS)).expect("small");
    let session = SessionId(if random.one_in(30) { session | 0x8000 } else { session });
    let client_order_id = ClientOrderId(number);
    let request = match random.below(8) {
        0 => Request::Cancel(CancelOrder {
            client_order_id,
            orig_client_order_id: ClientOrderId(1),
            instrument,
            session,
            side,
        }),
        1 => Request::MassCancel(MassCancel {
            client_order_id,
            session,
            instrument: Some(instrument),
        }),
        2 | 3 => Request::Replace(ReplaceOrder {
            client_order_id,
            orig_client_order_id: ClientOrderId(1),
            instrument,
            session,
            side,
            price,
            quantity,
            terms: OrderTerms::NONE,
        }),
        kind => {
            let is_market = kind == 7 && random.one_in(3);
            Request::New(NewOrder {
                client_order_id,
                instrument,
                account: types::AccountId(1),
                session,
                side,
                order_type: if is_market { OrderType::Market } else { OrderType::Limit },
                time_in_force: random.of(&[TimeInForce::Day, TimeInForce::ImmediateOrCancel]),
                price: if is_market { Price::NULL } else { price },
                quantity,
                trigger: Trigger(number),
                terms: OrderTerms::NONE,
            })
        }
    };
    let mut bytes = [0; native::MAX_MESSAGE_LENGTH];
    let length = native::encode_request(&request, &mut bytes);
    let mut bytes = bytes[..length].to_vec();
    if random.one_in(10) {
        // Anything anywhere.
        let at = usize::try_from(random.below(40)).expect("small");
        bytes[at] = random.of(&[0, 1, 2, 3, 0x10, 0x20, 0x7f, 0x80, 0xff]);
    }
    if random.one_in(40) {
        let length = usize::try_from(random.below(100)).expect("small");
        bytes.resize(length, 0x5a);
    }
    bytes
}
