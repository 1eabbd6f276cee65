//! What a dictionary says of a message, the plain and slow way: straight from the definition, by lists.

use super::{Definition, FieldType, Member, UserDefinedFields};
use crate::fix::{RejectReason, Violation, tag};
use alloc::string::String;
use alloc::vec::Vec;

/// One field as it came.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) tag: u32,
    pub(super) value: Vec<u8>,
}

pub(super) use Given as Field;

/// The fields of a header such as `34=2|49=A|`, with what a frame starts with.
pub(super) fn header(msg_type: &str, rest: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in alloc::format!("8=FIX.4.4|9=1|35={msg_type}|{rest}").split_terminator('|') {
        let (tag, value) = field.split_once('=').unwrap();
        fields.push(Field {
            tag: tag.parse().unwrap(),
            value: value.as_bytes().to_vec(),
        });
    }
    fields
}

/// The first thing that is wrong.
pub(super) fn verdict(definition: &Definition, fields: &[Field], user_defined: UserDefinedFields) -> Option<Violation> {
    let msg_type = String::from_utf8(fields[2].value.clone()).unwrap();
    let Some(message) = definition.messages.iter().find(|message| message.msg_type == msg_type) else {
        return Some(Violation::without_tag(RejectReason::InvalidMsgType));
    };
    let mut body = message.members.clone();
    if !message.is_admin {
        body.push(Member {
            tag: tag::TRIGGER,
            is_required: false,
            group: None,
        });
    }
    let model = Model {
        definition,
        user_defined,
    };
    let parts = [&definition.header, &body, &definition.trailer];
    model.message(parts, fields).err()
}

struct Model<'d> {
    definition: &'d Definition,
    user_defined: UserDefinedFields,
}

impl Model<'_> {
    fn message(&self, parts: [&Vec<Member>; 3], fields: &[Field]) -> Result<(), Violation> {
        let (mut part, mut seen, mut at) = (0, Vec::new(), 0);
        while at < fields.len() {
            let field = &fields[at];
            at += 1;
            if field.tag > 99_999 {
                return Err(Violation::new(RejectReason::InvalidTagNumber, field.tag));
            }
            let is_of = |part: &Vec<Member>| part.iter().any(|member| member.tag == field.tag);
            let place = parts.iter().position(|part| is_of(part));
            let passes = field.tag >= 5_000 && self.user_defined == UserDefinedFields::Accept;
            let is_defined = self.definition.fields.iter().any(|defined| defined.tag == field.tag);
            if field.value.is_empty() {
                let is_known = is_defined || passes;
                let reason = if is_known {
                    RejectReason::TagWithoutValue
                } else {
                    RejectReason::InvalidTagNumber
                };
                return Err(Violation::new(reason, field.tag));
            }
            let Some(place) = place else {
                if passes {
                    continue;
                }
                let reason = if is_defined {
                    RejectReason::TagNotOfMessage
                } else {
                    RejectReason::InvalidTagNumber
                };
                return Err(Violation::new(reason, field.tag));
            };
            if place < part {
                return Err(Violation::new(RejectReason::TagOutOfOrder, field.tag));
            }
            part = place;
            if seen.contains(&field.tag) {
                return Err(Violation::new(RejectReason::TagAppearsTwice, field.tag));
            }
            seen.push(field.tag);
            let member = parts[place].iter().find(|member| member.tag == field.tag).unwrap();
            self.value(field, member, fields, &mut at)?;
        }
        for part in parts {
            let is_missing = |member: &&Member| member.is_required && !seen.contains(&member.tag) && member.tag != 10;
            if let Some(missing) = part.iter().filter(is_missing).map(|member| member.tag).min() {
                return Err(Violation::missing(missing));
            }
        }
        Ok(())
    }

    /// The value of a field, and the instances when it counts a group.
    fn value(&self, field: &Field, member: &Member, fields: &[Field], at: &mut usize) -> Result<(), Violation> {
        let defined = self.definition.fields.iter().find(|defined| defined.tag == field.tag);
        let field_type = defined.map_or(FieldType::Unsigned, |defined| defined.field_type);
        if !field_type.holds(&field.value) {
            let is_listed_character =
                field_type == FieldType::Char && defined.is_some_and(|defined| !defined.values.is_empty());
            return Err(if is_listed_character {
                Violation::incorrect(field.tag)
            } else {
                Violation::format(field.tag)
            });
        }
        let values = defined.map_or(&[][..], |defined| &defined.values);
        let is_allowed = |value: &[u8]| values.is_empty() || values.iter().any(|allowed| allowed.as_bytes() == value);
        let are_allowed = match field_type {
            FieldType::Codes => field.value.split(|&byte| byte == b' ').all(is_allowed),
            _ => is_allowed(&field.value),
        };
        if !are_allowed {
            return Err(Violation::incorrect(field.tag));
        }
        match &member.group {
            Some(group) => self.group(field, group, fields, at),
            None => Ok(()),
        }
    }

    fn group(&self, count: &Field, group: &[Member], fields: &[Field], at: &mut usize) -> Result<(), Violation> {
        let told: u64 = core::str::from_utf8(&count.value).unwrap().parse().unwrap();
        let mut instances: Vec<Vec<u32>> = Vec::new();
        while let Some(field) = fields.get(*at).filter(|_| told > 0) {
            if field.value.is_empty() || field.tag > 99_999 {
                // No field of anything: told as such, wherever it stands.
                let is_defined = self.definition.fields.iter().any(|defined| defined.tag == field.tag);
                let passes = field.tag >= 5_000 && self.user_defined == UserDefinedFields::Accept;
                return Err(if field.tag <= 99_999 && (is_defined || passes) {
                    Violation::new(RejectReason::TagWithoutValue, field.tag)
                } else {
                    Violation::new(RejectReason::InvalidTagNumber, field.tag)
                });
            }
            let Some(place) = group.iter().position(|member| member.tag == field.tag) else {
                break;
            };
            *at += 1;
            if place == 0 {
                Self::complete(group, instances.last())?;
                instances.push(Vec::new());
            }
            let Some(instance) = instances.last_mut() else {
                return Err(Violation::new(RejectReason::GroupOutOfOrder, field.tag));
            };
            if instance.contains(&field.tag) {
                return Err(Violation::new(RejectReason::TagAppearsTwice, field.tag));
            }
            let place_of = |tag: &u32| group.iter().position(|member| member.tag == *tag).unwrap();
            if instance.iter().any(|tag| place_of(tag) > place) {
                return Err(Violation::new(RejectReason::GroupOutOfOrder, field.tag));
            }
            instance.push(field.tag);
            self.value(field, &group[place], fields, at)?;
        }
        Self::complete(group, instances.last())?;
        if instances.len() as u64 != told {
            return Err(Violation::new(RejectReason::GroupCount, count.tag));
        }
        Ok(())
    }

    /// Whether an instance has all that it must.
    fn complete(group: &[Member], instance: Option<&Vec<u32>>) -> Result<(), Violation> {
        let Some(instance) = instance else {
            return Ok(());
        };
        match group
            .iter()
            .find(|member| member.is_required && !instance.contains(&member.tag))
        {
            Some(missing) => Err(Violation::missing(missing.tag)),
            None => Ok(()),
        }
    }
}
