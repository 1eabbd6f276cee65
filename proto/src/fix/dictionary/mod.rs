//! Data dictionaries: which fields, groups and values a version's messages have.

mod definition;

pub use definition::{Definition, FieldDefinition, FieldType, Member, MessageDefinition};
