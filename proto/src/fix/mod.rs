//! FIX 4.4 order entry: frames, fields, the messages of an order gateway, and the session core for both ends.
//!
//! The way of a message in: [`FrameBuffer`] finds whole messages in the byte stream and checks length and checksum;
//! [`Session::on_frame`] reads the header, keeps the session's rules and hands on what the order logic must see as an
//! [`Application`]; [`NewOrderSingle::decode`] and its siblings turn the body into a borrowed, typed view. Bytes are
//! walked once: the header ends where the body begins, and a view starts there.
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
mod header;
mod order;
mod reject;
mod report;
mod session;
pub mod tag;
mod time;
mod value;
mod values;
mod version;

pub use code::{
    cxl_rej_reason, ord_rej_reason, ord_type_code, ord_type_from_code, side_code, side_from_code, tif_code,
    tif_from_code,
};
pub use encoder::{Body, Encoder, MessageHeader, TimePrecision};
pub use field::{Field, Fields, RejectReason, Violation};
pub use frame::{Frame, FrameBuffer, GarbledReason, frame};
pub use header::Header;
pub use order::{NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest};
pub use reject::{BusinessMessageReject, BusinessRejectReason, SessionReject};
pub use report::{CancelRejectResponseTo, ExecutionReport, FixExecType, OrdStatus, OrderCancelReject};
pub use session::{
    Application, CloseReason, CompId, Output, ResetOnLogon, Role, Session, SessionConfig, SessionCounters,
};
pub use time::{parse_timestamp, write_timestamp};
pub use value::{Digits, parse_quantity, parse_u64};
pub use version::Version;

/// The version spoken, as BeginString (8).
pub const BEGIN_STRING: &[u8] = b"FIX.4.4";

/// Longest message that is read or written, bytes. A longer one is garbled.
pub const MAX_MESSAGE_LENGTH: usize = 4096;

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
    /// Refuses an application message that cannot be processed.
    pub const BUSINESS_MESSAGE_REJECT: &[u8] = b"j";
}
