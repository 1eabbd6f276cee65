//! The handshake, checked in every order in which things can happen.
//!
//! Two real [`Session`]s, a network that loses and doubles and forgets nothing, restarts of both ends, sessions that end at
//! one end alone, and sessions that one end gives up. Whatever was ever sent may arrive at any time, or never: a lost datagram is one that is not
//! delivered, a doubled one is delivered twice. So whatever an end could send it has sent, and only the order of events is
//! left, of which every one is tried, within a number of restarts and ends.
//!
//! What must not happen: an end takes data of another epoch than its own; an acceptor goes back to an earlier epoch.

use super::config::{Config, Role};
use super::refusal::Refusal;
use super::session::{Outcome, Session, Standing};
use super::simulation::Defect;
use super::wire::{self, HeaderForm};
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use stateright::{Checker, Model, Property};
use std::eprintln;
use types::{SequenceNumber, SessionId, Timestamp};

extern crate std;

/// What is tried.
#[derive(Clone, Copy)]
struct Handshake {
    defect: Defect,
    /// Of the initiator, of the acceptor.
    restarts: [u8; 2],
    /// How often the initiator takes the other for silent, how often the acceptor.
    silences: [u8; 2],
    /// How often each gives up a session that is up, because its journal lacks what the other has lost.
    gives_up: [u8; 2],
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    ends: [End; 2],
    network: BTreeSet<Datagram>,
    /// The highest epoch that this start of the acceptor has established.
    highest: u64,
    wrong: Option<Wrong>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct End {
    session: Session,
    is_up: bool,
    starts: u8,
    /// Silences that may still come.
    silences_left: u8,
    gives_up_left: u8,
}

/// Under way to an end, for ever.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Datagram {
    Step { to: usize, bytes: Vec<u8> },
    Data { to: usize, tag: u32, epoch: u64 },
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Action {
    Deliver(Datagram),
    Restart(usize),
    Silence(usize),
    GiveUp(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Wrong {
    DataOfAnotherEpoch,
    EpochWentBack,
}

const INITIATOR: usize = 0;
const ACCEPTOR: usize = 1;
const ROLES: [Role; 2] = [Role::Initiator, Role::Acceptor];

/// Nothing was sent or received: the numbers are not what is checked here.
const STANDING: Standing = Standing {
    gone_below: 0,
    oldest: 1,
    next_send: 1,
    next_receive: 1,
    durable: 0,
};

const GONE: Refusal = Refusal::MessagesGone {
    wanted: SequenceNumber(1),
    oldest: SequenceNumber(2),
};

impl Model for Handshake {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let ends = [INITIATOR, ACCEPTOR].map(|index| End {
            session: start(index, 1),
            is_up: false,
            starts: 1,
            silences_left: self.silences[index],
            gives_up_left: self.gives_up[index],
        });
        let mut state = State {
            ends,
            network: BTreeSet::new(),
            highest: 0,
            wrong: None,
        };
        state.send_all();
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.network.iter().cloned().map(Action::Deliver));
        for (index, end) in state.ends.iter().enumerate() {
            if end.starts <= self.restarts[index] {
                actions.push(Action::Restart(index));
            }
            if end.is_up && end.silences_left > 0 {
                actions.push(Action::Silence(index));
            }
            if end.is_up && end.gives_up_left > 0 {
                actions.push(Action::GiveUp(index));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Deliver(Datagram::Step { to, bytes }) => next.step(self.defect, to, &bytes),
            Action::Deliver(Datagram::Data { to, tag, epoch }) => next.take(self.defect, to, tag, epoch),
            Action::Restart(index) => {
                let end = &mut next.ends[index];
                end.starts += 1;
                end.session = start(index, end.starts);
                end.is_up = false;
                if index == ACCEPTOR {
                    next.highest = 0;
                }
            }
            Action::Silence(index) => {
                let end = &mut next.ends[index];
                end.silences_left -= 1;
                end.is_up = false;
                end.session.end(NOW);
            }
            Action::GiveUp(index) => {
                let end = &mut next.ends[index];
                end.gives_up_left -= 1;
                end.is_up = false;
                end.session.give_up(NOW, GONE);
                next.reply(index);
            }
        }
        next.send_all();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing wrong", |_, state: &State| state.wrong.is_none()),
            Property::sometimes("both ends are up in one epoch", |_, state: &State| state.both_are_up()),
            Property::sometimes("and also after both have restarted", |_, state: &State| {
                state.both_are_up() && state.ends.iter().all(|end| end.starts > 1)
            }),
        ]
    }
}

impl State {
    fn both_are_up(&self) -> bool {
        let [initiator, acceptor] = &self.ends;
        initiator.is_up && acceptor.is_up && initiator.session.epoch() == acceptor.session.epoch()
    }

    /// All that either end could send now is under way.
    fn send_all(&mut self) {
        let mut out = [0; 256];
        for from in [INITIATOR, ACCEPTOR] {
            let to = 1 - from;
            let end = &mut self.ends[from];
            if end.is_up {
                let (tag, _) = end.session.tags(HeaderForm::Full);
                let epoch = end.session.epoch();
                self.network.insert(Datagram::Data { to, tag, epoch });
            } else if from == INITIATOR
                && let Some(length) = end.session.poll(NOW, STANDING, &mut out)
            {
                self.post_step(to, &out[..length]);
            }
            self.ends[from].session.forget_time();
        }
    }

    fn post_step(&mut self, to: usize, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.network.insert(Datagram::Step { to, bytes });
    }

    /// What a connection does with a step of the handshake.
    fn step(&mut self, defect: Defect, to: usize, bytes: &[u8]) {
        let end = &mut self.ends[to];
        let (step, _) = wire::decode_handshake(bytes).expect("only good ones are sent");
        if defect == Defect::AnyEpoch {
            end.session.forget_epoch();
        }
        match end.session.on_step(NOW, step, STANDING) {
            Outcome::Up(_) => {
                end.is_up = true;
                let epoch = end.session.epoch();
                if to == ACCEPTOR && epoch <= self.highest {
                    self.wrong = Some(Wrong::EpochWentBack);
                }
                if to == ACCEPTOR {
                    self.highest = epoch;
                }
            }
            Outcome::RefusedByPeer(_) => end.is_up = false,
            Outcome::Stale | Outcome::Step | Outcome::Refused(_) => {}
        }
        self.reply(to);
    }

    fn reply(&mut self, from: usize) {
        let mut out = [0; 256];
        if let Some(length) = self.ends[from].session.poll_reply(STANDING, &mut out) {
            self.post_step(1 - from, &out[..length]);
        }
    }

    /// What a connection does with data: it is the session's if the tag says so.
    fn take(&mut self, defect: Defect, to: usize, tag: u32, epoch: u64) {
        let end = &self.ends[to];
        let (_, receive_tag) = end.session.tags(HeaderForm::Full);
        let is_taken = end.is_up && (tag == receive_tag || defect == Defect::AnyTag);
        if is_taken && epoch != end.session.epoch() {
            self.wrong = Some(Wrong::DataOfAnotherEpoch);
        }
    }
}

/// Each start has a later time than the one before.
fn start(index: usize, starts: u8) -> Session {
    let config = Config::new(SessionId(7), 64, 48);
    let seed = 1_000 * (1 + index as u64) + 100 * u64::from(starts);
    Session::new(ROLES[index], &config, seed)
}

/// Time is left out: a timer has fired whenever it could.
const NOW: Timestamp = Timestamp(1);

fn check(handshake: Handshake) -> impl Checker<Handshake> {
    handshake.checker().spawn_bfs().join()
}

#[test]
fn no_order_of_events_lets_data_pass_between_epochs() {
    for (restarts, silences, gives_up) in [
        ([1, 1], [0, 0], [0, 0]),
        ([2, 0], [0, 1], [0, 0]),
        ([0, 2], [1, 0], [0, 0]),
        ([1, 1], [0, 1], [0, 0]),
        ([1, 1], [1, 0], [0, 0]),
        ([2, 1], [0, 0], [0, 0]),
        ([1, 2], [0, 0], [0, 0]),
        ([1, 0], [0, 0], [0, 1]),
        ([0, 1], [0, 0], [1, 0]),
        ([0, 0], [1, 0], [1, 1]),
    ] {
        let checker = check(Handshake {
            defect: Defect::None,
            restarts,
            silences,
            gives_up,
        });
        let count = checker.unique_state_count();
        eprintln!("restarts {restarts:?}, silences {silences:?}, gives up {gives_up:?}: {count} states");
        assert!(checker.is_done() && count > 20);
        assert!(checker.discovery("nothing wrong").is_none());
        assert!(checker.discovery("both ends are up in one epoch").is_some());
        let all_restart = restarts.iter().all(|&restarts| restarts > 0);
        assert_eq!(
            checker.discovery("and also after both have restarted").is_some(),
            all_restart
        );
    }
}

#[test]
fn the_model_notices_a_mistake_in_tags_or_epochs() {
    for defect in [Defect::AnyTag, Defect::AnyEpoch] {
        let checker = check(Handshake {
            defect,
            restarts: [1, 1],
            silences: [1, 1],
            gives_up: [0, 0],
        });
        let path = checker.discovery("nothing wrong").expect("it is noticed");
        eprintln!("{defect:?}: {:#?}", path.into_actions());
    }
}
