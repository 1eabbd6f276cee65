//! Data dictionaries: which fields, groups and values a version's messages have.
//!
//! A reader of files makes a [`Definition`]; [`Dictionary::compile`] makes tables of it, once, at start-up. A scan with a
//! dictionary ([`Scratch::parse_with`](super::Scratch::parse_with)) looks each field up in the table of its message type and
//! checks it on the way, so that nothing is scanned twice:
//!
//! | SessionRejectReason (373) | when |
//! |---|---|
//! | 0 | nobody defines the tag |
//! | 1 | a required field is missing; the lowest tag is named, the header's before the body's |
//! | 2 | the tag is defined, and not for this message type |
//! | 4 | nothing stands after `=` |
//! | 5 | the value is none of those listed |
//! | 6 | the value is not of the field's type |
//! | 11 | nobody defines the message type |
//! | 13 | a tag stands twice outside of a group, or twice in one instance of it |
//! | 14 | header, body and trailer are not in this order |
//! | 15 | fields of a group are not in its order, or the first is missing |
//! | 16 | a group has not as many instances as its count says |
//!
//! The first of them counts. A message type that is defined and that the gateway does not take is checked all the same:
//! whether it is taken is not the dictionary's business.

mod compile;
mod definition;
mod format;
#[cfg(test)]
mod model;
mod tables;
#[cfg(test)]
pub(super) mod tests;
mod validate;

pub use compile::DictionaryError;
pub use definition::{Definition, FieldDefinition, FieldType, Member, MessageDefinition};
pub use tables::{Dictionaries, Dictionary, UserDefinedFields};
