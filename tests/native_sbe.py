"""Checks docs/native.xml and tests/vectors/native.json with two SBE implementations that know nothing of ours.

`sbe` packs fields one after the other and ignores offsets; `sbedecoder` goes by the offsets. When both read the same
values out of every vector, and `sbe` writes every vector from its values, the schema means what our codec does: the
Rust tests hold the codec to the same vectors.

Run by `.ci/extended native-sbe`, which installs what tests/native_sbe.requirements.txt lists.
"""

import json
import re
import sys
from pathlib import Path

import sbe
from sbedecoder import SBEMessage, SBESchema
from sbedecoder.message import CompositeMessageField, EnumMessageField, SetMessageField

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "docs" / "native.xml"
VECTORS = ROOT / "tests" / "vectors" / "native.json"
HEADER_LENGTH = 8
PRICE_NULL = -(2**63)

checks = 0


def check(what, found, wanted):
    """Counts a check; ends the run when it fails."""
    global checks
    checks += 1
    if found != wanted:
        sys.exit(f"{what}: found {found!r}, wanted {wanted!r}")


def to_sbe(field, fields):
    """The value of a field as the package `sbe` takes it."""
    value = fields.get(field.name, 0)
    if field.type.name == "Price":
        return {"mantissa": value}
    if isinstance(field.type, sbe.Set):
        return [choice.name for choice in field.type.choices if value >> choice.value & 1]
    return value


def from_sbe(field, value):
    """A value of the package `sbe` as the vectors have it."""
    if field.type.name == "Price":
        return PRICE_NULL if value["mantissa"] is None else value["mantissa"]
    if isinstance(field.type, sbe.Set):
        return sum(1 << choice.value for choice in field.type.choices if choice.name in value)
    return value


def from_sbedecoder(field):
    """A value of the package `sbedecoder` as the vectors have it."""
    if isinstance(field, CompositeMessageField):
        mantissa = field.mantissa.value
        return PRICE_NULL if mantissa is None else mantissa
    if isinstance(field, EnumMessageField):
        return field.enumerant
    if isinstance(field, SetMessageField):
        return field.raw_value
    return field.value


def check_with_sbe(schema, vector):
    """Decodes and encodes with the package `sbe`."""
    name, data = vector["name"], bytes.fromhex(vector["hex"])
    message = next(m for m in schema.messages.values() if m.name == vector["message"])
    fields = {field.name: field for field in message.fields}

    decoded = schema.decode(data)
    check(f"sbe: {name}: message", decoded.message_name, vector["message"])
    check(f"sbe: {name}: block length", decoded.header["blockLength"], len(data) - HEADER_LENGTH)
    check(f"sbe: {name}: schema", decoded.header["schemaId"], int(schema.id))
    check(f"sbe: {name}: version", decoded.header["version"], int(schema.version))
    for key, field in fields.items():
        wanted = vector["fields"].get(key, 0)
        check(f"sbe: {name}: {key}", from_sbe(field, decoded.value[key]), wanted)

    values = {key: to_sbe(field, vector["fields"]) for key, field in fields.items()}
    check(f"sbe: {name}: encoded", schema.encode(message, values).hex(), vector["hex"])


def check_with_sbedecoder(schema, vector):
    """Decodes with the package `sbedecoder`."""
    name, data = vector["name"], bytes.fromhex(vector["hex"])
    message = SBEMessage.parse_message(schema, data)
    size = message.header_size + message.schema_block_length
    check(f"sbedecoder: {name}: message", message.name, vector["message"])
    check(f"sbedecoder: {name}: length", size, len(data))
    header = {"blockLength", "templateId", "schemaId", "version"}
    found = {field.original_name: from_sbedecoder(field) for field in message.fields}
    for key in found.keys() - header:
        check(f"sbedecoder: {name}: {key}", found[key], vector["fields"].get(key, 0))
    missing = vector["fields"].keys() - found.keys()
    check(f"sbedecoder: {name}: fields not found", missing, set())


def check_reasons(schema):
    """The schema's reasons are the program's."""
    source = (ROOT / "types" / "src" / "reason.rs").read_text()
    wanted = re.findall(r'^ +(\w+) = (\d+), "', source, re.MULTILINE)
    found = [(value.name, value.value) for value in schema.types["Reason"].valid_values]
    check("reasons", found, wanted)


def main():
    vectors = json.loads(VECTORS.read_text())
    with SCHEMA.open("rb") as file:
        schema = sbe.Schema.parse(file)
    decoder_schema = SBESchema()
    decoder_schema.parse(str(SCHEMA))

    tested = {vector["message"] for vector in vectors}
    check("messages with a vector", tested, {message.name for message in schema.messages.values()})
    for vector in vectors:
        check_with_sbe(schema, vector)
        check_with_sbedecoder(decoder_schema, vector)
    check_reasons(schema)
    print(f"{len(vectors)} vectors of {len(tested)} messages, by sbe and by sbedecoder")
    print(f"checks: {checks}")


main()
