//! A shard's end: takes the control desk's questions in turn with everything else, and answers.

use super::{Action, Answer, LimitView, LinkStanding, Order, Origin, Question, Refusal, SessionView, links};
use crate::clients::Clients;
use crate::crossing::Lane;
use crate::limits::{JOURNAL_RESERVE_BYTES, MAX_REPORT_LENGTH, PLACES_LISTED_A_TURN, RECORD_OVERHEAD_BYTES};
use crate::live::Live;
use crate::record::Record;
use crate::shard::Shard;
use net::Link;
use orders::{KillScope, Limit, LimitScope};
use rtrb::{Consumer, Producer};
use types::SessionId;

/// What a shard has of the control desk.
#[derive(Debug)]
pub(crate) struct Desk {
    questions: Consumer<Question>,
    answers: Producer<Answer>,
    listing: Option<Listing>,
}

/// A list that is being given.
#[derive(Clone, Copy, Debug)]
struct Listing {
    list: List,
    /// The place that is looked at next.
    next: u32,
}

#[derive(Clone, Copy, Debug)]
enum List {
    /// Open orders, of one session or of all.
    Orders(Option<SessionId>),
    /// The limits that concern a scope, or all but for instruments' that are their class's.
    Limits(Option<LimitScope>),
    /// All sessions.
    Sessions,
    /// All links.
    Links,
}

impl Desk {
    pub(super) const fn new(questions: Consumer<Question>, answers: Producer<Answer>) -> Self {
        Self {
            questions,
            answers,
            listing: None,
        }
    }

    /// Answers a question, or goes on with a list. Whether there was anything to do.
    pub(crate) fn turn<L: Link>(&mut self, shard: &mut Shard, live: &mut Live<L>, clients: &Clients) -> bool {
        if let Some(listing) = self.listing {
            self.list(listing, shard, live, clients);
            return true;
        }
        if self.questions.is_empty() || self.answers.slots() < ANSWERS_A_QUESTION {
            return false;
        }
        if self
            .questions
            .peek()
            .is_ok_and(|question| must_wait(question, shard, live))
        {
            return false;
        }
        let Ok(question) = self.questions.pop() else {
            return false;
        };
        match question {
            Question::Check(action) => self.answer(Answer::Done(shard.check_control(&action))),
            Question::Order(order) => {
                live.append(&Record::Controlled(order));
                shard.on_control(live.now, &order, live);
                self.answer(Answer::Done(Ok(())));
            }
            Question::Killed(scope) => self.killed(scope, shard),
            Question::Prefilter => {
                self.answer(Answer::Prefilter(shard.filter().view()));
                if let Some(view) = live.outside.view() {
                    self.answer(Answer::Prefilter(view));
                }
                self.answer(Answer::Done(Ok(())));
            }
            Question::Orders(session) => self.begin(List::Orders(session)),
            Question::Sessions => self.begin(List::Sessions),
            Question::Links => self.begin(List::Links),
            // It need not be in the list.
            Question::Limits(Some(scope @ LimitScope::Trade(..))) => {
                self.limits(scope, shard, |_| true);
                self.answer(Answer::Done(Ok(())));
            }
            Question::Limits(scope) => self.begin(List::Limits(scope)),
            Question::Audit => {
                let orders = shard.orders();
                self.answer(Answer::Audited(orders.open_orders(), orders.audit().err()));
                self.answer(Answer::Done(Ok(())));
            }
        }
        true
    }

    fn killed(&mut self, scope: KillScope, shard: &Shard) {
        let outcome = shard.orders().stop(scope);
        if let Ok(killed) = outcome {
            self.answer(Answer::Killed(killed));
        }
        self.answer(Answer::Done(outcome.map(|_| ()).map_err(Refusal::from)));
    }

    const fn begin(&mut self, list: List) {
        self.listing = Some(Listing { list, next: 0 });
    }

    /// Gives what is in some places, as far as there is room.
    fn list<L: Link>(&mut self, mut listing: Listing, shard: &Shard, live: &Live<L>, clients: &Clients) {
        let orders = shard.orders();
        let places = match listing.list {
            List::Orders(_) => orders.places(),
            List::Limits(_) => shard.limit_scopes(),
            List::Sessions => u32::from(shard.last_session().0) + 1,
            List::Links => u32::try_from(links::count(live)).unwrap_or(u32::MAX),
        };
        let end = places.min(listing.next + PLACES_LISTED_A_TURN);
        while listing.next < end && self.answers.slots() >= ANSWERS_A_QUESTION {
            match listing.list {
                List::Orders(session) => {
                    let is_wanted = |of: SessionId| session.is_none_or(|session| session == of);
                    if let Some(order) = orders.in_place(listing.next).filter(|order| is_wanted(order.session)) {
                        self.answer(Answer::OpenOrder(order));
                    }
                }
                List::Sessions => {
                    let session = SessionId(u16::try_from(listing.next).unwrap_or(u16::MAX));
                    if let Some(view) = SessionView::of(session, shard, live, clients) {
                        self.answer(Answer::Session(view));
                    }
                }
                List::Links => {
                    if let Some(link) = LinkStanding::of(listing.next as usize, shard, live) {
                        self.answer(Answer::Link(link));
                    }
                }
                List::Limits(asked) => {
                    let is_asked = |scope: &_| asked.is_none_or(|asked| asked.has(*scope));
                    if let Some(scope) = shard.limit_scope(listing.next).filter(is_asked) {
                        let is_wanted = |view: &LimitView| asked.is_some() || !matches!(view.origin, Origin::Class(_));
                        self.limits(scope, shard, is_wanted);
                    }
                }
            }
            listing.next += 1;
        }
        let is_over = listing.next == places;
        if is_over {
            self.answer(Answer::Done(Ok(())));
        }
        self.listing = (!is_over).then_some(listing);
    }

    /// Those of a scope's limits that are wanted.
    fn limits(&mut self, scope: LimitScope, shard: &Shard, is_wanted: impl Fn(&LimitView) -> bool) {
        let views = Limit::ALL.iter().filter_map(|&limit| shard.limit(scope, limit));
        for view in views.filter(is_wanted) {
            self.answer(Answer::Limit(view));
        }
    }

    fn answer(&mut self, answer: Answer) {
        // There is room: it was looked for.
        let _: Result<_, _> = self.answers.push(answer);
    }
}

/// A day's end may report every open order in one input: it waits until there is room for that.
fn must_wait<L: Link>(question: &Question, shard: &Shard, live: &Live<L>) -> bool {
    let Question::Order(Order {
        action: Action::Roll(_),
        ..
    }) = question
    else {
        return false;
    };
    let reports = shard.orders().open_orders();
    let bytes = JOURNAL_RESERVE_BYTES + reports * (MAX_REPORT_LENGTH + RECORD_OVERHEAD_BYTES);
    let mut crossings = live.crossings.iter();
    !live.journal.room(bytes) || crossings.any(|crossing| crossing.room(Lane::Reports) < reports)
}

/// Room for what one question, or one place of a list, may be answered with.
const ANSWERS_A_QUESTION: usize = Limit::ALL.len() + 2;
