//! From what a dictionary says to the tables that a scan uses.

use super::tables::{
    Dictionary, FIELDS_MAX, Field, FieldSet, GroupTable, Kind, MessageTable, Part, SMALL_TAGS, UserDefinedFields,
    ValueList, insert,
};
use super::validate::START;
use super::{Definition, FieldDefinition, FieldType, Member, MessageDefinition};
use crate::fix::field::MAX_TAG;
use crate::fix::slots::{NO_SLOT, slot_of};
use crate::fix::tag;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Why a definition is no dictionary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DictionaryError {
    /// A message, group, header or trailer has a field that is not defined: the tag, and where.
    UndefinedField(u32, String),
    /// A tag is 0 or above 99999.
    Tag(u32),
    /// Header or trailer is empty.
    NoHeaderOrTrailer,
    /// A group has no fields: its count's tag.
    EmptyGroup(u32),
    /// Groups stand in groups more than `GROUP_DEPTH_MAX` deep: the tag of the innermost count.
    GroupDepth(u32),
    /// A message or a group has more than 512 fields: its name, or its count's tag.
    TooManyFields(String),
    /// A message type is empty.
    MsgType,
    /// More messages, groups or lists of values than 65,535.
    TooLarge,
}

impl Dictionary {
    /// Makes the tables. `session` has header, trailer and the session's messages; in versions until 4.4 the application's
    /// too. From 5.0 on those are in `application`, whose fields take precedence.
    ///
    /// The user-defined field Trigger (9001) is known to all application messages, whether defined or not.
    ///
    /// # Errors
    /// What is wrong with a definition.
    pub fn compile(session: &Definition, application: Option<&Definition>) -> Result<Self, DictionaryError> {
        if session.header.is_empty() || session.trailer.is_empty() {
            return Err(DictionaryError::NoHeaderOrTrailer);
        }
        let mut compiler = Compiler::new([Some(session), application].into_iter().flatten())?;
        let mut types = BTreeMap::new();
        // A type that both define is the session's.
        let of_application = application.map_or(&[][..], |application| &application.messages);
        for message in session.messages.iter().chain(of_application) {
            if message.msg_type.is_empty() {
                return Err(DictionaryError::MsgType);
            }
            if !types.contains_key(message.msg_type.as_bytes()) {
                let place = narrow(types.len())?;
                types.insert(message.msg_type.as_bytes(), place);
                compiler.message(session, message)?;
            }
        }
        let mut by_character = Box::new([0; 128]);
        let mut by_name = Vec::new();
        for (name, place) in types {
            match *name {
                [character @ 0..128] => by_character[usize::from(character)] = place + 1,
                _ => by_name.push((name.into(), place)),
            }
        }
        let listed = compiler.defined.get(&tag::MSG_TYPE);
        let mut msg_types: Vec<Box<[u8]>> = listed
            .map_or(&[][..], |field| &field.values)
            .iter()
            .map(|value| value.as_bytes().into())
            .collect();
        msg_types.sort_unstable();
        Ok(Self {
            by_character,
            by_name: by_name.into_boxed_slice(),
            msg_types: ValueList(msg_types.into_boxed_slice()),
            messages: compiler.messages.into_boxed_slice(),
            groups: compiler.groups.into_boxed_slice(),
            lists: compiler.lists.into_boxed_slice(),
            tags: compiler.defined.keys().copied().collect(),
            user_defined: UserDefinedFields::Accept,
        })
    }
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UndefinedField(tag, place) => write!(f, "{place} has the tag {tag}, which is not defined"),
            Self::Tag(tag) => write!(f, "{tag} is no tag"),
            Self::NoHeaderOrTrailer => f.write_str("header or trailer has no fields"),
            Self::EmptyGroup(tag) => write!(f, "the group of tag {tag} has no fields"),
            Self::GroupDepth(tag) => write!(f, "the group of tag {tag} is more than {GROUP_DEPTH_MAX} groups deep"),
            Self::TooManyFields(place) => write!(f, "{place} has more than {FIELDS_MAX} fields"),
            Self::MsgType => f.write_str("a message has no type"),
            Self::TooLarge => f.write_str("the dictionary is too large"),
        }
    }
}

impl core::error::Error for DictionaryError {}

/// Deepest nesting of groups: each level is one call of the scan.
pub(super) const GROUP_DEPTH_MAX: usize = 8;

/// What has been made so far.
struct Compiler<'d> {
    defined: BTreeMap<u32, &'d FieldDefinition>,
    /// Kind, codes and index of the fields that are no groups and no lengths, which are the same wherever they stand.
    checks: BTreeMap<u32, (Kind, u128, u16)>,
    messages: Vec<MessageTable>,
    groups: Vec<GroupTable>,
    lists: Vec<ValueList>,
}

impl<'d> Compiler<'d> {
    fn new(definitions: impl Iterator<Item = &'d Definition>) -> Result<Self, DictionaryError> {
        let mut compiler = Self {
            defined: BTreeMap::new(),
            checks: BTreeMap::new(),
            messages: Vec::new(),
            groups: Vec::new(),
            lists: Vec::new(),
        };
        for field in definitions.flat_map(|definition| &definition.fields) {
            if field.tag == 0 || field.tag > MAX_TAG {
                return Err(DictionaryError::Tag(field.tag));
            }
            compiler.defined.insert(field.tag, field);
        }
        let fields: Vec<_> = compiler.defined.values().copied().collect();
        for field in fields {
            let check = compiler.check(field)?;
            compiler.checks.insert(field.tag, check);
        }
        Ok(compiler)
    }

    /// How a field's value is checked.
    fn check(&mut self, field: &FieldDefinition) -> Result<(Kind, u128, u16), DictionaryError> {
        use FieldType::{Boolean, Char, Codes, Data, Int, NumInGroup, Text, Unsigned};
        let field_type = field.field_type;
        let values = &field.values;
        if values.is_empty() || matches!(field_type, Boolean | NumInGroup | Data) {
            return Ok((Kind::Typed(field_type), 0, 0));
        }
        let set = values.iter().try_fold(0_u128, |set, value| match *value.as_bytes() {
            [character @ 0..128] => Some(set | 1 << character),
            _ => None,
        });
        let kind = match (field_type, set) {
            (Codes, Some(_)) => Kind::Codes,
            (Text | Char, Some(_)) => Kind::Code,
            (Int | Unsigned, Some(_)) => Kind::Digit,
            (Codes, None) => Kind::ListedCodes,
            _ => Kind::Listed(field_type),
        };
        let mut index = 0;
        if matches!(kind, Kind::Listed(_) | Kind::ListedCodes) {
            index = narrow(self.lists.len())?;
            let values = values.iter().map(|value| value.as_bytes().into()).collect();
            self.lists.push(ValueList::new(values));
        }
        Ok((kind, set.unwrap_or(0), index))
    }

    fn message(&mut self, session: &Definition, message: &MessageDefinition) -> Result<(), DictionaryError> {
        let mut body = message.members.clone();
        if !message.is_admin && body.iter().all(|member| member.tag != tag::TRIGGER) {
            body.push(Member {
                tag: tag::TRIGGER,
                is_required: false,
                group: None,
            });
        }
        let mut fields = Vec::new();
        let mut required = Vec::new();
        for (part, members) in [
            (Part::Header, &session.header),
            (Part::Body, &body),
            (Part::Trailer, &session.trailer),
        ] {
            let mut of_part = self.members(members, part, &message.name, 0)?;
            of_part.sort_unstable_by_key(|(field, _)| field.tag);
            // A field that two components bring is one field, and one that the header has too is the header's.
            for (field, is_required) in of_part {
                if fields.iter().all(|before: &Field| before.tag != field.tag) {
                    fields.push(field);
                    required.push(is_required);
                }
            }
        }
        if fields.len() > FIELDS_MAX {
            return Err(DictionaryError::TooManyFields(message.name.clone()));
        }
        let mut small = Box::new([0; SMALL_TAGS]);
        let mut high = Vec::new();
        for (place, field) in fields.iter().enumerate() {
            let place = narrow(place)?;
            match small.get_mut(field.tag as usize) {
                Some(slot) => *slot = place + 1,
                None => high.push((field.tag, place)),
            }
        }
        high.sort_unstable();
        // What a frame has whoever looks is not looked for.
        let is_looked_for = |field: &Field| !matches!(field.tag, tag::BEGIN_STRING | tag::BODY_LENGTH | tag::CHECK_SUM);
        let required = fields
            .iter()
            .zip(required)
            .map(|(field, is_required)| is_required && is_looked_for(field));
        self.messages.push(MessageTable {
            small,
            high: high.into_boxed_slice(),
            required: set_of(required),
            start: set_of(fields.iter().map(|field| START.contains(&field.tag))),
            fields: fields.into_boxed_slice(),
        });
        Ok(())
    }

    /// The fields of a part of a message or of a group, in its order, and whether they are required.
    fn members(
        &mut self,
        members: &[Member],
        part: Part,
        name: &str,
        depth: usize,
    ) -> Result<Vec<(Field, bool)>, DictionaryError> {
        let mut fields = Vec::with_capacity(members.len());
        for (at, member) in members.iter().enumerate() {
            let check = match (&member.group, self.checks.get(&member.tag)) {
                // The trigger may be defined or not.
                (None, None) if member.tag == tag::TRIGGER => (Kind::Typed(FieldType::Unsigned), 0, 0),
                (_, None) => return Err(DictionaryError::UndefinedField(member.tag, name.to_string())),
                (Some(group), _) => (Kind::Group, 0, self.group(member.tag, group, depth)?),
                (None, Some(&check)) => self
                    .data_after(members.get(at + 1))
                    .map_or(check, |data| (Kind::DataLength, u128::from(data), 0)),
            };
            let (kind, codes, index) = check;
            let field = Field {
                codes,
                tag: member.tag,
                index,
                kind,
                part,
                slot: if depth == 0 { slot_of(member.tag) } else { NO_SLOT },
            };
            fields.push((field, member.is_required));
        }
        Ok(fields)
    }

    /// The tag of the member that stands after a length, when it is a data field.
    fn data_after(&self, next: Option<&Member>) -> Option<u32> {
        let next = next.filter(|next| next.group.is_none())?;
        let is_data = self.defined.get(&next.tag)?.field_type == FieldType::Data;
        is_data.then_some(next.tag)
    }

    fn group(&mut self, count: u32, members: &[Member], depth: usize) -> Result<u16, DictionaryError> {
        if members.is_empty() {
            return Err(DictionaryError::EmptyGroup(count));
        }
        if depth == GROUP_DEPTH_MAX {
            return Err(DictionaryError::GroupDepth(count));
        }
        let name = alloc::format!("the group of tag {count}");
        if members.len() > FIELDS_MAX {
            return Err(DictionaryError::TooManyFields(name));
        }
        let fields = self.members(members, Part::Body, &name, depth + 1)?;
        let mut by_tag = Vec::new();
        for (place, (field, _)) in fields.iter().enumerate() {
            by_tag.push((field.tag, narrow(place)?));
        }
        by_tag.sort_unstable();
        by_tag.dedup_by_key(|(tag, _)| *tag);
        self.groups.push(GroupTable {
            required: set_of(fields.iter().map(|&(_, is_required)| is_required)),
            fields: fields.into_iter().map(|(field, _)| field).collect(),
            by_tag: by_tag.into_boxed_slice(),
        });
        narrow(self.groups.len() - 1)
    }
}

fn set_of(fields: impl Iterator<Item = bool>) -> FieldSet {
    let mut set = FieldSet::default();
    for (place, _) in fields.enumerate().filter(|&(_, is_in)| is_in) {
        insert(&mut set, place);
    }
    set
}

fn narrow(count: usize) -> Result<u16, DictionaryError> {
    u16::try_from(count).map_err(|_| DictionaryError::TooLarge)
}
