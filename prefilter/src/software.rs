//! The backend in software: the default, and what the others are compared with.

use crate::PreFilter;
use crate::abi::{Action, MESSAGE_LENGTH, POST_ONLY, Reasons, Slot, Verdict};
use crate::limits::{Caps, Control, Counters, Fault, MAX_AHEAD_NS, SessionLimits, Staged, SymbolLimits};
use crate::message::{Kind, Order};
use std::collections::VecDeque;
use types::{InstrumentId, Price, SessionId, Side, Timestamp};

/// Tables by number: no search, one line of the cache for an instrument and one for a session.
#[derive(Debug)]
pub struct Software {
    symbols: Vec<Symbol>,
    sessions: Vec<Session>,
    /// What takes effect with the next commit, in the order in which it was said.
    staged: Vec<Staged>,
    control: Control,
    generation: u32,
    counters: Counters,
    /// Verdicts that nobody has taken yet.
    verdicts: VecDeque<Verdict>,
}

/// What the limits say of one order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// Empty: it passes.
    pub reasons: Reasons,
    /// What is to be done with it.
    pub action: Action,
    /// The instrument's route; 0: none.
    pub route: u8,
}

/// Verdicts that wait for a poll, at most.
pub const VERDICTS_MAX: usize = 1 << 12;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Symbol {
    lowest: i64,
    highest: i64,
    bid: i64,
    ask: i64,
    /// 0: no limits.
    max_quantity: u32,
    route: u8,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    /// 0: no limits.
    interval: u32,
    ahead: u64,
    /// When the orders taken so far would be due if each took its share of time.
    due: u64,
}

impl Software {
    /// Tables for so many instruments and sessions, all without limits; closed.
    #[must_use]
    pub fn new(caps: Caps) -> Self {
        let symbol = Symbol {
            lowest: i64::MIN,
            highest: i64::MAX,
            bid: NO_BID,
            ask: NO_ASK,
            max_quantity: 0,
            route: 0,
        };
        let session = Session {
            interval: 0,
            ahead: 0,
            due: 0,
        };
        Self {
            symbols: vec![symbol; caps.symbols as usize],
            sessions: vec![session; caps.sessions as usize],
            staged: Vec::with_capacity(caps.symbols as usize + caps.sessions as usize),
            control: Control::default(),
            generation: 0,
            counters: Counters::default(),
            verdicts: VecDeque::with_capacity(VERDICTS_MAX),
        }
    }

    /// Bytes that tables of this size take.
    #[must_use]
    pub const fn memory_bytes(caps: Caps) -> usize {
        let symbol = size_of::<Symbol>() + size_of::<Staged>();
        let session = size_of::<Session>() + size_of::<Staged>();
        caps.symbols as usize * symbol + caps.sessions as usize * session + VERDICTS_MAX * size_of::<Verdict>()
    }

    /// What was counted; [`PreFilter::counters`] for who only looks.
    #[must_use]
    pub const fn counted(&self) -> &Counters {
        &self.counters
    }

    /// Of the limits in force.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Judges one order and counts it. An order that passes is charged to its session's rate.
    #[inline]
    pub fn judge(&mut self, now: Timestamp, order: &Order) -> Judgement {
        let is_order = order.kind == Kind::Order;
        let mut reasons = self.shut(is_order);
        let mut action = self.closed();

        let session = self.sessions.get_mut(usize::from(order.session));
        let session = session.filter(|session| session.interval != 0);
        reasons |= flag(session.is_none(), Reasons::SESSION);

        let symbol = self.symbols.get(order.instrument as usize);
        let symbol = symbol.filter(|symbol| symbol.max_quantity != 0);
        let route = symbol.map_or(0, |symbol| symbol.route);

        if is_order {
            match symbol {
                Some(symbol) => {
                    let is_marketable = symbol.would_trade(order);
                    reasons |= flag(order.quantity > symbol.max_quantity, Reasons::QTY);
                    reasons |= flag(symbol.is_outside(order.price), Reasons::PRICE);
                    reasons |= flag(is_marketable & order.post_only, Reasons::TOUCH);
                    action |= if is_marketable { Action::MARKETABLE } else { 0 };
                }
                None => reasons |= Reasons::SYMBOL.0,
            }
            if let Some(session) = session {
                reasons |= flag(!session.allows(now), Reasons::RATE);
                if reasons == 0 {
                    session.take(now);
                }
            }
        }
        self.count(Judgement {
            reasons: Reasons(reasons),
            action: Action(action),
            route,
        })
    }

    /// Judges a message as it came.
    pub fn judge_message(&mut self, now: Timestamp, message: &[u8], post_only: bool) -> Judgement {
        let Ok(message) = <&[u8; MESSAGE_LENGTH]>::try_from(message) else {
            return self.refuse(Reasons::LEN.0);
        };
        match Order::parse(message, post_only) {
            Some(order) => self.judge(now, &order),
            None => self.refuse_field(message),
        }
    }

    /// A message whose form is wrong: only whether anything passes, and for whom, is looked at beside that.
    #[cold]
    fn refuse_field(&mut self, message: &[u8; MESSAGE_LENGTH]) -> Judgement {
        let session = u16::from_le_bytes([message[36], message[37]]);
        let session = self.sessions.get(usize::from(session));
        let is_unknown = session.is_none_or(|session| session.interval == 0);
        // Only a well-formed cancel is known to be one.
        let reasons = Reasons::FIELD.0 | self.shut(true) | flag(is_unknown, Reasons::SESSION);
        self.refuse(reasons)
    }

    #[cold]
    fn refuse(&mut self, reasons: u16) -> Judgement {
        self.count(Judgement {
            reasons: Reasons(reasons),
            action: Action(self.closed()),
            route: 0,
        })
    }

    fn shut(&self, is_order: bool) -> u16 {
        flag(!self.control.enable | (self.control.kill & is_order), Reasons::KILL)
    }

    fn closed(&self) -> u8 {
        if self.control.enable { 0 } else { Action::CLOSED }
    }

    fn count(&mut self, mut judgement: Judgement) -> Judgement {
        self.counters.count(judgement.reasons);
        if judgement.reasons != Reasons::NONE {
            judgement.action.0 |= Action::REFUSE;
        }
        judgement
    }

    fn stage(&mut self, change: Staged) -> Result<(), Fault> {
        if self.staged.len() == self.staged.capacity() {
            return Err(Fault::StageFull);
        }
        self.staged.push(change);
        Ok(())
    }
}

impl PreFilter for Software {
    #[allow(clippy::cast_possible_truncation, reason = "both came as u32")]
    fn caps(&self) -> Caps {
        Caps {
            symbols: self.symbols.len() as u32,
            sessions: self.sessions.len() as u32,
        }
    }

    fn set_control(&mut self, control: Control) -> Result<(), Fault> {
        self.control = control;
        Ok(())
    }

    fn set_symbol(&mut self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        self.caps().check_symbol(instrument, limits)?;
        self.stage(Staged::Symbol(instrument, limits))
    }

    fn set_session(&mut self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        self.caps().check_session(session, limits)?;
        self.stage(Staged::Session(session, limits))
    }

    fn set_touch(&mut self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Fault> {
        self.caps().check_symbol(instrument, None)?;
        let symbol = &mut self.symbols[instrument.0 as usize];
        match side {
            Side::Buy => symbol.bid = price.0,
            Side::Sell => symbol.ask = if price.is_null() { NO_ASK } else { price.0 },
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<u32, Fault> {
        for change in self.staged.drain(..) {
            match change {
                Staged::Symbol(instrument, limits) => {
                    let symbol = &mut self.symbols[instrument.0 as usize];
                    symbol.max_quantity = limits.map_or(0, |limits| limits.max_quantity);
                    if let Some(limits) = limits {
                        symbol.lowest = limits.lowest.0;
                        symbol.highest = limits.highest.0;
                        symbol.route = limits.route;
                    }
                }
                Staged::Session(session, limits) => {
                    let session = &mut self.sessions[usize::from(session.0)];
                    session.interval = limits.map_or(0, |limits| limits.interval_ns);
                    session.ahead = limits.map_or(0, |limits| limits.ahead_ns);
                }
            }
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(self.generation)
    }

    fn submit(&mut self, slots: &[Slot]) -> usize {
        let count = slots.len().min(VERDICTS_MAX - self.verdicts.len());
        for slot in &slots[..count] {
            let generation = self.generation;
            let judgement = if usize::from(slot.length.get()) == MESSAGE_LENGTH {
                let now = Timestamp(slot.now.get());
                self.judge_message(now, &slot.message, slot.flags & POST_ONLY != 0)
            } else {
                self.refuse(Reasons::LEN.0)
            };
            self.verdicts.push_back(Verdict {
                sequence: slot.sequence,
                generation: generation.into(),
                reasons: judgement.reasons.0.into(),
                action: judgement.action.0,
                route: judgement.route,
                ..Verdict::default()
            });
        }
        count
    }

    fn poll(&mut self, verdicts: &mut [Verdict]) -> usize {
        let count = verdicts.len().min(self.verdicts.len());
        for (place, verdict) in verdicts.iter_mut().zip(self.verdicts.drain(..count)) {
            *place = verdict;
        }
        count
    }

    fn counters(&mut self) -> Counters {
        self.counters
    }

    fn health(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Symbol {
    fn is_outside(&self, price: Price) -> bool {
        !price.is_null() & ((price.0 < self.lowest) | (price.0 > self.highest))
    }

    /// Whether the order meets the other side's best price. One without a price always does.
    fn would_trade(&self, order: &Order) -> bool {
        let meets = match order.side {
            Side::Buy => order.price.0 >= self.ask,
            Side::Sell => order.price.0 <= self.bid,
        };
        meets | order.price.is_null()
    }
}

impl Session {
    fn allows(&self, now: Timestamp) -> bool {
        self.due <= now.0.wrapping_add(self.ahead)
    }

    fn take(&mut self, now: Timestamp) {
        self.due = self.due.max(now.0).wrapping_add(self.interval.into());
    }
}

impl Caps {
    /// Whether an instrument can have these limits.
    pub(crate) fn check_symbol(self, instrument: InstrumentId, limits: Option<SymbolLimits>) -> Result<(), Fault> {
        within(instrument.0, self.symbols)?;
        match limits {
            Some(limits) if limits.max_quantity == 0 => Err(Fault::InvalidLimit),
            _ => Ok(()),
        }
    }

    /// Whether a session can have these limits.
    pub(crate) fn check_session(self, session: SessionId, limits: Option<SessionLimits>) -> Result<(), Fault> {
        within(session.0.into(), self.sessions)?;
        match limits {
            Some(limits) if limits.interval_ns == 0 || limits.ahead_ns > MAX_AHEAD_NS => Err(Fault::InvalidLimit),
            _ => Ok(()),
        }
    }
}

fn within(id: u32, entries: u32) -> Result<(), Fault> {
    if id < entries {
        Ok(())
    } else {
        Err(Fault::BeyondTable { id, entries })
    }
}

/// No order but one without a price sells at it.
const NO_BID: i64 = i64::MIN;
/// Only an order at the highest price of all buys at it.
const NO_ASK: i64 = i64::MAX;

fn flag(is_set: bool, reason: Reasons) -> u16 {
    if is_set { reason.0 } else { 0 }
}
