//! A dictionary as the scan uses it: for each message type a table from tag to what the field must be.

use super::FieldType;
use crate::fix::Version;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of_val;

/// What a version's messages have, in tables. Made by [`Dictionary::compile`]; never changes.
#[derive(Debug)]
pub struct Dictionary {
    /// By a MsgType of one character: the message's place and one, or 0.
    pub(super) by_character: Box<[u16; 128]>,
    /// Longer MsgTypes, sorted, with the message's place.
    pub(super) by_name: Box<[(Box<[u8]>, u16)]>,
    pub(super) messages: Box<[MessageTable]>,
    /// Values of MsgType (35), sorted: types that exist, whether there is a table or not.
    pub(super) msg_types: ValueList,
    pub(super) groups: Box<[GroupTable]>,
    pub(super) lists: Box<[ValueList]>,
    /// All tags that are defined at all, sorted.
    pub(super) tags: Box<[u32]>,
    pub(super) user_defined: UserDefinedFields,
}

/// The dictionaries of a session, by version. A version without one is not validated. Cheap to copy: sessions share them.
#[derive(Clone, Default, Debug)]
pub struct Dictionaries {
    by_version: [Option<Arc<Dictionary>>; Version::ALL.len()],
}

/// What becomes of user-defined fields (tags from 5000 on) that the dictionary does not have for a message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UserDefinedFields {
    /// They pass unseen, anywhere in a message.
    #[default]
    Accept,
    /// They are refused as others are.
    Refuse,
}

/// One message type: header, body and trailer together.
#[derive(Debug)]
pub(super) struct MessageTable {
    /// By tag: the field's place and one, or 0. Tags from [`SMALL_TAGS`] on are in `high`.
    pub(super) small: Box<[u16; SMALL_TAGS]>,
    /// Sorted by tag.
    pub(super) high: Box<[(u32, u16)]>,
    /// The fields, by part and within it by tag. The place of a field is its bit in a [`FieldSet`].
    pub(super) fields: Box<[Field]>,
    /// Fields that must be there.
    pub(super) required: FieldSet,
    /// Those that a frame starts with, which are there before the scan looks.
    pub(super) start: FieldSet,
}

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// The values that are allowed, as a set of ASCII characters, when each is one character. Empty when any is, or when
    /// `list` holds them.
    pub(super) codes: u128,
    pub(super) tag: u32,
    /// Where more is found about it; which, `kind` tells.
    pub(super) index: u16,
    pub(super) kind: Kind,
    pub(super) part: Part,
    /// Where a message keeps its value, as [`crate::fix::slots::slot_of`] has it.
    pub(super) slot: u8,
}

/// How a value is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// By type alone.
    Typed(FieldType),
    /// One character of `codes`.
    Code,
    /// One number of one digit of `codes`: what is no number is of the wrong type.
    Digit,
    /// Characters of `codes`, separated by spaces.
    Codes,
    /// Of this type, and in the list at `index`.
    Listed(FieldType),
    /// Words of the list at `index`, separated by spaces.
    ListedCodes,
    /// The count of the group at `index`.
    Group,
    /// The length of the data field that follows; its tag is in `codes`.
    DataLength,
}

/// The parts of a message, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Part {
    Header,
    Body,
    Trailer,
}

/// A set of a message's fields, by place.
pub(super) type FieldSet = [u64; FIELD_WORDS];

/// A repeating group.
#[derive(Debug)]
pub(super) struct GroupTable {
    /// Its fields in their order, the delimiter first. `part` has no meaning here.
    pub(super) fields: Box<[Field]>,
    /// Sorted by tag, with the field's place.
    pub(super) by_tag: Box<[(u32, u16)]>,
    /// Fields that must be in each instance.
    pub(super) required: FieldSet,
}

/// Values that are allowed, sorted.
#[derive(Debug)]
pub(super) struct ValueList(pub(super) Box<[Box<[u8]>]>);

impl Dictionaries {
    /// These, and one for another version.
    #[must_use]
    pub fn with(mut self, version: Version, dictionary: Arc<Dictionary>) -> Self {
        self.by_version[version as usize] = Some(dictionary);
        self
    }

    /// The dictionary of a version.
    #[inline]
    #[must_use]
    pub fn get(&self, version: Version) -> Option<&Dictionary> {
        self.by_version[version as usize].as_deref()
    }
}

impl Dictionary {
    /// Says what becomes of user-defined fields that the dictionary does not have.
    #[must_use]
    pub fn with_user_defined_fields(mut self, user_defined: UserDefinedFields) -> Self {
        self.user_defined = user_defined;
        self
    }

    /// Bytes that the tables take.
    #[must_use]
    pub fn allocated(&self) -> usize {
        let messages = self
            .messages
            .iter()
            .map(|message| size_of_val(&*message.small) + size_of_val(&*message.high) + size_of_val(&*message.fields));
        let groups = self
            .groups
            .iter()
            .map(|group| size_of_val(&*group.fields) + size_of_val(&*group.by_tag));
        size_of_val(&*self.by_character)
            + size_of_val(&*self.messages)
            + size_of_val(&*self.groups)
            + size_of_val(&*self.tags)
            + messages.sum::<usize>()
            + groups.sum::<usize>()
    }

    /// Whether a message type exists in this version, as far as the dictionary says.
    pub(super) fn knows(&self, msg_type: &[u8]) -> bool {
        self.msg_types
            .0
            .binary_search_by(|known| (**known).cmp(msg_type))
            .is_ok()
    }

    /// The table of a message type.
    #[inline]
    pub(super) fn message(&self, msg_type: &[u8]) -> Option<&MessageTable> {
        let place = match *msg_type {
            [character @ 0..128] => usize::from(self.by_character[usize::from(character)].checked_sub(1)?),
            _ => {
                let found = self.by_name.binary_search_by(|(name, _)| (**name).cmp(msg_type));
                usize::from(self.by_name[found.ok()?].1)
            }
        };
        self.messages.get(place)
    }

    /// Whether any message has this tag.
    pub(super) fn defines(&self, tag: u32) -> bool {
        self.tags.binary_search(&tag).is_ok()
    }
}

impl MessageTable {
    /// The place of a tag, which is also its bit.
    #[inline]
    pub(super) fn place(&self, tag: u32) -> Option<usize> {
        if let Some(&place) = self.small.get(tag as usize) {
            return usize::from(place).checked_sub(1);
        }
        place_in(&self.high, tag)
    }
}

impl GroupTable {
    /// The place of a tag, which is also its bit.
    pub(super) fn place(&self, tag: u32) -> Option<usize> {
        place_in(&self.by_tag, tag)
    }
}

impl ValueList {
    pub(super) fn new(mut values: Vec<Box<[u8]>>) -> Self {
        values.sort_unstable();
        Self(values.into_boxed_slice())
    }

    pub(super) fn has(&self, value: &[u8]) -> bool {
        self.0.binary_search_by(|listed| (**listed).cmp(value)).is_ok()
    }
}

fn place_in(sorted: &[(u32, u16)], tag: u32) -> Option<usize> {
    let found = sorted.binary_search_by_key(&tag, |&(tag, _)| tag).ok()?;
    Some(usize::from(sorted[found].1))
}

/// Adds a field to a set. Says whether it was in it.
#[inline]
pub(super) fn insert(set: &mut FieldSet, place: usize) -> bool {
    let (word, bit) = (&mut set[place / 64 % FIELD_WORDS], 1 << (place % 64));
    let was_in = *word & bit != 0;
    *word |= bit;
    was_in
}

/// The first place that is in `required` and not in `seen`.
#[inline]
pub(super) fn first_missing(required: &FieldSet, seen: &FieldSet) -> Option<usize> {
    required
        .iter()
        .zip(seen)
        .enumerate()
        .find_map(|(word, (required, seen))| {
            let missing = required & !seen;
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        })
}

/// Tags that find their field by one look into a table.
pub(super) const SMALL_TAGS: usize = 1_280;

const FIELD_WORDS: usize = 8;

/// Most fields of one message outside of its groups, header and trailer included; and of one group.
pub(super) const FIELDS_MAX: usize = 64 * FIELD_WORDS;
