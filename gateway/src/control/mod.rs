//! The control desk: what an operator asks of a running gateway, and how it comes to the shards.
//!
//! A thread of its own listens at a Unix socket (`server.rs`) and takes one request after the other. An order that changes
//! something gets the next number and goes to every shard over a bounded queue; each shard writes it into its journal, obeys
//! and answers (`desk.rs`), and the operator hears of it when all have. So it is in force for the next order on every shard,
//! and it is found again after a restart, with who gave it and when.
//!
//! A process that dies between two shards leaves an order half given: shards remember the last few, and the next start gives
//! the others what they lack.

mod changes;
mod desk;
mod links;
mod names;
mod order;
mod server;
mod sessions;
mod wire;

pub(crate) use changes::{Change, Changes, LimitView, Origin};
pub(crate) use desk::Desk;
pub use links::LinkReply;
pub(crate) use links::LinkStanding;
pub(crate) use names::scope_name;
pub use order::{Action, Order, Refusal};
pub use server::Control;
pub(crate) use sessions::{Home, SessionView};
pub use wire::{LimitScopeName, PartyName, Reply, Request, Scope, Source, TradedName};

use crate::limits::{CONTROL_ANSWERS, CONTROL_ORDERS_REMEMBERED, CONTROL_QUESTIONS};
use crate::outside::FilterView;
use orders::{KillScope, LimitScope, OrderView, Stop};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use types::SessionId;

/// What a shard is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// Whether it would obey.
    Check(Action),
    Order(Order),
    /// Open orders, of one session or of all.
    Orders(Option<SessionId>),
    /// What is kept incrementally, recounted from the open orders.
    Audit,
    /// The kill switch of a scope.
    Killed(KillScope),
    /// How the pre-filter stands.
    Prefilter,
    /// All sessions.
    Sessions,
    /// All links.
    Links,
    /// The limits of a scope; `None`: all of this shard, but for instruments' that are their class's.
    Limits(Option<LimitScope>),
}

/// What a shard answers. Every question's last answer is [`Answer::Done`].
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a ring of them is allocated at start-up, and few are ever in it"
)]
pub(crate) enum Answer {
    OpenOrder(OrderView),
    Killed(Stop),
    /// The recount of so many open orders came out as what was kept, or not.
    Audited(usize, Option<orders::AuditError>),
    Limit(LimitView),
    Session(SessionView),
    Link(LinkStanding),
    Prefilter(FilterView),
    Done(Result<(), Refusal>),
}

/// The last orders that a shard was given, oldest first.
#[derive(Debug)]
pub(crate) struct Given(VecDeque<Order>);

/// The server's ends of the queues to a shard.
#[derive(Debug)]
pub(crate) struct Wires {
    questions: Producer<Question>,
    answers: Consumer<Answer>,
}

/// A pair of queues to each shard.
pub(crate) fn wires(shards: usize) -> (Vec<Wires>, Vec<Desk>) {
    let pair = |_| {
        let (questions, asked) = RingBuffer::new(CONTROL_QUESTIONS);
        let (answering, answers) = RingBuffer::new(CONTROL_ANSWERS);
        (Wires { questions, answers }, Desk::new(asked, answering))
    };
    (0..shards).map(pair).unzip()
}

/// Bytes of the queues and of what shards remember, for the sum at start-up.
pub(crate) const fn memory_bytes(shards: usize) -> usize {
    let queues = CONTROL_QUESTIONS * size_of::<Question>() + CONTROL_ANSWERS * size_of::<Answer>();
    shards * (queues + changes::MEMORY_BYTES)
}

/// What a crash kept shards from hearing of.
#[derive(Debug)]
pub(crate) struct Missed {
    /// Of each shard the orders that others were given and it was not, in order.
    pub(crate) by_shard: Vec<Vec<Order>>,
    /// The highest number that any was given.
    pub(crate) last: u64,
}

/// What each shard has missed. `given` are the memories of all shards.
///
/// # Errors
/// The place of a shard that lacks orders which none remembers, and the numbers of the first and the last of them.
pub(crate) fn missed(given: &[&Given]) -> Result<Missed, (usize, [u64; 2])> {
    let Some(ahead) = given.iter().max_by_key(|given| given.last()) else {
        return Ok(Missed {
            by_shard: Vec::new(),
            last: 0,
        });
    };
    let oldest = ahead.0.front().map_or(1, |order| order.number);
    if let Some(place) = given.iter().position(|given| given.last() + 1 < oldest) {
        return Err((place, [given[place].last() + 1, oldest - 1]));
    }
    let of = |given: &&Given| {
        let orders = ahead.0.iter().copied();
        orders.filter(|order| order.number > given.last()).collect()
    };
    Ok(Missed {
        by_shard: given.iter().map(of).collect(),
        last: ahead.last(),
    })
}

impl Given {
    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(CONTROL_ORDERS_REMEMBERED))
    }

    /// The number of the last one; 0: none.
    pub(crate) fn last(&self) -> u64 {
        self.0.back().map_or(0, |order| order.number)
    }

    pub(crate) fn remember(&mut self, order: Order) {
        if self.0.len() == CONTROL_ORDERS_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(count: u64) -> Given {
        let mut given = Given::new();
        for number in 1..=count {
            given.remember(Order {
                number,
                operator: 0,
                action: Action::Kill(KillScope::Firm),
            });
        }
        given
    }

    #[test]
    fn a_shard_that_a_crash_kept_from_hearing_of_an_order_is_given_it_at_the_next_start() {
        let (ahead, behind, fresh) = (given(5), given(3), given(0));
        let missed = missed(&[&behind, &ahead, &fresh]).unwrap();
        let numbers = |orders: &Vec<Order>| orders.iter().map(|order| order.number).collect::<Vec<_>>();
        let by_shard = missed.by_shard.iter().map(numbers).collect::<Vec<_>>();
        assert_eq!(
            (by_shard, missed.last),
            (vec![vec![4, 5], vec![], vec![1, 2, 3, 4, 5]], 5)
        );
    }

    #[test]
    fn a_shard_that_lacks_orders_which_none_remembers_is_named() {
        let first = 100 - CONTROL_ORDERS_REMEMBERED as u64 + 1;
        let gone = |one: u64, other: u64| missed(&[&given(one), &given(other)]).err();
        assert_eq!(gone(100, first - 1), None);
        assert_eq!(gone(100, first - 2), Some((1, [first - 1, first - 1])));
        assert_eq!(gone(0, 100), Some((0, [1, first - 1])));
    }

    #[test]
    fn the_last_orders_are_remembered_and_not_more() {
        let given = given(100);
        assert_eq!((given.0.len(), given.last()), (CONTROL_ORDERS_REMEMBERED, 100));
    }
}
