//! A session as a shard knows it, for an operator's list.

use crate::clients::Clients;
use crate::live::Live;
use crate::shard::Shard;
use net::Link;
use proto::fix::CompId;
use std::net::SocketAddr;
use types::{SequenceNumber, SessionId, Timestamp};

/// What one shard knows of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionView {
    pub(crate) session: SessionId,
    /// Orders that it has open on this shard.
    pub(crate) open_orders: u32,
    /// What only the shard knows that serves it.
    pub(crate) home: Option<Home>,
}

/// What the shard knows that serves a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    /// Who its client is: CompID or user.
    pub(crate) name: CompId,
    pub(crate) is_disabled: bool,
    pub(crate) is_logged_on: bool,
    pub(crate) connection: Option<Place>,
    /// The number of the message that is sent next.
    pub(crate) next_sent: Option<SequenceNumber>,
    /// The number of the message that is expected next.
    pub(crate) next_received: Option<SequenceNumber>,
    /// Requests that were refused since the gateway started on its journal.
    pub(crate) refused: u64,
}

/// Where a client is, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its address; none for one that comes in over a link.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) since: Timestamp,
}

impl SessionView {
    /// The session with this number; `None` when there is none.
    pub(super) fn of<L: Link>(session: SessionId, shard: &Shard, live: &Live<L>, clients: &Clients) -> Option<Self> {
        let mut view = shard.session_view(session)?;
        if let Some(home) = &mut view.home {
            let linked = live
                .client_links
                .since(session)
                .map(|since| Place { peer: None, since });
            let dialled = clients.connection(session).map(|(peer, since)| Place {
                peer: Some(peer),
                since,
            });
            home.connection = dialled.or(linked);
            if let Some((_, next)) = live.clients.get(session).and_then(|output| output.held()) {
                home.next_sent = Some(next);
            }
            // Only a FIX session knows more than that its client is here.
            if home.next_received.is_none() {
                home.is_logged_on = home.connection.is_some();
            }
        }
        Some(view)
    }
}
