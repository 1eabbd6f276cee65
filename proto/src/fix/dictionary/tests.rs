//! What the tables say of messages, by hand and against a plain model.

use super::model::{self, Field as Given};
use super::*;
use crate::fix::samples::{bytes, whole};
use crate::fix::{RejectReason, Scratch, Violation, tag};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

fn field(tag: u32, field_type: FieldType, values: &[&str]) -> FieldDefinition {
    FieldDefinition {
        tag,
        name: format!("Field{tag}"),
        field_type,
        values: values.iter().map(ToString::to_string).collect(),
    }
}

fn member(tag: u32, is_required: bool) -> Member {
    Member {
        tag,
        is_required,
        group: None,
    }
}

fn group(count: u32, members: Vec<Member>) -> Member {
    Member {
        tag: count,
        is_required: false,
        group: Some(members),
    }
}

fn message(msg_type: &str, is_admin: bool, members: Vec<Member>) -> MessageDefinition {
    MessageDefinition {
        msg_type: msg_type.to_string(),
        name: format!("Message{msg_type}"),
        is_admin,
        members,
    }
}

/// A small dictionary with all that there can be: types, lists, data, groups in groups.
fn definition() -> Definition {
    use FieldType::{
        Boolean, Char, Codes, Data, Date, Decimal, Int, MonthYear, NumInGroup, Text, Unsigned, UtcTimeOnly,
        UtcTimestamp,
    };
    let (required, optional) = (|tag| member(tag, true), |tag| member(tag, false));
    Definition {
        fields: vec![
            field(8, Text, &[]),
            field(9, Unsigned, &[]),
            field(10, Text, &[]),
            field(35, Text, &["0", "D", "AF", "AG"]),
            field(34, Unsigned, &[]),
            field(43, Boolean, &["Y", "N"]),
            field(49, Text, &[]),
            field(52, UtcTimestamp, &[]),
            field(56, Text, &[]),
            field(115, Text, &[]),
            field(93, Unsigned, &[]),
            field(89, Data, &[]),
            field(11, Text, &[]),
            field(18, Codes, &["1", "G", "6"]),
            field(21, Char, &["1", "2", "3"]),
            field(38, Decimal, &[]),
            field(40, Char, &["1", "2", "P"]),
            field(54, Char, &["1", "2"]),
            field(55, Text, &[]),
            field(58, Text, &[]),
            field(60, UtcTimestamp, &[]),
            field(103, Int, &["0", "1", "99"]),
            field(112, Text, &[]),
            field(167, Text, &["CS", "FUT"]),
            field(200, MonthYear, &[]),
            field(273, UtcTimeOnly, &[]),
            field(432, Date, &[]),
            field(453, NumInGroup, &[]),
            field(448, Text, &[]),
            field(447, Char, &["B", "D"]),
            field(452, Int, &[]),
            field(802, NumInGroup, &[]),
            field(523, Text, &[]),
            field(803, Int, &["1", "2"]),
            field(620, Text, &["x"]),
            field(5001, Int, &[]),
            field(6001, Unsigned, &[]),
            field(6002, Data, &[]),
        ],
        header: vec![
            required(8),
            required(9),
            required(35),
            required(34),
            required(49),
            required(56),
            optional(43),
            required(52),
            optional(115),
        ],
        trailer: vec![optional(93), optional(89), required(10)],
        messages: vec![
            message("0", true, vec![optional(112)]),
            message(
                "D",
                false,
                vec![
                    required(11),
                    group(
                        453,
                        vec![
                            required(448),
                            optional(447),
                            required(452),
                            group(802, vec![optional(523), optional(803)]),
                        ],
                    ),
                    optional(18),
                    optional(21),
                    required(55),
                    required(54),
                    optional(38),
                    required(40),
                    optional(60),
                    optional(103),
                    optional(167),
                    optional(200),
                    optional(273),
                    optional(432),
                    optional(58),
                    optional(6001),
                    optional(6002),
                ],
            ),
            message("AF", false, vec![required(55)]),
        ],
    }
}

pub(in crate::fix) fn dictionary() -> Dictionary {
    Dictionary::compile(&definition(), None).unwrap()
}

const HEADER: &str = "34=2|49=A|52=20260301-00:00:00.123|56=B|";

fn verdict(dictionary: &Dictionary, fields: &str) -> Option<Violation> {
    let frame = whole("FIX.4.4", fields);
    Scratch::new().parse_with(&frame, Some(dictionary)).violation()
}

/// What is wrong with an order that has these fields too.
fn order_with(fields: &str) -> Option<Violation> {
    verdict(&dictionary(), &format!("35=D|{HEADER}11=a|55=b|54=1|40=2|{fields}"))
}

#[test]
fn a_message_as_the_dictionary_has_it_passes() {
    assert_eq!(order_with(""), None);
    assert_eq!(
        order_with("18=1 G|21=3|38=002000.00|60=20260301-00:00:00|103=99|167=CS|200=202603|273=10:00:00|432=20260301|"),
        None
    );
    assert_eq!(order_with("453=2|448=x|447=B|452=1|448=y|452=3|58=t|"), None);
    assert_eq!(
        order_with("453=1|448=x|452=1|802=2|523=m|803=1|523=n|58=t|93=1|89=s|"),
        None
    );
    assert_eq!(verdict(&dictionary(), &format!("35=0|{HEADER}")), None);
    assert_eq!(verdict(&dictionary(), &format!("35=AF|{HEADER}55=x|")), None);
}

#[test]
fn each_rule_has_its_reason() {
    use RejectReason::{
        GroupCount, GroupOutOfOrder, IncorrectDataFormat, InvalidTagNumber, RequiredTagMissing, TagAppearsTwice,
        TagNotOfMessage, TagOutOfOrder, TagWithoutValue, ValueIncorrect,
    };
    for (fields, reason, tag) in [
        ("999=x|", InvalidTagNumber, 999),
        ("999=|", InvalidTagNumber, 999),
        ("112=x|", TagNotOfMessage, 112),
        ("448=x|", TagNotOfMessage, 448),
        ("58=|", TagWithoutValue, 58),
        ("115=J|", TagOutOfOrder, 115),
        ("93=1|89=s|58=t|", TagOutOfOrder, 58),
        ("58=t|58=u|", TagAppearsTwice, 58),
        ("21=4|", ValueIncorrect, 21),
        ("21=22|", ValueIncorrect, 21),
        ("18=1 x|", ValueIncorrect, 18),
        ("18=1  G|", ValueIncorrect, 18),
        ("103=2|", ValueIncorrect, 103),
        ("103=x|", IncorrectDataFormat, 103),
        ("167=BOO|", ValueIncorrect, 167),
        ("38=+200.00|", IncorrectDataFormat, 38),
        ("60=20260301|", IncorrectDataFormat, 60),
        ("200=2026|", IncorrectDataFormat, 200),
        ("273=noon|", IncorrectDataFormat, 273),
        ("432=20260230|", IncorrectDataFormat, 432),
        ("453=x|448=x|452=1|", IncorrectDataFormat, 453),
        ("453=3|448=x|452=1|448=y|452=2|58=t|", GroupCount, 453),
        ("453=1|448=x|452=1|448=y|452=2|", GroupCount, 453),
        ("453=1|58=t|", GroupCount, 453),
        ("453=1|447=B|448=x|452=1|", GroupOutOfOrder, 447),
        ("453=1|448=x|452=1|447=B|", GroupOutOfOrder, 447),
        ("453=1|448=x|452=1|452=1|", TagAppearsTwice, 452),
        ("453=2|448=x|448=y|452=1|", RequiredTagMissing, 452),
        ("453=1|448=x|", RequiredTagMissing, 452),
        ("453=1|448=x|447=Z|452=1|", ValueIncorrect, 447),
        ("453=1|448=x|452=1|802=2|523=m|", GroupCount, 802),
        ("453=1|448=x|452=1|802=1|803=1|", GroupOutOfOrder, 803),
        ("93=9|89=s|", IncorrectDataFormat, 89),
    ] {
        assert_eq!(order_with(fields), Some(Violation::new(reason, tag)), "{fields}");
    }
}

#[test]
fn a_group_of_none_has_no_instances() {
    assert_eq!(order_with("453=0|58=t|"), None);
    assert_eq!(
        order_with("453=0|448=x|"),
        Some(Violation::new(RejectReason::TagNotOfMessage, 448))
    );
}

#[test]
fn the_lowest_missing_tag_is_named_the_headers_first() {
    let dictionary = dictionary();
    for (fields, missing) in [
        ("35=D|34=2|49=A|52=20260301-00:00:00|40=1|", 56),
        ("35=D|34=2|49=A|52=20260301-00:00:00|56=B|40=1|54=1|", 11),
        ("35=D|34=2|49=A|52=20260301-00:00:00|56=B|11=x|", 40),
        ("35=D|34=2|49=A|56=B|11=x|", 52),
    ] {
        assert_eq!(
            verdict(&dictionary, fields),
            Some(Violation::missing(missing)),
            "{fields}"
        );
    }
}

#[test]
fn a_message_type_that_is_listed_and_not_described_is_not_broken() {
    assert_eq!(verdict(&dictionary(), &format!("35=AG|{HEADER}58=text|")), None);
}

#[test]
fn a_message_type_that_nobody_defines_is_refused_without_a_tag() {
    let refused = Some(Violation::without_tag(RejectReason::InvalidMsgType));
    for msg_type in ["*", "B", "AE", "é"] {
        assert_eq!(verdict(&dictionary(), &format!("35={msg_type}|{HEADER}58=|")), refused);
    }
}

#[test]
fn user_defined_fields_pass_unless_told_otherwise() {
    let fields = format!("35=D|{HEADER}7000=x|11=a|55=b|54=1|40=2|5001=notanumber|7000=x|9001=7|");
    assert_eq!(verdict(&dictionary(), &fields), None);
    let refusing = dictionary().with_user_defined_fields(UserDefinedFields::Refuse);
    let reason = |fields: &str| verdict(&refusing, &format!("35=D|{HEADER}11=a|55=b|54=1|40=2|{fields}"));
    assert_eq!(
        reason("7000=x|"),
        Some(Violation::new(RejectReason::InvalidTagNumber, 7000))
    );
    assert_eq!(
        reason("5001=1|"),
        Some(Violation::new(RejectReason::TagNotOfMessage, 5001))
    );
    assert_eq!(reason("9001=7|"), None);
    assert_eq!(reason("9001=x|"), Some(Violation::format(9001)));
}

#[test]
fn values_are_kept_and_those_of_groups_are_not() {
    let mut definition = definition();
    // The group has a field that a slot is for, and the body has it not.
    definition.messages[1].members[1]
        .group
        .as_mut()
        .unwrap()
        .push(member(41, false));
    definition.fields.push(field(41, FieldType::Text, &[]));
    let dictionary = Dictionary::compile(&definition, None).unwrap();
    let frame = whole(
        "FIX.4.4",
        &format!("35=D|{HEADER}115=J|11=a|453=1|448=x|452=1|41=no|55=b|54=1|40=2|60=20260301-00:00:00|9001=7|"),
    );
    let mut scratch = Scratch::new();
    let message = scratch.parse_with(&frame, Some(&dictionary));
    assert_eq!(message.violation(), None);
    assert_eq!((message.get(11), message.get(55)), (&b"a"[..], &b"b"[..]));
    assert_eq!((message.get(41), message.get(tag::TRIGGER)), (&b""[..], &b"7"[..]));
    assert_eq!(message.sequence(), Some(2));
    assert_eq!(message.transact_time().0, 1_772_323_200_000_000_000);
    assert_eq!(message.sending_time().0, 1_772_323_200_123_000_000);
    assert!(message.body().starts_with(b"11=a\x01453=1"));
}

#[test]
fn a_data_field_may_hold_the_delimiter() {
    assert_eq!(order_with("6001=5|6002=a\x01=\x01b|58=t|"), None);
    assert_eq!(
        order_with("6001=4|6002=a\x01=\x01b|58=t|"),
        Some(Violation::format(6002))
    );
    assert_eq!(order_with("6001=x|6002=a|"), Some(Violation::format(6001)));
}

#[test]
fn the_application_has_its_own_fields_and_the_session_its_types() {
    let session = definition();
    let application = Definition {
        fields: vec![field(54, FieldType::Char, &["9"]), field(55, FieldType::Text, &[])],
        messages: vec![
            message("8", false, vec![member(54, true), member(55, true)]),
            message("0", false, vec![member(55, true)]),
        ],
        ..Definition::default()
    };
    let dictionary = Dictionary::compile(&session, Some(&application)).unwrap();
    assert_eq!(verdict(&dictionary, &format!("35=0|{HEADER}112=x|")), None);
    assert_eq!(verdict(&dictionary, &format!("35=8|{HEADER}54=9|55=x|")), None);
    assert_eq!(
        verdict(&dictionary, &format!("35=8|{HEADER}54=1|55=x|")),
        Some(Violation::incorrect(54))
    );
    assert!(dictionary.allocated() > 0);
}

#[test]
fn a_definition_that_is_none_is_told() {
    let compile = |change: &dyn Fn(&mut Definition)| {
        let mut definition = definition();
        change(&mut definition);
        Dictionary::compile(&definition, None).map(drop)
    };
    assert_eq!(
        compile(&|definition| definition.messages[0].members.push(member(77, false))),
        Err(DictionaryError::UndefinedField(77, "Message0".to_string()))
    );
    assert_eq!(
        compile(&|definition| definition.fields.push(field(0, FieldType::Text, &[]))),
        Err(DictionaryError::Tag(0))
    );
    assert_eq!(
        compile(&|definition| definition.trailer.clear()),
        Err(DictionaryError::NoHeaderOrTrailer)
    );
    assert_eq!(
        compile(&|definition| definition.messages[0].members.push(group(453, vec![]))),
        Err(DictionaryError::EmptyGroup(453))
    );
    assert_eq!(
        compile(&|definition| definition.messages[0].msg_type.clear()),
        Err(DictionaryError::MsgType)
    );
    let deep = (0..9).fold(vec![member(448, false)], |inner, _| {
        vec![member(448, false), group(453, inner)]
    });
    assert_eq!(
        compile(&|definition| definition.messages[0].members.extend(deep.clone())),
        Err(DictionaryError::GroupDepth(453))
    );
    let error = compile(&|definition| {
        let tags = 1_000..2_000;
        definition
            .fields
            .extend(tags.clone().map(|tag| field(tag, FieldType::Text, &[])));
        definition.messages[0]
            .members
            .extend(tags.map(|tag| member(tag, false)));
    });
    assert_eq!(error, Err(DictionaryError::TooManyFields("Message0".to_string())));
    assert!(error.unwrap_err().to_string().contains("more than 512 fields"));
}

/// A field of a message: most are as they should be, some are not. No length of a data field is among them: the scan itself
/// refuses one that is longer than the message, before any dictionary is asked.
fn given() -> impl Strategy<Value = Given> {
    let tag = prop_oneof![
        8 => prop::sample::select(vec![11, 18, 21, 38, 40, 54, 55, 58, 60, 103, 167, 200, 273, 432, 9001]),
        4 => prop::sample::select(vec![453, 448, 447, 452, 802, 523, 803]),
        1 => prop::sample::select(vec![34, 43, 49, 52, 56, 115, 112, 999, 620, 5001, 7000, 100_000]),
    ];
    let value = prop_oneof![
        4 => prop::sample::select(vec!["1", "2", "B", "CS", "99", "20260301-00:00:00", "10:00:00", "20260301", "1 G"]),
        1 => prop::sample::select(vec!["", "0", "3", "-1", "+1", "1.5", "x", "Y", "1  G"]),
    ];
    (tag, value).prop_map(|(tag, value)| Given {
        tag,
        value: value.as_bytes().to_vec(),
    })
}

/// The instances of a group, the count right most times.
fn parties() -> impl Strategy<Value = Vec<Given>> {
    let field = |tag, value: &str| Given {
        tag,
        value: value.as_bytes().to_vec(),
    };
    let instance = prop::sample::select(vec![
        vec![field(448, "x"), field(447, "B"), field(452, "1")],
        vec![
            field(448, "y"),
            field(452, "1"),
            field(802, "1"),
            field(523, "m"),
            field(803, "2"),
        ],
        vec![
            field(448, "y"),
            field(452, "1"),
            field(802, "2"),
            field(523, "m"),
            field(803, "2"),
        ],
        vec![field(448, "z")],
        vec![field(447, "B"), field(448, "z"), field(452, "1")],
    ]);
    (prop::collection::vec(instance, 0..4), 0..8_usize).prop_map(move |(instances, wrong)| {
        let count = if wrong == 0 { 7 } else { instances.len() };
        let mut fields = vec![field(453, &count.to_string())];
        fields.extend(instances.into_iter().flatten());
        fields
    })
}

fn message_fields() -> impl Strategy<Value = Vec<Given>> {
    let order = ["11=a", "55=b", "54=1", "40=2", "38=5", "60=20260301-00:00:00"].map(|field| {
        let (tag, value) = field.split_once('=').unwrap();
        Given {
            tag: tag.parse().unwrap(),
            value: value.as_bytes().to_vec(),
        }
    });
    let any = || prop::collection::vec(given(), 0..4);
    (
        prop::sample::subsequence(order.to_vec(), 4..=6),
        any(),
        prop::option::of(parties()),
        any(),
    )
        .prop_map(|(order, some, parties, more)| {
            let mut fields = some;
            fields.extend(order);
            fields.extend(parties.into_iter().flatten());
            fields.extend(more);
            fields
        })
}

proptest! {
    #[test]
    fn the_tables_say_what_the_plain_model_says(
        fields in message_fields(), msg_type in prop::sample::select(vec!["D", "0", "AF", "Z"]), refuse in any::<bool>(),
    ) {
        let user_defined = if refuse { UserDefinedFields::Refuse } else { UserDefinedFields::Accept };
        let dictionary = dictionary().with_user_defined_fields(user_defined);
        let mut text = bytes(&format!("35={msg_type}|{HEADER}"));
        for Given { tag, value } in &fields {
            text.extend_from_slice(format!("{tag}=").as_bytes());
            text.extend_from_slice(value);
            text.push(1);
        }
        let text = String::from_utf8(text).unwrap();
        let mut all = model::header(msg_type, HEADER);
        all.extend(fields);
        prop_assert_eq!(
            verdict(&dictionary, &text),
            model::verdict(&definition(), &all, user_defined),
            "{}", text.replace('\x01', "|")
        );
    }

    #[test]
    fn nothing_that_comes_panics(
        pieces in prop::collection::vec(prop_oneof![
            given().prop_map(|given| [format!("{}=", given.tag).as_bytes(), &given.value, b"\x01"].concat()),
            prop::collection::vec(any::<u8>(), 0..6),
            Just(b"453=18446744073709551615\x01448=x\x01".to_vec()),
            Just(b"6001=18446744073709551615\x016002=x\x01".to_vec()),
        ], 0..30),
    ) {
        let mut frame = b"8=FIX.4.4\x019=5\x0135=D\x01".to_vec();
        frame.extend(pieces.concat());
        let _ = Scratch::new().parse_with(&frame, Some(&dictionary()));
    }
}
