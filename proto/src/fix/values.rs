//! The values of the tags that a message type has a use for, gathered in one pass.
//!
//! A tag finds its place by a table: a `match` over so many sparse numbers costs an indirect jump a field, which is more
//! than everything else that is done with it.

use super::field::{Field, Fields, RejectReason, Violation};
use super::{MAX_VALUE_LENGTH, tag};

/// Which tags are gathered, and in which order.
pub(super) struct TagTable<const N: usize> {
    places: [u8; TABLE_LENGTH],
}

/// What a table says of a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Not gathered.
    Unused,
    /// Not gathered, and a field of the standard header.
    Header,
    /// The index of its value.
    Value(usize),
}

impl<const N: usize> TagTable<N> {
    /// A table for these tags, each below 511 but for [`tag::TRIGGER`].
    #[allow(clippy::cast_possible_truncation, reason = "both are below the length of the table")]
    pub(super) const fn new(tags: [u32; N]) -> Self {
        assert!(N < HEADER as usize);
        let mut places = [UNUSED; TABLE_LENGTH];
        let mut tag = 1;
        while tag < TRIGGER_INDEX {
            if tag::is_header(tag as u32) {
                places[tag] = HEADER;
            }
            tag += 1;
        }
        let mut index = 0;
        while index < N {
            let at = table_index(tags[index]);
            assert!(at != 0, "a tag beyond the table");
            places[at] = index as u8 + 1;
            index += 1;
        }
        Self { places }
    }

    #[inline]
    pub(super) fn place(&self, tag: u32) -> Place {
        match self.places[table_index(tag)] {
            UNUSED => Place::Unused,
            HEADER => Place::Header,
            place => Place::Value(usize::from(place) - 1),
        }
    }

    /// The values of a body, empty where a tag is absent.
    #[inline]
    pub(super) fn gather<'a>(&self, body: &'a [u8]) -> Result<[&'a [u8]; N], Violation> {
        let mut values: [&[u8]; N] = [b""; N];
        for field in Fields::new(body) {
            let field = field?;
            match self.place(field.tag) {
                Place::Unused => (),
                Place::Header => return Err(Violation::new(RejectReason::TagOutOfOrder, field.tag)),
                Place::Value(index) => set(&mut values[index], field)?,
            }
        }
        Ok(values)
    }
}

/// Fills a value that is empty as long as its tag was not seen.
#[inline]
pub(super) fn set<'a>(value: &mut &'a [u8], field: Field<'a>) -> Result<(), Violation> {
    if !value.is_empty() {
        return Err(Violation::new(RejectReason::TagAppearsTwice, field.tag));
    }
    // Text may be of any length: nobody keeps it.
    if field.value.len() > MAX_VALUE_LENGTH && field.tag != tag::TEXT {
        return Err(Violation::incorrect(field.tag));
    }
    *value = field.value;
    Ok(())
}

/// Where a tag stands in a table; 0 for those that stand in none.
#[inline]
const fn table_index(tag: u32) -> usize {
    if (tag as usize) < TRIGGER_INDEX {
        tag as usize
    } else if tag == tag::TRIGGER {
        TRIGGER_INDEX
    } else {
        0
    }
}

/// The last place of a table; those before it are the tags of the same number.
const TRIGGER_INDEX: usize = TABLE_LENGTH - 1;

const TABLE_LENGTH: usize = 512;

const UNUSED: u8 = 0;

const HEADER: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: TagTable<3> = TagTable::new([11, 9001, 58]);

    #[test]
    fn values_come_in_the_tables_order() {
        assert_eq!(
            TABLE.gather(b"58=c\x0121=x\x019001=b\x01600=y\x0111=a\x01"),
            Ok([&b"a"[..], b"b", b"c"])
        );
        assert_eq!(TABLE.gather(b"11=a\x01"), Ok([&b"a"[..], b"", b""]));
    }

    #[test]
    fn what_stands_twice_or_out_of_place_is_refused() {
        assert_eq!(
            TABLE.gather(b"11=a\x0111=b\x01"),
            Err(Violation::new(RejectReason::TagAppearsTwice, 11))
        );
        assert_eq!(
            TABLE.gather(b"11=a\x0134=5\x01"),
            Err(Violation::new(RejectReason::TagOutOfOrder, 34))
        );
        assert_eq!(
            TABLE.gather(&[b"11=", [b'x'; 65].as_slice(), b"\x01"].concat()),
            Err(Violation::incorrect(11))
        );
        assert!(TABLE.gather(&[b"58=", [b'x'; 65].as_slice(), b"\x01"].concat()).is_ok());
    }

    #[test]
    fn every_header_tag_of_the_table_is_known() {
        for tag in 0..1_000 {
            let expected = match tag {
                11 => Place::Value(0),
                58 => Place::Value(2),
                _ if tag::is_header(tag) && tag < 511 => Place::Header,
                _ => Place::Unused,
            };
            assert_eq!(TABLE.place(tag), expected, "{tag}");
        }
    }
}
