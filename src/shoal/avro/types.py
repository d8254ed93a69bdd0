"""Types of Avro and of Arrow, in both directions."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

from shoal.avro.bounds import why_unbounded
from shoal.errors import RunError, missing_extra

MICROSECONDS: Final = pa.timestamp("us", tz="UTC")
"""All readers of Avro know times in microseconds, so times that came with them are published with them."""
NANOSECONDS: Final = pa.timestamp("ns", tz="UTC")
_BASIC: Final = {
    "int": pa.int64(), "long": pa.int64(), "float": pa.float64(), "double": pa.float64(),
    "boolean": pa.bool_(), "string": pa.string(), "enum": pa.string(),
}  # fmt: skip
_LOGICAL: Final = {
    "timestamp-millis": MICROSECONDS, "timestamp-micros": MICROSECONDS, "timestamp-nanos": NANOSECONDS,
    "local-timestamp-millis": MICROSECONDS, "local-timestamp-micros": MICROSECONDS,
    "local-timestamp-nanos": NANOSECONDS,
    "date": pa.date32(), "uuid": pa.string(), "decimal": pa.float64(),
    "time-millis": pa.string(), "time-micros": pa.string(),
}  # fmt: skip
_UNITS: Final = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}


def fastavro() -> Any:
    """The package fastavro, or one sentence on how to install it."""
    try:
        import fastavro as package
        import fastavro.schema
    except ImportError:
        raise missing_extra("Avro", package="fastavro", extra="avro") from None
    return package


class UnusableSchema(Exception):
    """A schema that messages cannot have; the text continues "the schema ..."."""


def parsed(schema: Any) -> Any:
    """A schema that readers and writers accept; UnusableSchema if it is not that of a record, or has no bounds."""
    try:
        found = fastavro().parse_schema(schema)
    except RunError:
        raise
    except Exception:  # fastavro raises errors of many kinds
        raise UnusableSchema("is not valid Avro; correct it") from None
    if not isinstance(found, dict) or found.get("type") != "record":
        raise UnusableSchema("is not that of a record; write a record with a field for each column")
    why = why_unbounded(found)
    if why is not None:
        raise UnusableSchema(why)
    return found


def field_types(schema: Any) -> dict[str, pa.DataType | None]:
    """The type of every field of a record; None where the values decide, as for a union of several types."""
    return {field["name"]: _arrow_type(field["type"]) for field in schema["fields"]}


def logical_types(schema: Any) -> dict[str, set[str]]:
    """By field: the logical types, and bytes and fixed, that its values may have."""
    found = {}
    for field in schema["fields"]:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        found[field["name"]] = {
            kind.get("logicalType") or str(kind.get("type")) if isinstance(kind, dict) else str(kind) for kind in kinds
        }
    return found


def _arrow_type(kind: Any) -> pa.DataType | None:
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return _arrow_type(others[0]) if len(others) == 1 else None
    if isinstance(kind, dict):
        if kind.get("logicalType") in _LOGICAL:
            return _LOGICAL[kind["logicalType"]]
        if kind["type"] == "array":
            items = _arrow_type(kind["items"])
            return None if items is None else pa.list_(items)
        return _arrow_type(kind["type"])
    return _BASIC.get(kind)


def record_schema(schema: pa.Schema, name: str) -> dict[str, Any]:
    """The Avro schema of rows: every column may be null, an interval is a record of `lo` and `hi`."""
    fields = []
    for number, field in enumerate(schema):
        kind = _avro_type(field.type, f"interval_{number}")
        if kind is None:
            raise RunError(f'column "{field.name}": values of type {field.type} cannot be written in Avro; use JSON')
        given = {"name": _avro_name(field.name), "type": ["null", kind], "default": None}
        fields.append(given if given["name"] == field.name else {**given, "doc": field.name})
    names = [str(one["name"]) for one in fields]
    if len(set(names)) < len(names):
        raise RunError("two columns have the same name in Avro, which allows letters, digits and _ only; use JSON")
    return {"type": "record", "name": _avro_name(name), "namespace": "shoal", "fields": fields}


def _avro_type(kind: pa.DataType, interval: str) -> Any | None:
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _avro_type(kind.value_type, interval)
    if types.is_struct(kind) and [field.name for field in kind] == ["lo", "hi"]:
        ends = [{"name": field.name, "type": ["null", _avro_type(field.type, interval)]} for field in kind]
        return {"type": "record", "name": interval, "fields": ends}
    if types.is_list(kind) or types.is_large_list(kind):
        items = _avro_type(kind.value_type, interval)
        return None if items is None else {"type": "array", "items": ["null", items]}
    if types.is_timestamp(kind):
        prefix = "" if kind.tz else "local-"
        return {"type": "long", "logicalType": f"{prefix}timestamp-{_UNITS[kind.unit]}"}
    if types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    checks = {
        "long": types.is_integer, "double": types.is_floating, "boolean": types.is_boolean,
        "bytes": lambda one: types.is_binary(one) or types.is_large_binary(one) or types.is_fixed_size_binary(one),
        "string": lambda one: types.is_string(one) or types.is_large_string(one) or types.is_null(one),
    }  # fmt: skip
    return next((name for name, check in checks.items() if check(kind)), None)


def _avro_name(name: str) -> str:
    """A name that Avro allows: letters, digits and _ only."""
    allowed = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return allowed if allowed and not allowed[0].isdigit() else f"_{allowed}"


def single_object_header(schema: Any) -> bytes:
    """What precedes a message in Avro's single-object encoding: a marker and the fingerprint of the schema."""
    tools = fastavro().schema
    text = tools.fingerprint(tools.to_parsing_canonical_form(schema), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(text)
