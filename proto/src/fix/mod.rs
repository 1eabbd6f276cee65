//! FIX order entry, versions 4.0 to 5.0 SP2: frames, fields, the messages of an order gateway, and the session core for both ends.
//!
//! The way of a message in: [`FrameBuffer`] finds whole messages in the byte stream and checks length and checksum;
//! [`Session::on_frame`] scans the fields into a [`Message`], keeps the session's rules and hands on what the order logic
//! must see as an [`Application`]; [`NewOrderSingle::decode`] and its siblings turn the message into a borrowed, typed view.
//! Fields are walked once: a view reads the values that the scan has found.
//!
//! The way out: a message is a [`Body`], [`Session::send`] numbers it, keeps it for resends and gives the bytes to an
//! [`Output`].
//!
//! `docs/fix.md` lists messages, tags, values and session rules.

mod code;
pub mod dictionary;
mod encoder;
mod field;
mod frame;
#[cfg(test)]
mod fuzz;
mod mass;
mod message;
mod order;
mod reject;
mod report;
#[cfg(test)]
mod samples;
mod session;
mod slots;
pub mod tag;
mod terms;
mod time;
mod too_long;
mod value;
mod version;

pub use code::{
    cxl_rej_reason, exec_restatement_reason, mass_cancel_reject_reason, ord_rej_reason, ord_type_code,
    ord_type_from_code, short_sale_code, short_sale_from_code, side_code, side_from_code, tif_code, tif_from_code,
};
pub use dictionary::{Dictionaries, Dictionary, DictionaryError, UserDefinedFields};
pub use encoder::{Body, Encoder, MessageHeader, TimePrecision};
pub use field::{Field, Fields, RejectReason, Violation};
pub use frame::{Frame, FrameBuffer, GarbledReason, frame};
pub use mass::{
    OF_ALL, OF_SECURITY, OrderMassCancelReport, OrderMassCancelRequest, OrderMassStatusRequest, OrderStatusRequest,
};
pub use message::{Message, Routing, Scratch};
pub use order::{NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest};
pub use reject::{BusinessMessageReject, BusinessRejectReason, SessionReject};
pub use report::{
    CancelRejectResponseTo, Crossed, ExecutionReport, FixExecType, OrdStatus, OrderCancelReject, StatusAnswer,
};
pub use session::{
    Application, CloseReason, CompId, Logon, MAX_HEARTBEAT_SECONDS, Output, Recall, ResetOnLogon, Role, Session,
    SessionConfig, SessionCounters,
};
pub use terms::OrderFields;
pub use time::{TIMESTAMP_LENGTH, parse_timestamp, write_timestamp};
pub use too_long::{Passage, TooLong};
pub use value::{Digits, parse_quantity, parse_u64};
pub use version::Version;

/// Longest message that is read or written, bytes. A longer one passes by and is refused, see [`TooLong`].
pub const MAX_MESSAGE_LENGTH: usize = 4096;

/// Highest sequence number that is taken for one; far from where arithmetic on it could overflow.
pub const MAX_SEQUENCE: u64 = 1 << 53;

/// Longest value of a field that has to be kept or sent back, bytes: ids, symbols, accounts, CompIDs, TestReqID. It keeps
/// every answer far below [`MAX_MESSAGE_LENGTH`].
pub const MAX_VALUE_LENGTH: usize = 64;

/// Longest Text (58) that is written, bytes; a longer one is cut.
pub const MAX_TEXT_LENGTH: usize = 128;

/// Field delimiter, SOH.
pub const SOH: u8 = 1;

/// Message types (35).
pub mod msg_type {
    /// Keeps the session alive.
    pub const HEARTBEAT: &[u8] = b"0";
    /// Asks for a heartbeat.
    pub const TEST_REQUEST: &[u8] = b"1";
    /// Asks for messages again.
    pub const RESEND_REQUEST: &[u8] = b"2";
    /// Refuses a message that broke a session rule.
    pub const REJECT: &[u8] = b"3";
    /// Moves the expected sequence number.
    pub const SEQUENCE_RESET: &[u8] = b"4";
    /// Ends the session.
    pub const LOGOUT: &[u8] = b"5";
    /// What became of an order.
    pub const EXECUTION_REPORT: &[u8] = b"8";
    /// Refuses a cancel or replace.
    pub const ORDER_CANCEL_REJECT: &[u8] = b"9";
    /// Starts the session.
    pub const LOGON: &[u8] = b"A";
    /// A new order.
    pub const NEW_ORDER_SINGLE: &[u8] = b"D";
    /// Cancels an order.
    pub const ORDER_CANCEL_REQUEST: &[u8] = b"F";
    /// Replaces an order.
    pub const ORDER_CANCEL_REPLACE_REQUEST: &[u8] = b"G";
    /// Asks for an order's state.
    pub const ORDER_STATUS_REQUEST: &[u8] = b"H";
    /// Cancels many orders.
    pub const ORDER_MASS_CANCEL_REQUEST: &[u8] = b"q";
    /// What became of a mass cancel.
    pub const ORDER_MASS_CANCEL_REPORT: &[u8] = b"r";
    /// Asks for the state of many orders.
    pub const ORDER_MASS_STATUS_REQUEST: &[u8] = b"AF";
    /// Refuses an application message that cannot be processed.
    pub const BUSINESS_MESSAGE_REJECT: &[u8] = b"j";

    /// Whether anything here reads the body of messages of this type.
    pub(super) const fn is_read(msg_type: &[u8]) -> bool {
        matches!(
            msg_type,
            [b'0'..=b'5' | b'8' | b'9' | b'A' | b'D' | b'F' | b'G' | b'H' | b'j' | b'q' | b'r'] | b"AF"
        )
    }
}
