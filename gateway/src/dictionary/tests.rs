use super::*;
use proto::fix::dictionary::{Dictionary, FieldType, Member, MessageDefinition};

#[test]
fn every_default_has_the_messages_of_an_order_gateway() {
    for version in Version::ALL {
        let mut expected = vec!["D", "F", "G", "H", "8", "9"];
        if version >= Version::Fix42 {
            expected.extend(["j", "d"]);
        }
        if version >= Version::Fix43 {
            expected.extend(["q", "r", "AF"]);
        }
        let definition = load(version, None).expect("it loads");
        let admin = ADMIN.iter().filter(|_| !version.is_fixt());
        for msg_type in expected.iter().chain(admin) {
            let message = message(&definition, msg_type);
            assert_eq!(message.is_admin, ADMIN.contains(msg_type), "{msg_type} of {version:?}");
        }
        assert_eq!(definition.header.is_empty(), version.is_fixt());
        assert_eq!(definition.trailer.is_empty(), version.is_fixt());
    }
    let transport = load_transport(None).expect("it loads");
    for msg_type in ADMIN {
        assert!(message(&transport, msg_type).is_admin);
    }
    assert_eq!(transport.messages.len(), ADMIN.len());
}

#[test]
fn every_default_requires_what_its_specification_requires() {
    use Version::{Fix40, Fix41, Fix42, Fix43, Fix44, Fix50, Fix50Sp1, Fix50Sp2};
    for (versions, msg_type, tags) in [
        (&[Fix40][..], "D", &[11, 21, 55, 54, 38, 40][..]),
        (&[Fix41], "D", &[11, 21, 55, 54, 40]),
        (&[Fix42, Fix43], "D", &[11, 21, 55, 54, 60, 40]),
        (&[Fix44], "D", &[11, 55, 54, 60, 40]),
        (&[Fix50, Fix50Sp1, Fix50Sp2], "D", &[11, 54, 60, 40]),
        (&[Fix40], "F", &[41, 11, 125, 55, 54, 38]),
        (&[Fix41], "F", &[41, 11, 55, 54]),
        (&[Fix42, Fix43, Fix44], "F", &[41, 11, 55, 54, 60]),
        (&[Fix50], "F", &[41, 11, 54, 60]),
        (&[Fix50Sp1, Fix50Sp2], "F", &[11, 54, 60]),
        (&[Fix44], "G", &[41, 11, 55, 54, 60, 40]),
        (&[Fix40, Fix41, Fix42, Fix43, Fix44], "H", &[11, 55, 54]),
        (&[Fix43, Fix44, Fix50, Fix50Sp1, Fix50Sp2], "q", &[11, 530, 60]),
        (&[Fix43, Fix44, Fix50, Fix50Sp1, Fix50Sp2], "AF", &[584, 585]),
        (&[Fix40], "8", &[37, 17, 20, 39, 55, 54, 38, 32, 31, 14, 6]),
        (&[Fix42], "8", &[37, 17, 20, 150, 39, 55, 54, 151, 14, 6]),
        (&[Fix44], "8", &[37, 17, 150, 39, 55, 54, 151, 14, 6]),
        (&[Fix50Sp2], "8", &[37, 17, 150, 39, 54, 151, 14]),
        (&[Fix40], "9", &[37, 11]),
        (&[Fix42, Fix43, Fix44], "9", &[37, 11, 41, 39, 434]),
        (&[Fix42, Fix43, Fix44, Fix50, Fix50Sp1, Fix50Sp2], "j", &[372, 380]),
    ] {
        for &version in versions {
            let definition = load(version, None).expect("it loads");
            assert_eq!(
                required(&message(&definition, msg_type).members),
                sorted(tags),
                "{msg_type} of {version:?}"
            );
        }
    }
}

#[test]
fn header_trailer_and_logon_require_what_their_specification_requires() {
    let transport = load_transport(None).expect("it loads");
    let fix44 = load(Version::Fix44, None).expect("it loads");
    for definition in [&transport, &fix44] {
        assert_eq!(required(&definition.header), sorted(&[8, 9, 35, 49, 56, 34, 52]));
        assert_eq!(required(&definition.trailer), [10]);
        let hops = definition.header.iter().find(|member| member.tag == 627);
        assert_eq!(
            tags(hops.and_then(|hops| hops.group.as_deref()).expect("a group")),
            [628, 629, 630]
        );
    }
    assert_eq!(required(&message(&fix44, "A").members), [98, 108]);
    assert_eq!(required(&message(&transport, "A").members), [98, 108, 1137]);
}

#[test]
fn every_default_becomes_tables() {
    let transport = load_transport(None).expect("it loads");
    for version in Version::ALL {
        let definition = load(version, None).expect("it loads");
        let dictionary = match version.is_fixt() {
            true => Dictionary::compile(&transport, Some(&definition)),
            false => Dictionary::compile(&definition, None),
        };
        assert!(dictionary.is_ok(), "{version:?}: {dictionary:?}");
    }
}

#[test]
fn a_component_is_put_in_place_and_an_optional_one_requires_nothing() {
    let definition = load(Version::Fix44, None).expect("it loads");
    let order = message(&definition, "D");
    let parties = member(&order.members, 453);
    assert_eq!(tags(parties.group.as_deref().expect("a group")), [448, 447, 452, 802]);
    // Symbol is required in Instrument, and Instrument in an order, but not in a mass cancel.
    assert!(member(&order.members, 55).is_required);
    assert!(!member(&message(&definition, "q").members, 55).is_required);
}

#[test]
fn text_before_4_2_is_text_though_it_is_called_char() {
    let definition = load(Version::Fix41, None).expect("it loads");
    let field = definition.fields.iter().find(|field| field.tag == 11);
    assert_eq!(field.map(|field| field.field_type), Some(FieldType::Text));
}

#[test]
fn a_users_file_brings_its_own_field_group_and_values() {
    let definition = parse(
        r#"<message name="NewOrderSingle" msgtype="D" msgcat="app">
             <field name="ClOrdID" required="Y"/>
             <field name="Desk" required="N"/>
             <group name="NoLots" required="N"><field name="LotID" required="Y"/><field name="LotQty" required="N"/></group>
           </message>"#,
        r#"<field number="6001" name="Desk" type="CHAR"><value enum="X" description="EXOTIC"/><value enum="V"/></field>
           <field number="6002" name="NoLots" type="NUMINGROUP"/>
           <field number="6003" name="LotID" type="STRING"/>
           <field number="6004" name="LotQty" type="QTY"/>"#,
    )
    .expect("it is read");
    let desk = &definition.fields[2];
    assert_eq!((desk.tag, desk.field_type), (6001, FieldType::Char));
    assert_eq!(desk.values, ["X", "V"]);
    let lots = member(&message(&definition, "D").members, 6002);
    let entry = lots.group.as_deref().expect("a group");
    assert_eq!(
        entry
            .iter()
            .map(|field| (field.tag, field.is_required))
            .collect::<Vec<_>>(),
        [(6003, true), (6004, false)]
    );
}

#[test]
fn a_broken_file_is_refused_with_its_place() {
    let message = |members: &str| {
        parse(
            &format!("<message name=\"Own\" msgtype=\"U\">\n{members}</message>"),
            "",
        )
    };
    let field = |field: &str| parse("", &format!("\n{field}"));
    for (result, error) in [
        (
            message("<field name=\"Nope\"/>"),
            "own.xml:4: <field> Nope in Own is not among <fields>",
        ),
        (
            message("<component name=\"Nope\"/>"),
            "own.xml:4: <component> Nope in Own is not among <components>",
        ),
        (
            message("<component name=\"Loop\"/>"),
            "own.xml:8: <component> Loop in Loop contains itself",
        ),
        (
            message("<field name=\"ClOrdID\"/><field name=\"ClOrdID\"/>"),
            "own.xml:4: <field> ClOrdID in Own is there twice",
        ),
        (
            message("<field name=\"ClOrdID\" required=\"maybe\"/>"),
            "own.xml:4: <field> ClOrdID in Own has required=\"maybe\"; Y and N are possible",
        ),
        (
            message("<group name=\"ClOrdID\"/>"),
            "own.xml:4: <group> ClOrdID in Own has no field",
        ),
        (
            message("<group name=\"ClOrdID\"><field name=\"Count\"/></group>"),
            "own.xml:4: <group> ClOrdID in Own counts a group, so its type must be NUMINGROUP",
        ),
        (
            message("<value/>"),
            "own.xml:4: <value> in Own is not known here; possible is <field>, <group>, <component>",
        ),
        (
            field("<field number=\"x\" name=\"A\" type=\"INT\"/>"),
            "own.xml:9: <field> A has number=\"x\", which is no number",
        ),
        (
            field("<field number=\"0\" name=\"A\" type=\"INT\"/>"),
            "own.xml:9: <field> A has number 0; tags begin with 1",
        ),
        (
            field("<field number=\"11\" name=\"A\" type=\"INT\"/>"),
            "own.xml:9: <field> A has number 11, which another field has",
        ),
        (
            field("<field number=\"5\" name=\"ClOrdID\" type=\"INT\"/>"),
            "own.xml:9: <field> ClOrdID has a name that another field has",
        ),
        (
            field("<field number=\"5\" name=\"A\" type=\"WORD\"/>"),
            "own.xml:9: <field> A has type WORD, which is no type of FIX",
        ),
        (
            field("<field number=\"5\" name=\"A\" type=\"INT\"><value/></field>"),
            "own.xml:9: <value> in A has no enum",
        ),
    ] {
        assert_eq!(result.map_err(|error| error.to_string()), Err(error.to_owned()));
    }
}

#[test]
fn another_versions_file_is_refused() {
    let error = reader::read(layer_of(Version::Fix42).default, layer_of(Version::Fix44)).expect_err("it is refused");
    assert!(
        error
            .to_string()
            .ends_with("<fix> is of FIX.4.2, and that of FIX.4.4 is needed"),
        "{error}"
    );
}

#[test]
fn what_is_no_dictionary_or_no_file_is_refused_with_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("own.xml");
    let error = load(Version::Fix44, Some(&path)).expect_err("there is no file");
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    let deep = "<fix>".repeat(100_000);
    for text in [
        "",
        "<fix",
        "<html/>",
        "<fix type='FIX' major='4' minor='4'/>",
        "<!DOCTYPE fix><fix/>",
        &deep,
    ] {
        std::fs::write(&path, text).expect("it is written");
        let error = load(Version::Fix44, Some(&path)).expect_err("it is refused");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
}

#[test]
fn components_that_multiply_are_cut_off() {
    // Eight groups with eight groups each, and so on, would be a thousand million fields.
    let error = nested(10, 8).expect_err("it is refused");
    assert!(error.to_string().contains("is one too many"), "{error}");
    let error = nested(40, 1).expect_err("it is refused");
    assert!(error.to_string().contains("is nested deeper than"), "{error}");
    assert!(nested(4, 4).is_ok());
}

/// A dictionary whose components hold `width` groups of the next component, `levels` times.
fn nested(levels: usize, width: usize) -> Result<Definition, DictionaryError> {
    let (mut components, mut fields) = (String::new(), String::new());
    for level in 0..levels {
        let next = level + 1;
        components += &format!("<component name='C{level}'>");
        for place in 0..width {
            let tag = 1_000 + level * width + place;
            components += &format!("<group name='N{tag}'><component name='C{next}'/></group>");
            fields += &format!("<field number='{tag}' name='N{tag}' type='NUMINGROUP'/>");
        }
        components += "</component>";
    }
    let xml = format!(
        "<fix type='FIX' major='5' minor='0'>\
         <messages><message name='Own' msgtype='U'><component name='C0'/></message></messages>\
         <components>{components}<component name='C{levels}'><field name='Leaf'/></component></components>\
         <fields>{fields}<field number='1' name='Leaf' type='INT'/></fields></fix>"
    );
    reader::read(&xml, layer_of(Version::Fix50))
}

const ADMIN: [&str; 7] = ["0", "1", "2", "3", "4", "5", "A"];

/// A dictionary of FIX 5.0 with these messages and fields beside ClOrdID and Count. Lines are counted in the test of errors.
fn parse(messages: &str, fields: &str) -> Result<Definition, DictionaryError> {
    let xml = format!(
        "<fix type=\"FIX\" major=\"5\" minor=\"0\">\n<messages>\n{messages}</messages>\n\
         <!-- a component that contains itself -->\n<components>\n<component name=\"Loop\">\n\
         <component name=\"Loop\"/></component></components>\n\
         <fields><field number=\"11\" name=\"ClOrdID\" type=\"STRING\"/><field number=\"12\" name=\"Count\" type=\"INT\"/>{fields}\
         </fields></fix>"
    );
    reader::read(&xml, layer_of(Version::Fix50)).map_err(|error| error.of_file("own.xml"))
}

fn message<'a>(definition: &'a Definition, msg_type: &str) -> &'a MessageDefinition {
    let found = definition.messages.iter().find(|message| message.msg_type == msg_type);
    found.unwrap_or_else(|| panic!("no message {msg_type}"))
}

fn member(members: &[Member], tag: u32) -> &Member {
    members
        .iter()
        .find(|member| member.tag == tag)
        .expect("the member is there")
}

fn tags(members: &[Member]) -> Vec<u32> {
    members.iter().map(|member| member.tag).collect()
}

fn required(members: &[Member]) -> Vec<u32> {
    let required = members.iter().filter(|member| member.is_required);
    sorted(&required.map(|member| member.tag).collect::<Vec<_>>())
}

fn sorted(tags: &[u32]) -> Vec<u32> {
    let mut tags = tags.to_vec();
    tags.sort_unstable();
    tags
}
