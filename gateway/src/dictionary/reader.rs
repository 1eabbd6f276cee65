//! From XML to a [`Definition`].
//!
//! The form: `<fix type major minor servicepack>` holds `<header>`, `<trailer>`, `<messages>`, `<components>` and
//! `<fields>`. Messages, components and groups list their `<field name required>`, `<group name required>` and
//! `<component name required>`; names are resolved in `<fields>` and `<components>`. Components are put in place here, so
//! that nobody after this knows of them. A field of an optional component is optional; a field of a group is required in
//! each entry of the group, whether the group itself is or not.

use super::{DictionaryError, Layer};
use crate::limits::{MAX_DICTIONARY_DEPTH, MAX_DICTIONARY_MEMBERS, MAX_DICTIONARY_NODES};
use proto::fix::dictionary::{Definition, FieldDefinition, FieldType, Member, MessageDefinition};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::{HashMap, HashSet};

type Result<T> = std::result::Result<T, DictionaryError>;

/// Reads a dictionary that is to be of this layer.
pub(super) fn read(text: &str, layer: Layer) -> Result<Definition> {
    let options = ParsingOptions {
        nodes_limit: MAX_DICTIONARY_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| DictionaryError::at(error.pos().row, format!("is not XML that can be read: {error}")))?;
    let root = document.root_element();
    check_root(root, layer)?;
    let sections = Sections::find(root)?;
    let fields = fields(
        sections.require(sections.fields, root, "fields")?,
        has_untyped_chars(layer),
    )?;
    let mut expansion = Expansion::new(&fields, sections.components)?;
    let mut definition = Definition::default();
    if layer.is_application_only() {
        // QuickFIX writes both, empty: the session layer's dictionary has them.
        for section in [sections.header, sections.trailer].into_iter().flatten() {
            if let Some(member) = elements(section).next() {
                return Err(problem(member, "belongs into the dictionary of FIXT.1.1"));
            }
        }
    } else {
        definition.header = expansion.members(sections.require(sections.header, root, "header")?)?;
        definition.trailer = expansion.members(sections.require(sections.trailer, root, "trailer")?)?;
    }
    definition.messages = messages(sections.require(sections.messages, root, "messages")?, &mut expansion)?;
    definition.fields = fields;
    Ok(definition)
}

/// FIX 4.0 and 4.1 call any text `char`.
fn has_untyped_chars(layer: Layer) -> bool {
    layer.kind == "FIX" && layer.major == 4 && layer.minor < 2
}

fn check_root(root: Node<'_, '_>, layer: Layer) -> Result<()> {
    expect_name(root, &["fix"])?;
    let kind = attribute(root, "type").unwrap_or("FIX");
    let (major, minor) = (number(root, "major")?, number(root, "minor")?);
    let service_pack = match attribute(root, "servicepack") {
        Some(_) => number(root, "servicepack")?,
        None => 0,
    };
    if (kind, major, minor, service_pack) == (layer.kind, layer.major, layer.minor, layer.service_pack) {
        return Ok(());
    }
    Err(problem(
        root,
        &format!(
            "is of {}, and that of {} is needed",
            version_name(kind, major, minor, service_pack),
            version_name(layer.kind, layer.major, layer.minor, layer.service_pack),
        ),
    ))
}

fn version_name(kind: &str, major: u32, minor: u32, service_pack: u32) -> String {
    match service_pack {
        0 => format!("{kind}.{major}.{minor}"),
        _ => format!("{kind}.{major}.{minor}SP{service_pack}"),
    }
}

/// The children of the root.
#[derive(Clone, Copy, Default)]
struct Sections<'a> {
    header: Option<Node<'a, 'a>>,
    trailer: Option<Node<'a, 'a>>,
    messages: Option<Node<'a, 'a>>,
    components: Option<Node<'a, 'a>>,
    fields: Option<Node<'a, 'a>>,
}

impl<'a> Sections<'a> {
    fn find(root: Node<'a, 'a>) -> Result<Self> {
        let mut sections = Self::default();
        for section in elements(root) {
            expect_name(section, &["header", "trailer", "messages", "components", "fields"])?;
            let place = match section.tag_name().name() {
                "header" => &mut sections.header,
                "trailer" => &mut sections.trailer,
                "messages" => &mut sections.messages,
                "components" => &mut sections.components,
                _ => &mut sections.fields,
            };
            if place.replace(section).is_some() {
                return Err(problem(section, "is there twice"));
            }
        }
        Ok(sections)
    }

    fn require(&self, section: Option<Node<'a, 'a>>, root: Node<'a, 'a>, name: &str) -> Result<Node<'a, 'a>> {
        section.ok_or_else(|| problem(root, &format!("has no <{name}>")))
    }
}

fn fields(section: Node<'_, '_>, has_untyped_chars: bool) -> Result<Vec<FieldDefinition>> {
    let mut fields = Vec::new();
    let (mut names, mut tags) = (HashSet::new(), HashSet::new());
    for element in elements(section) {
        expect_name(element, &["field"])?;
        let name = required_attribute(element, "name")?;
        let tag = number(element, "number")?;
        if tag == 0 {
            return Err(problem(element, "has number 0; tags begin with 1"));
        }
        if !names.insert(name) {
            return Err(problem(element, "has a name that another field has"));
        }
        if !tags.insert(tag) {
            return Err(problem(element, &format!("has number {tag}, which another field has")));
        }
        let written = required_attribute(element, "type")?;
        let field_type = match written {
            "CHAR" if has_untyped_chars => FieldType::Text,
            _ => field_type(written)
                .ok_or_else(|| problem(element, &format!("has type {written}, which is no type of FIX")))?,
        };
        fields.push(FieldDefinition {
            tag,
            name: name.to_owned(),
            field_type,
            values: values(element)?,
        });
    }
    Ok(fields)
}

/// The values of a field; none when the dictionary says that others are allowed too.
fn values(field: Node<'_, '_>) -> Result<Vec<String>> {
    let mut values = Vec::new();
    for element in elements(field) {
        expect_name(element, &["value"])?;
        let value = required_attribute(element, "enum")?;
        // QuickFIX's own files list some values twice.
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    if is_yes(field, "allowOtherValues")? {
        values.clear();
    }
    Ok(values)
}

/// The types of FIX 4.0 to 5.0 SP2, with the names that QuickFIX gives them.
fn field_type(name: &str) -> Option<FieldType> {
    Some(match name {
        "INT" | "DAYOFMONTH" => FieldType::Int,
        "LENGTH" | "SEQNUM" | "TAGNUM" => FieldType::Unsigned,
        "NUMINGROUP" => FieldType::NumInGroup,
        "FLOAT" | "QTY" | "QUANTITY" | "PRICE" | "PRICEOFFSET" | "AMT" | "PERCENTAGE" => FieldType::Decimal,
        "CHAR" => FieldType::Char,
        "BOOLEAN" => FieldType::Boolean,
        "STRING" | "CURRENCY" | "EXCHANGE" | "COUNTRY" | "LANGUAGE" | "TENOR" | "PATTERN" | "RESERVED100PLUS"
        | "RESERVED1000PLUS" | "RESERVED4000PLUS" | "XID" | "XIDREF" | "TZTIMESTAMP" | "TZTIMEONLY"
        | "LOCALMKTTIME" => FieldType::Text,
        "MULTIPLEVALUESTRING" | "MULTIPLESTRINGVALUE" | "MULTIPLECHARVALUE" => FieldType::Codes,
        "DATA" | "XMLDATA" => FieldType::Data,
        // `TIME` is what 4.0 and 4.1 call a timestamp.
        "UTCTIMESTAMP" | "TIME" => FieldType::UtcTimestamp,
        "UTCTIMEONLY" => FieldType::UtcTimeOnly,
        "UTCDATE" | "UTCDATEONLY" | "LOCALMKTDATE" | "DATE" => FieldType::Date,
        "MONTHYEAR" => FieldType::MonthYear,
        _ => return None,
    })
}

fn messages<'a>(section: Node<'a, 'a>, expansion: &mut Expansion<'a>) -> Result<Vec<MessageDefinition>> {
    let mut messages = Vec::new();
    let mut types = HashSet::new();
    for element in elements(section) {
        expect_name(element, &["message"])?;
        let msg_type = required_attribute(element, "msgtype")?;
        if !types.insert(msg_type) {
            return Err(problem(
                element,
                &format!("has msgtype {msg_type}, which another message has"),
            ));
        }
        let is_admin = match attribute(element, "msgcat") {
            Some("admin") => true,
            Some("app") | None => false,
            Some(other) => {
                return Err(problem(
                    element,
                    &format!("has msgcat {other}; admin and app are possible"),
                ));
            }
        };
        messages.push(MessageDefinition {
            msg_type: msg_type.to_owned(),
            name: required_attribute(element, "name")?.to_owned(),
            is_admin,
            members: expansion.members(element)?,
        });
    }
    Ok(messages)
}

/// Puts components in place and names to tags.
struct Expansion<'a> {
    tags: HashMap<String, (u32, FieldType)>,
    components: HashMap<&'a str, Node<'a, 'a>>,
    /// The components that are being put in place: none of them may contain itself.
    open: Vec<&'a str>,
    /// Members made so far.
    count: usize,
}

impl<'a> Expansion<'a> {
    fn new(fields: &[FieldDefinition], section: Option<Node<'a, 'a>>) -> Result<Self> {
        let mut components = HashMap::new();
        for element in section.into_iter().flat_map(elements) {
            expect_name(element, &["component"])?;
            if components
                .insert(required_attribute(element, "name")?, element)
                .is_some()
            {
                return Err(problem(element, "has a name that another component has"));
            }
        }
        Ok(Self {
            tags: fields
                .iter()
                .map(|field| (field.name.clone(), (field.tag, field.field_type)))
                .collect(),
            components,
            open: Vec::new(),
            count: 0,
        })
    }

    /// The members of a message, of the header or of the trailer.
    fn members(&mut self, parent: Node<'a, 'a>) -> Result<Vec<Member>> {
        let mut members = Vec::new();
        self.expand(parent, true, 0, &mut members)?;
        Ok(members)
    }

    fn expand(
        &mut self,
        parent: Node<'a, 'a>,
        is_required: bool,
        depth: usize,
        members: &mut Vec<Member>,
    ) -> Result<()> {
        if depth > MAX_DICTIONARY_DEPTH {
            return Err(problem(
                parent,
                &format!("is nested deeper than {MAX_DICTIONARY_DEPTH} groups and components"),
            ));
        }
        for element in elements(parent) {
            expect_name(element, &["field", "group", "component"])?;
            let name = required_attribute(element, "name")?;
            let is_required = is_required && is_yes(element, "required")?;
            match element.tag_name().name() {
                "component" => self.expand_component(element, name, is_required, depth, members)?,
                "group" => {
                    let mut group = Vec::new();
                    self.expand(element, true, depth + 1, &mut group)?;
                    if group.is_empty() {
                        return Err(problem(element, "has no field"));
                    }
                    self.push(element, name, is_required, Some(group), members)?;
                }
                _ => self.push(element, name, is_required, None, members)?,
            }
        }
        Ok(())
    }

    fn expand_component(
        &mut self,
        element: Node<'a, 'a>,
        name: &'a str,
        is_required: bool,
        depth: usize,
        members: &mut Vec<Member>,
    ) -> Result<()> {
        let Some(&component) = self.components.get(name) else {
            return Err(problem(element, "is not among <components>"));
        };
        if self.open.contains(&name) {
            return Err(problem(element, "contains itself"));
        }
        self.open.push(name);
        self.expand(component, is_required, depth + 1, members)?;
        self.open.pop();
        Ok(())
    }

    fn push(
        &mut self,
        element: Node<'a, 'a>,
        name: &str,
        is_required: bool,
        group: Option<Vec<Member>>,
        members: &mut Vec<Member>,
    ) -> Result<()> {
        let Some(&(tag, field_type)) = self.tags.get(name) else {
            return Err(problem(element, "is not among <fields>"));
        };
        if members.iter().any(|member| member.tag == tag) {
            return Err(problem(element, "is there twice"));
        }
        // FIX 4.0 to 4.2 have no type for it.
        if group.is_some() && !matches!(field_type, FieldType::NumInGroup | FieldType::Int) {
            return Err(problem(element, "counts a group, so its type must be NUMINGROUP"));
        }
        self.count += 1;
        if self.count > MAX_DICTIONARY_MEMBERS {
            return Err(problem(
                element,
                &format!("is one too many: the messages of a dictionary have at most {MAX_DICTIONARY_MEMBERS} fields"),
            ));
        }
        members.push(Member {
            tag,
            is_required,
            group,
        });
        Ok(())
    }
}

fn elements<'a>(parent: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    parent.children().filter(Node::is_element)
}

fn expect_name(element: Node<'_, '_>, names: &[&str]) -> Result<()> {
    if names.contains(&element.tag_name().name()) {
        return Ok(());
    }
    Err(problem(
        element,
        &format!("is not known here; possible is <{}>", names.join(">, <")),
    ))
}

fn attribute<'a>(element: Node<'a, 'a>, name: &str) -> Option<&'a str> {
    element.attribute(name).filter(|value| !value.is_empty())
}

fn required_attribute<'a>(element: Node<'a, 'a>, name: &str) -> Result<&'a str> {
    attribute(element, name).ok_or_else(|| problem(element, &format!("has no {name}")))
}

fn number(element: Node<'_, '_>, name: &str) -> Result<u32> {
    let written = element.attribute(name).unwrap_or_default();
    written
        .parse()
        .map_err(|_| problem(element, &format!("has {name}=\"{written}\", which is no number")))
}

/// A flag; absent is no.
fn is_yes(element: Node<'_, '_>, name: &str) -> Result<bool> {
    match element.attribute(name) {
        Some("Y" | "y" | "true") => Ok(true),
        None | Some("N" | "n" | "false") => Ok(false),
        Some(other) => Err(problem(
            element,
            &format!("has {name}=\"{other}\"; Y and N are possible"),
        )),
    }
}

/// An error at an element, which is named by its tag and its name.
fn problem(element: Node<'_, '_>, problem: &str) -> DictionaryError {
    let line = element.document().text_pos_at(element.range().start).row;
    let tag = element.tag_name().name();
    let name = element
        .attribute("name")
        .map_or_else(String::new, |name| format!(" {name}"));
    let parent = element
        .parent_element()
        .filter(|parent| parent.has_attribute("name"))
        .and_then(|parent| parent.attribute("name"))
        .map_or_else(String::new, |parent| format!(" in {parent}"));
    DictionaryError::at(line, format!("<{tag}>{name}{parent} {problem}"))
}
