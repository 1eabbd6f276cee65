//! Native clients that come in over links of their own, beside those that the door hands on: the far side of the links to
//! venues, and the same contract.
//!
//! What is polled is journaled before the link may acknowledge it; answers are numbered by their order in the journal, stay
//! in the link until the client has them, and leave once the watermark has passed them. After a restart both numbers and
//! what the client may lack come from the journal ([`KeptClient`](crate::replay::KeptClient)), so that every message comes
//! exactly once, whichever side died.
//!
//! # Room
//! The link's ring is all that waits for the client, and a report that comes unasked cannot be refused. So a client may
//! leave no more than its window unacknowledged, in two steps: new orders are refused while half the window waits, and
//! nothing more is taken from the client while three quarters do. Then the client counts as silent, its link goes down,
//! and its orders are cancelled; the last quarter has room for their ends.
//!
//! The ring holds two windows. After a restart the journal does not say what the client has, and the last window is put
//! back; the other one has room for what comes before the client is there again. The link of a client that overruns even
//! that stays down until the gateway starts again; then the client gets what it lacks.
//!
//! What a client lost with its machine comes from the journal ([`crate::recall`]).

use crate::limits::{
    CLIENT_WINDOW_FOR_ANSWERS, CLIENT_WINDOW_FOR_REPORTS, MAX_CLIENT_MESSAGES_A_TURN, REPORTS_RESERVED_AN_ORDER,
};
use crate::live::Live;
use crate::recall::Stream;
use crate::record::Record;
use crate::shard::Shard;
use journal::{SentIndex, Wanted};
use net::Link;
use net::link::{LinkEvent, LinkFlow, LinkWatch};
use proto::native::MAX_MESSAGE_LENGTH;
use types::{SessionId, Timestamp};

/// All links of a shard's clients.
#[derive(Debug)]
pub(crate) struct ClientLinks<L> {
    links: Vec<ClientLink<L>>,
}

/// A session and its link.
#[derive(Debug)]
pub(crate) struct ClientLink<L> {
    session: SessionId,
    link: L,
    /// What the log says of it.
    watch: LinkWatch,
    /// Where in the journal its messages stand.
    index: SentIndex,
    /// Messages that the client may leave unacknowledged.
    window: usize,
    /// Messages that the link's ring holds.
    ring: usize,
    /// What the shard was told last: since when the client is here.
    since: Option<Timestamp>,
    /// Whose datagrams are its client's, as the pre-filter was told.
    flow: Option<LinkFlow>,
    /// A report found no place, and the link cannot go on without it.
    is_overrun: bool,
}

impl<L: Link> ClientLinks<L> {
    /// Nobody connected.
    pub(crate) const fn new(links: Vec<ClientLink<L>>) -> Self {
        Self { links }
    }

    /// The link of a session; `None` when its client comes in another way.
    pub(crate) fn get_mut(&mut self, session: SessionId) -> Option<&mut ClientLink<L>> {
        self.links.iter_mut().find(|link| link.session == session)
    }

    /// Whether a session's link has room for so many answers. A client that comes in another way is not held up here.
    pub(crate) fn has_room_for(&self, session: SessionId, count: usize) -> bool {
        self.get(session)
            .is_none_or(|link| link.room() >= link.window / CLIENT_WINDOW_FOR_REPORTS + count)
    }

    /// Whether a session's link has room for a new order, with what that may cause. The same holds for others.
    pub(crate) fn has_room_for_order(&self, session: SessionId) -> bool {
        self.get(session)
            .is_none_or(|link| link.room() >= link.window / CLIENT_WINDOW_FOR_ANSWERS + REPORTS_RESERVED_AN_ORDER)
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[ClientLink<L>] {
        &self.links
    }

    /// Sends what may leave, and what links owe. `appended` and `synced` tell how far the journal has got.
    pub(crate) fn flush(&mut self, now: Timestamp, watermark: u64, (appended, synced): (u64, u64)) {
        for link in self.links.iter_mut().filter(|link| !link.is_overrun) {
            link.link.journaled(appended, synced);
            link.link.flush(now, watermark);
            link.watch.turn(now, &link.link);
        }
    }

    /// Clients that are there.
    pub(crate) fn connected(&self) -> usize {
        self.links.iter().filter(|link| link.since.is_some()).count()
    }

    /// Links that stay down because their client left too much unacknowledged.
    pub(crate) fn overrun(&self) -> usize {
        self.links.iter().filter(|link| link.is_overrun).count()
    }

    /// Handshakes and sessions that the links refused.
    pub(crate) fn refused(&self) -> u64 {
        self.links.iter().map(|link| link.link.counters().refused).sum()
    }

    /// Since when a session's client is here.
    pub(crate) fn since(&self, session: SessionId) -> Option<Timestamp> {
        self.get(session)?.since
    }

    fn get(&self, session: SessionId) -> Option<&ClientLink<L>> {
        self.links.iter().find(|link| link.session == session)
    }
}

impl<L: Link> ClientLink<L> {
    /// Of a session whose client is not there. The link has what the client may lack, in a ring for so many messages.
    pub(crate) fn new(session: SessionId, link: L, index: SentIndex, window: usize, ring: usize) -> Self {
        Self {
            session,
            link,
            watch: LinkWatch::for_guest("client's link", format!("session {session}")),
            index,
            window,
            ring,
            since: None,
            flow: None,
            is_overrun: false,
        }
    }

    /// A numbered message, which stands at `start` of the journal and may leave once the watermark has reached `position`.
    pub(crate) fn push(&mut self, message: &[u8], start: u64, position: u64) {
        if self.is_overrun {
            return;
        }
        if self.link.room() > 0 {
            let sequence = self.link.send(message, position);
            self.index.note(sequence, start);
        } else {
            let session = self.session.0;
            tracing::error!(
                session,
                "the client's link holds no more; it stays down until the gateway starts again"
            );
            self.is_overrun = true;
        }
    }

    /// Whose it is.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// The link.
    pub(crate) const fn link(&self) -> &L {
        &self.link
    }

    /// What the log says of it.
    pub(crate) const fn watch(&self) -> &LinkWatch {
        &self.watch
    }

    /// Whether it stays down because its client left too much unacknowledged.
    pub(crate) const fn is_overrun(&self) -> bool {
        self.is_overrun
    }

    /// The link, to be changed.
    pub(crate) const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// What is left of the window.
    fn room(&self) -> usize {
        (self.window + self.link.room()).saturating_sub(self.ring)
    }

    /// What happened next, unless there must be no more before the client has acknowledged something. A link that is down
    /// is heard in any case: that brings room. So does one whose client gets again what it lost, but for its messages.
    fn poll(&mut self, now: Timestamp, message: &mut [u8]) -> Option<LinkEvent> {
        let has_room = self.room() > self.window / CLIENT_WINDOW_FOR_REPORTS;
        if self.is_overrun {
            None
        } else if has_room || !self.link.is_up() {
            self.link.poll(now, message)
        } else {
            self.link.poll_recall(now)
        }
    }
}

/// Takes what the clients sent, writes it into the journal and hands it to the shard. Returns whether anything came.
pub(crate) fn receive<L: Link>(shard: &mut Shard, live: &mut Live<L>) -> bool {
    let mut is_busy = false;
    let mut message = [0; MAX_MESSAGE_LENGTH];
    for index in 0..live.client_links.links.len() {
        for _ in 0..MAX_CLIENT_MESSAGES_A_TURN {
            if !live.journal_has_room() {
                return is_busy;
            }
            let now = live.now;
            let client = &mut live.client_links.links[index];
            let session = client.session;
            let Some(event) = client.poll(now, &mut message) else {
                break;
            };
            client.watch.on_event(now, &event, &client.link);
            match event {
                LinkEvent::Message { sequence, length } => {
                    let message = &message[..length];
                    live.received();
                    live.outside.arrived(session, sequence, message);
                    live.append(&Record::ClientMessage { session, message });
                    shard.on_client_message(now, session, message, live);
                }
                LinkEvent::Up => {
                    client.since = Some(now);
                    live.append(&Record::SessionUp { session });
                    shard.on_session_up(now, session, live);
                }
                LinkEvent::Recall { from, to } => {
                    let wanted = Wanted::from_index(Stream::ClientLink(session), from, to, &client.index);
                    live.recalls.recall_anew(wanted);
                }
                // Only an initiator is granted something, and there is one path.
                LinkEvent::Credits(_) | LinkEvent::Path(_) => {}
                LinkEvent::Down(_) => down(index, shard, live),
            }
            is_busy = true;
        }
        if live.client_links.links[index].is_overrun {
            down(index, shard, live);
        }
        let client = &mut live.client_links.links[index];
        let flow = if client.is_overrun { None } else { client.link.flow() };
        // Before the session is up: nothing but a datagram of that flow brings it up.
        if core::mem::replace(&mut client.flow, flow) != flow {
            live.outside.flow(client.session, flow);
        }
    }
    is_busy
}

/// A client is gone. A link that could not come up says so too, and then there is nothing to tell.
fn down<L: Link>(index: usize, shard: &mut Shard, live: &mut Live<L>) {
    let client = &mut live.client_links.links[index];
    if client.since.take().is_some() {
        let session = client.session;
        live.append(&Record::SessionDown { session });
        shard.on_session_down(live.now, session, live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::link::LinkCounters;
    use types::SequenceNumber;

    /// A link with so many free places, that is heard once.
    struct Fake {
        room: usize,
        is_up: bool,
        sent: usize,
    }

    impl Link for Fake {
        fn room(&self) -> usize {
            self.room
        }

        fn is_up(&self) -> bool {
            self.is_up
        }

        fn send(&mut self, _: &[u8], _: u64) -> SequenceNumber {
            self.room -= 1;
            self.sent += 1;
            SequenceNumber(self.sent as u64)
        }

        fn restore(&mut self, _: SequenceNumber, _: &[u8]) {}

        fn recalled(&mut self, _: SequenceNumber, _: &[u8]) {}

        fn not_recalled(&mut self, _: SequenceNumber) {}

        fn poll_recall(&mut self, _: Timestamp) -> Option<LinkEvent> {
            None
        }

        fn poll(&mut self, _: Timestamp, _: &mut [u8]) -> Option<LinkEvent> {
            Some(LinkEvent::Up)
        }

        fn flush(&mut self, _: Timestamp, _: u64) {}

        fn counters(&self) -> LinkCounters {
            LinkCounters::default()
        }
    }

    const SESSION: SessionId = SessionId(3);

    /// One client with a window of 64, of which so many messages wait.
    fn waiting(count: usize) -> ClientLinks<Fake> {
        let link = Fake {
            room: 128 - count,
            is_up: true,
            sent: 0,
        };
        ClientLinks::new(vec![ClientLink::new(SESSION, link, SentIndex::new(), 64, 128)])
    }

    fn is_heard(links: &mut ClientLinks<Fake>) -> bool {
        let link = links.get_mut(SESSION).unwrap();
        link.poll(Timestamp(1), &mut [0; MAX_MESSAGE_LENGTH]).is_some()
    }

    #[test]
    fn orders_are_refused_while_half_the_window_waits_and_nothing_is_taken_while_three_quarters_do() {
        assert!(waiting(30).has_room_for_order(SESSION));
        assert!(!waiting(31).has_room_for_order(SESSION), "it needs two places itself");
        assert!(waiting(38).has_room_for(SESSION, 10));
        assert!(!waiting(39).has_room_for(SESSION, 10));
        assert!(is_heard(&mut waiting(47)));
        assert!(!is_heard(&mut waiting(48)));
        assert!(
            waiting(128).has_room_for_order(SessionId(4)),
            "who comes in another way is not held up"
        );
    }

    #[test]
    fn a_link_that_is_down_is_heard_because_that_brings_room() {
        let mut links = waiting(128);
        links.links[0].link.is_up = false;
        assert!(is_heard(&mut links));
    }

    #[test]
    fn a_client_that_overruns_its_link_hears_and_is_heard_no_more() {
        let mut links = waiting(126);
        for _ in 0..4 {
            links.get_mut(SESSION).unwrap().push(b"report", 0, 0);
        }
        assert_eq!((links.links[0].link.sent, links.overrun()), (2, 1));
        links.links[0].link.room = 128;
        links.get_mut(SESSION).unwrap().push(b"report", 0, 0);
        assert_eq!(links.links[0].link.sent, 2, "what follows a hole is not sent");
        links.links[0].link.is_up = false;
        assert!(!is_heard(&mut links));
    }
}
