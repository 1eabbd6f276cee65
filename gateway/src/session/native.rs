//! Native sessions: messages are the gateway's words already.

use super::Incoming;
use crate::effects::Effects;
use proto::native::{self, DecodeError, MAX_MESSAGE_LENGTH, Message, Reject, Template};
use types::{ExecReport, InstrumentId, Reason, SessionId};

/// Reads a message; one that is none is answered with a Reject.
pub(super) fn decode<E: Effects>(session: SessionId, message: &[u8], effects: &mut E) -> Incoming {
    let error = match native::decode_request(message) {
        Ok(request) if request.session() == session => return Incoming::Request(request),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    match (error, native::decode(message)) {
        (Some(DecodeError::UnexpectedTemplate), Ok(Message::InstrumentRequest(wanted))) => {
            return Incoming::InstrumentMap(wanted);
        }
        (Some(error), _) => reject(session, &Reject::new(message, error), effects),
        (None, _) => {
            let reject_of_session = Reject {
                reason: Reason::WrongSession,
                detail: None,
                ..Reject::new(message, DecodeError::UnexpectedTemplate)
            };
            reject(session, &reject_of_session, effects);
        }
    }
    Incoming::Malformed
}

/// Tells a client that an instrument, or all, cannot be told.
pub(crate) fn refuse_instruments<E: Effects>(
    session: SessionId,
    wanted: Option<InstrumentId>,
    reason: Reason,
    effects: &mut E,
) {
    let template = Template::InstrumentRequest as u16;
    let number = wanted.map_or(0, |instrument| u64::from(instrument.0));
    reject(
        session,
        &Reject {
            template,
            number,
            reason,
            detail: None,
        },
        effects,
    );
}

/// Tells a client that a message could not be taken.
pub(super) fn reject<E: Effects>(session: SessionId, reject: &Reject, effects: &mut E) {
    let mut buffer = [0; MAX_MESSAGE_LENGTH];
    let length = native::encode_reject(reject, &mut buffer);
    effects.to_client(session, None, &buffer[..length]);
}

/// Sends a report.
pub(super) fn report<E: Effects>(report: &ExecReport, effects: &mut E) {
    let mut buffer = [0; MAX_MESSAGE_LENGTH];
    let length = native::encode_report(report, &mut buffer);
    effects.to_client(report.session, None, &buffer[..length]);
}
