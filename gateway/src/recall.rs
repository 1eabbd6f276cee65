//! Messages that a client or a venue is to have again and that nobody holds any more: they are read back from the journal.
//!
//! What is found for a FIX session comes to the shard as an input, which is journaled like any other; it is asked for only
//! when all of a portion has room in the client's buffer. What is found for a link goes to the link: that the peer lost it
//! with its machine decides nothing.
//!
//! A number of a FIX session stands in the journal as often as its message was held, sent and sent again. What counts is no
//! possible duplicate, and the last before a higher number: an answer to a failed logon has the number of the message that
//! comes next, and does not use it up.

use crate::client_output::ClientOutputs;
use crate::limits::{MAX_FRAME_LENGTH, MAX_REPORT_LENGTH, RECALL_PORTION};
use crate::live::Live;
use crate::record::Record;
use crate::shard::Shard;
use journal::{Portion, Streams};
use net::Link;
use proto::fix::{self, Fields, tag};
use types::{SequenceNumber, SessionId, VenueId};

/// The shard's end.
pub(crate) type Recalls = journal::Recalls<Sent, MAX_FRAME_LENGTH>;
/// The thread's end.
pub(crate) type Seeker = journal::Seeker<Sent, MAX_FRAME_LENGTH>;
type Found = journal::Found<Stream, MAX_FRAME_LENGTH>;

/// What a shard's journal has of sent messages.
pub(crate) struct Sent;

/// Numbered messages that a shard sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    /// To the client of a FIX session.
    Fix(SessionId),
    /// To the client of a native session that comes in over a link: numbered by their order.
    ClientLink(SessionId),
    /// To a venue.
    Venue(VenueId),
}

impl Streams for Sent {
    type Stream = Stream;

    fn message(stream: Stream, kind: u16, payload: &[u8]) -> Option<(Option<SequenceNumber>, &[u8])> {
        match (stream, Record::decode(kind, payload).ok()?) {
            (
                Stream::Fix(wanted),
                Record::ClientOutput { session, message } | Record::ClientHeld { session, message },
            ) if session == wanted => Some((Some(first_number(message)?), message)),
            (Stream::ClientLink(wanted), Record::ClientOutput { session, message }) if session == wanted => {
                Some((None, message))
            }
            (
                Stream::Venue(wanted),
                Record::VenueOutput {
                    venue,
                    sequence,
                    message,
                },
            ) if venue == wanted => Some((Some(sequence), message)),
            _ => None,
        }
    }
}

/// Hands on what was found, as far as there is room, and asks for more. Returns whether there was anything.
pub(crate) fn turn<L: Link>(shard: &mut Shard, live: &mut Live<L>) -> bool {
    let mut is_busy = false;
    while live.journal_has_room()
        && let Some(found) = live.recalls.found()
    {
        is_busy = true;
        match found.stream {
            Stream::Fix(session) => {
                let (id, sequence, message) = (found.id, found.sequence, found.message());
                live.append(&Record::Recalled {
                    session,
                    id,
                    sequence,
                    message,
                });
                shard.on_recalled(live.now, session, id, sequence, message, live);
            }
            Stream::ClientLink(session) => {
                if let Some(client) = live.client_links.get_mut(session) {
                    bring(&found, client.link_mut(), &mut live.recalls);
                }
            }
            Stream::Venue(venue) => bring(&found, &mut live.links[usize::from(venue.0)], &mut live.recalls),
        }
    }
    let Live { recalls, clients, .. } = live;
    is_busy | recalls.ask(|stream| portion(clients, stream))
}

/// Gives a link what was found for it, or the number of what was not.
fn bring<L: Link>(found: &Found, link: &mut L, recalls: &mut Recalls) {
    if found.is_missing() {
        link.not_recalled(found.first);
        recalls.give_up(found);
    } else {
        link.recalled(found.sequence, found.message());
    }
}

/// Messages that are looked up at a time: those for a FIX session fill at most half of its buffer, and a link has room for
/// what it asked for.
fn portion(clients: &ClientOutputs, stream: Stream) -> Portion {
    let Stream::Fix(session) = stream else {
        return Portion::Of(RECALL_PORTION);
    };
    let half = clients.capacity(session) / (2 * MAX_REPORT_LENGTH);
    let portion = half.clamp(1, RECALL_PORTION);
    if !clients.is_connected(session) {
        Portion::Never
    } else if clients.has_room_for(session, portion) {
        Portion::Of(portion)
    } else {
        Portion::Later
    }
}

/// MsgSeqNum of a message that is no possible duplicate.
fn first_number(message: &[u8]) -> Option<SequenceNumber> {
    let mut sequence = None;
    for field in Fields::new(message).take(HEADER_FIELDS).flatten() {
        match field.tag {
            tag::MSG_SEQ_NUM => sequence = fix::parse_u64(field.value),
            tag::POSS_DUP_FLAG if field.value == b"Y" => return None,
            _ => {}
        }
    }
    sequence.map(SequenceNumber)
}

/// Fields of a message that is sent again, from its beginning to its PossDupFlag and its number.
const HEADER_FIELDS: usize = 12;
