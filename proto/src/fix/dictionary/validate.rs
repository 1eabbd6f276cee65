//! The scan of a message that checks each field on the way.

use super::FieldType;
use super::tables::{Dictionary, Field, FieldSet, GroupTable, Kind, MessageTable, Part, UserDefinedFields};
use super::tables::{first_missing, insert};
use crate::fix::field::{Fields, Place, RejectReason, Violation};
use crate::fix::message::{Message, Scan, Scratch, fields_of};
use crate::fix::slots::{HEADER_WITHOUT_SLOT, slot_of};
use crate::fix::{tag, value};

impl Scratch {
    /// Scans a message that [`crate::fix::frame`] has found. With a dictionary the message must be as that says; without
    /// one this is [`Scratch::parse`].
    #[must_use]
    pub fn parse_with<'a>(&'a mut self, frame: &'a [u8], dictionary: Option<&Dictionary>) -> Message<'a> {
        let bytes = fields_of(frame);
        let mut fields = Fields::new(bytes);
        let (Some(dictionary), Some(start)) = (dictionary, first_places(&mut fields)) else {
            return self.parse(frame);
        };
        let (begin_string, msg_type) = start;
        let type_name = &bytes[msg_type.start..msg_type.end];
        let Some(table) = dictionary.message(type_name) else {
            let mut message = self.parse(frame);
            // A type that exists is for whoever handles messages to refuse: it is not broken, only not supported.
            if !dictionary.knows(type_name) {
                message.refuse(Violation::without_tag(RejectReason::InvalidMsgType));
            }
            return message;
        };
        let mut validation = Validation {
            dictionary,
            table,
            bytes,
            scan: Scan::new(self),
            seen: table.start,
            part: Part::Header,
            body_at: bytes.len(),
        };
        validation.scan.fill(BEGIN_STRING_SLOT, begin_string);
        validation.scan.fill(MSG_TYPE_SLOT, msg_type);
        loop {
            let at = fields.position();
            match fields.next_place_inlined() {
                None => break,
                Some(Ok(place)) => validation.field(at, place, &mut fields),
                Some(Err(violation)) => validation.faulty(violation),
            }
        }
        validation.finish()
    }
}

/// A scan with a dictionary as far as it has come.
struct Validation<'d, 'a> {
    dictionary: &'d Dictionary,
    table: &'d MessageTable,
    bytes: &'a [u8],
    scan: Scan<'a>,
    /// Fields outside of groups that were there.
    seen: FieldSet,
    part: Part,
    body_at: usize,
}

impl<'a> Validation<'_, 'a> {
    /// A field outside of groups, or the count of a group, whose instances are taken from `fields`.
    #[inline(always)]
    fn field(&mut self, at: usize, place: Place, fields: &mut Fields<'a>) {
        let Some(index) = self.table.place(place.tag) else {
            return self.unknown(place.tag);
        };
        let field = &self.table.fields[index];
        if field.part != self.part && !self.enter(field.part, at) {
            self.scan.note(Violation::new(RejectReason::TagOutOfOrder, place.tag));
        }
        if insert(&mut self.seen, index) {
            return self.scan.note(Violation::new(RejectReason::TagAppearsTwice, place.tag));
        }
        let value = &self.bytes[place.start..place.end];
        // The kinds that most fields of an order are, without a call.
        match field.kind {
            Kind::Typed(FieldType::Text) => (),
            Kind::Code if is_code(field.codes, value) => (),
            Kind::Typed(FieldType::Decimal) if FieldType::Decimal.holds(value) => (),
            Kind::Typed(FieldType::Unsigned) if FieldType::Unsigned.holds(value) => (),
            Kind::Typed(FieldType::UtcTimestamp) if self.scan.fill_time(field.tag, value) => (),
            _ => self.check(field, place, fields, 0),
        }
        if field.slot < HEADER_WITHOUT_SLOT {
            self.scan.fill(field.slot, place);
        }
    }

    /// Goes on to a later part of the message. Says whether it is a later one.
    fn enter(&mut self, part: Part, at: usize) -> bool {
        if part < self.part {
            return false;
        }
        if self.part == Part::Header {
            self.body_at = at;
        }
        self.part = part;
        true
    }

    /// Looks at a field's value, and at the instances of a group.
    fn check(&mut self, field: &Field, place: Place, fields: &mut Fields<'a>, depth: usize) {
        let value = &self.bytes[place.start..place.end];
        let reason = match field.kind {
            Kind::Typed(FieldType::Text) => return,
            Kind::Code => (!is_code(field.codes, value)).then_some(RejectReason::ValueIncorrect),
            Kind::Typed(FieldType::UtcTimestamp) => {
                let is_time = self.scan.fill_time(field.tag, value);
                (!is_time).then_some(RejectReason::IncorrectDataFormat)
            }
            Kind::Typed(field_type) => (!field_type.holds(value)).then_some(RejectReason::IncorrectDataFormat),
            Kind::Group => return self.group(field, place, fields, depth),
            Kind::DataLength => {
                // What is no number was refused, or is seen where the data field does not end.
                match (u32::try_from(field.codes), value::parse_u64(value).map(usize::try_from)) {
                    (Ok(tag), Some(Ok(length))) => return fields.expect_data(tag, length),
                    _ => Some(RejectReason::IncorrectDataFormat),
                }
            }
            _ => self.check_listed(field, value),
        };
        if let Some(reason) = reason {
            self.scan.note(Violation::new(reason, field.tag));
        }
    }

    /// The rarer ways to check a value.
    fn check_listed(&self, field: &Field, value: &[u8]) -> Option<RejectReason> {
        let is_listed = |value: &[u8]| {
            let list = self.dictionary.lists.get(usize::from(field.index));
            list.is_some_and(|list| list.has(value))
        };
        let mut words = value.split(|&byte| byte == b' ');
        let (is_of_type, is_allowed) = match field.kind {
            Kind::Digit => (FieldType::Int.holds(value), is_code(field.codes, value)),
            Kind::Codes => (true, words.all(|word| is_code(field.codes, word))),
            Kind::ListedCodes => (true, words.all(is_listed)),
            Kind::Listed(field_type) => (field_type.holds(value), is_listed(value)),
            Kind::Typed(_) | Kind::Code | Kind::Group | Kind::DataLength => (true, true),
        };
        if !is_of_type {
            return Some(RejectReason::IncorrectDataFormat);
        }
        (!is_allowed).then_some(RejectReason::ValueIncorrect)
    }

    /// The instances of a group, `place` being its count.
    fn group(&mut self, field: &Field, place: Place, fields: &mut Fields<'a>, depth: usize) {
        let Some(count) = value::parse_u64(&self.bytes[place.start..place.end]) else {
            return self.scan.note(Violation::format(place.tag));
        };
        let group = &self.dictionary.groups[usize::from(field.index)];
        let mut instances = 0;
        if count > 0 {
            instances = self.instances(group, fields, depth);
        }
        if instances != count {
            self.scan.note(Violation::new(RejectReason::GroupCount, place.tag));
        }
    }

    /// Takes the instances of a group, up to the first field that is not of it. Says how many there are.
    fn instances(&mut self, group: &GroupTable, fields: &mut Fields<'a>, depth: usize) -> u64 {
        let mut instances = 0;
        let mut seen = FieldSet::default();
        // The place that the next field must not be before.
        let mut next = 0;
        loop {
            let before = fields.clone();
            let place = match fields.next_place() {
                None => break,
                Some(Err(violation)) => {
                    self.faulty(violation);
                    continue;
                }
                Some(Ok(place)) => place,
            };
            let Some(index) = group.place(place.tag) else {
                *fields = before;
                break;
            };
            if index == 0 {
                if instances > 0 {
                    self.require(group, &seen);
                }
                instances += 1;
                (seen, next) = (FieldSet::default(), 0);
            }
            if insert(&mut seen, index) {
                self.scan.note(Violation::new(RejectReason::TagAppearsTwice, place.tag));
            } else if instances == 0 || index < next {
                self.scan.note(Violation::new(RejectReason::GroupOutOfOrder, place.tag));
            }
            next = next.max(index);
            self.check(&group.fields[index], place, fields, depth + 1);
        }
        if instances > 0 {
            self.require(group, &seen);
        }
        instances
    }

    fn require(&mut self, group: &GroupTable, seen: &FieldSet) {
        if let Some(missing) = first_missing(&group.required, seen) {
            self.scan.note(Violation::missing(group.fields[missing].tag));
        }
    }

    /// A tag that the message type does not have.
    #[cold]
    fn unknown(&mut self, tag: u32) {
        if !self.passes_unseen(tag) {
            let reason = if self.dictionary.defines(tag) {
                RejectReason::TagNotOfMessage
            } else {
                RejectReason::InvalidTagNumber
            };
            self.scan.note(Violation::new(reason, tag));
        }
    }

    /// A field that is none, or has no value: an unknown tag is told first.
    #[cold]
    fn faulty(&mut self, violation: Violation) {
        if let (RejectReason::TagWithoutValue, Some(Ok(tag))) = (violation.reason, violation.tag.map(u32::try_from))
            && !self.dictionary.defines(tag)
            && !self.passes_unseen(tag)
        {
            return self.unknown(tag);
        }
        self.scan.note(violation);
    }

    const fn passes_unseen(&self, tag: u32) -> bool {
        tag >= USER_DEFINED && matches!(self.dictionary.user_defined, UserDefinedFields::Accept)
    }

    fn finish(mut self) -> Message<'a> {
        if let Some(missing) = first_missing(&self.table.required, &self.seen) {
            self.scan.note(Violation::missing(self.table.fields[missing].tag));
        }
        self.scan.message(self.bytes, self.body_at)
    }
}

/// The places of BeginString and MsgType; with these, and BodyLength between them, each frame starts.
#[inline(always)]
fn first_places(fields: &mut Fields<'_>) -> Option<(Place, Place)> {
    let begin_string = next_of(fields, tag::BEGIN_STRING)?;
    next_of(fields, tag::BODY_LENGTH)?;
    let msg_type = next_of(fields, tag::MSG_TYPE)?;
    Some((begin_string, msg_type))
}

/// The place of the next field, when it has this tag.
#[inline(always)]
fn next_of(fields: &mut Fields<'_>, tag: u32) -> Option<Place> {
    match fields.next_place_inlined() {
        Some(Ok(place)) if place.tag == tag => Some(place),
        _ => None,
    }
}

/// The fields with which a frame starts.
pub(super) const START: [u32; 3] = [tag::BEGIN_STRING, tag::BODY_LENGTH, tag::MSG_TYPE];

const BEGIN_STRING_SLOT: u8 = slot_of(tag::BEGIN_STRING);

const MSG_TYPE_SLOT: u8 = slot_of(tag::MSG_TYPE);

/// Whether a value is one character of the set.
#[inline]
const fn is_code(codes: u128, value: &[u8]) -> bool {
    match *value {
        [character @ 0..128] => codes >> character & 1 == 1,
        _ => false,
    }
}

/// The first tag of those that FIX leaves to its users.
const USER_DEFINED: u32 = 5_000;
