//! What a data dictionary says, as it is read from a file: fields, groups and messages, components already put in place.
//!
//! Whoever reads a file makes a [`Definition`]; [`Dictionary`](super::Dictionary) is what is compiled from it.

use alloc::string::String;
use alloc::vec::Vec;

/// A data dictionary of one version.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Definition {
    /// All fields, each tag once.
    pub fields: Vec<FieldDefinition>,
    /// The standard header, with BeginString, BodyLength and MsgType. Empty in an application dictionary of FIX 5.0.
    pub header: Vec<Member>,
    /// The standard trailer, with CheckSum. Empty in an application dictionary of FIX 5.0.
    pub trailer: Vec<Member>,
    /// All messages.
    pub messages: Vec<MessageDefinition>,
}

/// One field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldDefinition {
    /// Tag number, from 1.
    pub tag: u32,
    /// Its name, for messages to people.
    pub name: String,
    /// What a value looks like.
    pub field_type: FieldType,
    /// The values that are allowed; empty when any are.
    pub values: Vec<String>,
}

/// One message type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageDefinition {
    /// MsgType (35).
    pub msg_type: String,
    /// Its name, for messages to people.
    pub name: String,
    /// Of the session layer.
    pub is_admin: bool,
    /// Its body.
    pub members: Vec<Member>,
}

/// A place for a field in a message, in the header or in a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Tag number. Of a group: that of its count.
    pub tag: u32,
    /// Whether it must be there.
    pub is_required: bool,
    /// Of a group: its fields, the delimiter first.
    pub group: Option<Vec<Self>>,
}

/// What a value looks like (FIX 4.4, volume 1, "Field data types"; later versions' types added).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldType {
    /// A whole number with an optional sign: `int`, `DayOfMonth`.
    Int,
    /// A whole number from 0: `Length`, `SeqNum`, `TagNum`.
    Unsigned,
    /// The count of a group, from 0.
    NumInGroup,
    /// A decimal number with an optional minus sign: `float`, `Qty`, `Price`, `PriceOffset`, `Amt`, `Percentage`.
    Decimal,
    /// One character.
    Char,
    /// `Y` or `N`.
    Boolean,
    /// Any text without the delimiter.
    Text,
    /// Codes separated by spaces: `MultipleValueString`, `MultipleStringValue`, `MultipleCharValue`.
    Codes,
    /// Bytes, the delimiter included; a length stands before them.
    Data,
    /// `YYYYMMDD-HH:MM:SS` with or without decimals.
    UtcTimestamp,
    /// `HH:MM:SS` with or without decimals.
    UtcTimeOnly,
    /// `YYYYMMDD`: `UTCDateOnly`, `LocalMktDate`, `date`.
    Date,
    /// `YYYYMM`, `YYYYMMDD` or `YYYYMMWW`.
    MonthYear,
}
