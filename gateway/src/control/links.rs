//! A link as a shard knows it, for an operator's list.

use crate::client_links::ClientLink;
use crate::config::Config;
use crate::live::Live;
use crate::shard::Shard;
use net::Link;
use net::link::{DownReason, LinkView, LinkWatch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use types::{SessionId, ShardId, Timestamp, VenueId};

/// What one shard knows of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkStanding {
    far_end: FarEnd,
    view: LinkView,
    since: Timestamp,
    reason: Option<DownReason>,
    room: usize,
    /// It stays down until the gateway starts again.
    is_overrun: bool,
    /// Orders that the venue has open, as it counts them.
    credits_used: Option<u32>,
    cancel_reserve: Option<usize>,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
enum FarEnd {
    Venue(VenueId),
    Client(SessionId),
}

/// A link, in the list of all.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct LinkReply {
    /// The shard that it is of.
    pub shard: u8,
    /// The venue at its other end, by name; `null`: it is a client's.
    pub venue: Option<String>,
    /// The session at its other end, of a client; `null`: it is a venue's.
    pub client: Option<u16>,
    /// The number of the link's session, the same at both ends.
    pub session: u16,
    /// `LTP` or `TCP`.
    pub transport: String,
    /// What in fact carries its datagrams: `UDP`, `AF_XDP`; `null`: the transport has no choice.
    pub carrier: Option<String>,
    /// `listening`, `calling`, `agreeing`, `up`; `overrun`: it stays down until the gateway starts again.
    pub state: String,
    /// Since when it is up or not, ns since 1970.
    pub since: u64,
    /// Why it went down, or did not come up, last; `null`: it did neither.
    pub last_down: Option<String>,
    /// Whom this end refused last, and why; `null`: nobody.
    pub last_refused: Option<String>,
    /// The epoch of the session that is up; `null`: there is none, or TCP, which has none.
    pub epoch: Option<u64>,
    /// Where the other end is; `null`: nobody has come.
    pub peer: Option<String>,
    /// Messages that it takes now.
    pub room: u64,
    /// Orders that count against `credits`; `null`: it is a client's link.
    pub credits_used: Option<u32>,
    /// Places of the ring that orders leave free for cancels; `null`: it is a client's link.
    pub cancel_reserve: Option<u64>,
    /// Where its numbers stand, by name; `null`: the other end, or the transport, says nothing of the kind.
    pub numbers: BTreeMap<String, Option<u64>>,
    /// What it did since the gateway started, by name.
    pub counters: BTreeMap<String, u64>,
}

/// How many links a shard has.
pub(super) fn count<L: Link>(live: &Live<L>) -> usize {
    live.links.len() + live.client_links.all().len()
}

impl LinkStanding {
    /// The link with this place in the list: those to venues first, then those to clients.
    pub(super) fn of<L: Link>(place: usize, shard: &Shard, live: &Live<L>) -> Option<Self> {
        let Some(link) = live.links.get(place) else {
            return live
                .client_links
                .all()
                .get(place - live.links.len())
                .map(Self::of_client);
        };
        let venue = VenueId(u8::try_from(place).ok()?);
        let base = Self::new(FarEnd::Venue(venue), link, &live.watches[place]);
        Some(Self {
            credits_used: Some(shard.orders().open_at(venue)),
            cancel_reserve: Some(live.cancel_reserve(venue)),
            ..base
        })
    }

    fn of_client<L: Link>(client: &ClientLink<L>) -> Self {
        let base = Self::new(FarEnd::Client(client.session()), client.link(), client.watch());
        Self {
            is_overrun: client.is_overrun(),
            ..base
        }
    }

    fn new(far_end: FarEnd, link: &impl Link, watch: &LinkWatch) -> Self {
        Self {
            far_end,
            view: link.view(),
            since: watch.since(),
            reason: watch.reason(),
            room: link.room(),
            is_overrun: false,
            credits_used: None,
            cancel_reserve: None,
        }
    }

    /// In the words of the config.
    pub(super) fn reply(&self, shard: ShardId, config: &Config) -> LinkReply {
        let (venue, client, session) = match self.far_end {
            FarEnd::Venue(venue) => {
                let of_config = &config.venues[usize::from(venue.0)];
                let session = of_config.links[usize::from(shard.0)].session;
                (Some(of_config.name.clone()), None, session)
            }
            FarEnd::Client(session) => (None, Some(session.0), session),
        };
        let view = &self.view;
        let state = if self.is_overrun { "overrun" } else { view.state.name() };
        let numbers = view.numbers().into_iter();
        LinkReply {
            shard: shard.0,
            venue,
            client,
            session: session.0,
            transport: view.transport.to_owned(),
            carrier: view.carrier.map(str::to_owned),
            state: state.to_owned(),
            since: self.since.0,
            last_down: self.reason.map(|reason| reason.to_string()),
            last_refused: view.refused.map(|refused| refused.to_string()),
            epoch: view.epoch,
            peer: view.peer.map(|peer| peer.to_string()),
            room: self.room as u64,
            credits_used: self.credits_used,
            cancel_reserve: self.cancel_reserve.map(|places| places as u64),
            numbers: numbers.map(|(name, number)| (name.to_owned(), number)).collect(),
            counters: view.counts().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}
