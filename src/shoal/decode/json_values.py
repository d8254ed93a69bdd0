"""Converts values of JSON, and of Avro, to the types of their columns and finds those that do not fit."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

import orjson
import pyarrow as pa

from shoal.decode.base import Refused
from shoal.decode.columns import cast_text, misfit_reason

_NESTED: Final = "an object or a list where a single value is needed"
_BYTES: Final = "bytes where a text or a number is needed"
_NOT_FINITE: Final = "infinity, or not a number, where a text is needed"
_NO_NAME: Final = "an item is neither text nor a whole number of up to 64 bits; write it as text"
EXACT: Final = 2**53  # integers up to here are exact as floats
_NULL: Final = type(None)
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_FAST: Final[dict[pa.DataType, set[type]]] = {
    pa.string(): {str, _NULL},
    pa.bool_(): {bool, _NULL},
    pa.int64(): {int, _NULL},
    pa.float64(): {float, _NULL},
    pa.timestamp("ns", tz="UTC"): {datetime.datetime, pa.TimestampScalar, _NULL},  # of Avro; JSON has texts
    pa.timestamp("us", tz="UTC"): {datetime.datetime, _NULL},
    pa.date32(): {datetime.date, _NULL},
}
_TIMES: Final = (datetime.date, pa.TimestampScalar)  # a datetime is a date
_NO_NUMBERS: Final = (str, *_TIMES)


class _Misfit(Exception):
    """The value does not fit the type of its column."""


def infer(values: Sequence[Any]) -> pa.DataType:
    """The type of a column with these values.

    >>> infer([1, None, 2.5]), infer([1, "x"]), infer([])
    (DataType(double), DataType(string), DataType(string))
    """
    kinds = {type(value) for value in values} - {_NULL, dict, list}
    if not kinds or kinds == {bool}:
        return pa.bool_() if kinds else pa.string()
    # Beyond 64 bits the parser rounds: such numbers are names of things, and their text is kept.
    if not kinds <= {int, float} or any(isinstance(v, int | float) and abs(v) >= 2**63 for v in values):
        return pa.string()
    return pa.int64() if kinds == {int} else pa.float64()


def is_name(value: Any) -> bool:
    """Whether a value can be an item: text or a whole number (the parser reads those beyond 64 bits as floats)."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def json_column(
    values: list[Any], field: pa.Field, lines: Sequence[bytes | None] | None, *, names_only: bool = False
) -> tuple[Any, list[Refused]]:
    """Make a column; a value that does not fit becomes null and a refusal. With `names_only` all must be items.

    `lines` are the texts of the records, so that numbers in a column of texts stay as written; None if they have none.
    """
    if names_only:
        wrong = [row for row, value in enumerate(values) if _has_others(value)]
        for row in wrong:
            values[row] = None
        column, refused = json_column(values, field, lines)
        return column, [*refused, *(Refused(row, field.name, _NO_NAME) for row in wrong)]
    if set(map(type, values)) <= _FAST.get(field.type, set()):
        try:
            return pa.array(values, type=field.type), []
        except (pa.ArrowInvalid, OverflowError):
            pass  # an integer of more than 64 bits
    return _each(values, field, lines)


def _has_others(value: Any) -> bool:
    """Whether a value is, or its list contains, something that cannot be an item."""
    if isinstance(value, list):
        return any(isinstance(one, float | bool) for one in value)
    return isinstance(value, float | bool)


def _each(values: list[Any], field: pa.Field, lines: Sequence[bytes | None] | None) -> tuple[Any, list[Refused]]:
    fitting: list[Any] = []
    refused = []
    for row, value in enumerate(values):
        try:
            if isinstance(value, float) and field.type == pa.string() and lines is not None:
                value = _float_text(lines[row], field.name)
            fitting.append(_fitting(value, field.type))
        except _Misfit as misfit:
            fitting.append(None)
            refused.append(Refused(row, field.name, str(misfit) or misfit_reason(field.type)))
    return pa.array(fitting, type=field.type), refused


def _float_text(line: bytes | None, name: str) -> str:
    """The number as written in the file: 1.50 stays 1.50, and thirty digits stay thirty."""
    try:
        text: str = json.loads(line or b"{}", parse_float=str, parse_int=str)[name]
    except RecursionError:  # something else in the record is nested deeper than this parser can go
        return _scanned_text(line or b"{}", name)
    return text


def _scanned_text(line: bytes, name: str) -> str:
    """The same, by a scan that is slower and finds it at any depth of the rest; the line is known to be JSON."""
    depth, key, before, found = 0, "", b"", b""
    for token in _TOKENS.findall(line):
        if depth == 1 and before == b":" and key == name:
            found = token
        elif depth == 1 and token == b":":
            key = orjson.loads(before)
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
        before = token
    return found.decode()


def _fitting(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise _Misfit
        return [_fitting(item, kind.value_type) for item in value]
    if isinstance(value, dict | list):
        raise _Misfit(_NESTED)
    if isinstance(value, bytes):
        raise _Misfit(_BYTES)
    if kind == pa.string():
        return value if isinstance(value, str) else _text(value)
    return _single(value, kind)


def _text(value: Any) -> str:
    """A number or a boolean as JSON writes it, a time in ISO 8601."""
    if isinstance(value, float) and not math.isfinite(value):
        raise _Misfit(_NOT_FINITE)
    if isinstance(value, pa.TimestampScalar):
        return str(value.cast(pa.string()).as_py())
    return value.isoformat() if isinstance(value, datetime.date) else orjson.dumps(value).decode()


def _single(value: Any, kind: pa.DataType) -> Any:
    """Convert a value to a type other than text; raises _Misfit."""
    if pa.types.is_boolean(kind) or isinstance(value, bool):
        if not (isinstance(value, bool) and pa.types.is_boolean(kind)):
            raise _Misfit
    elif pa.types.is_integer(kind):
        value = _integer(value)
    elif pa.types.is_floating(kind):
        if isinstance(value, _NO_NUMBERS) or (isinstance(value, int) and abs(value) > EXACT):
            raise _Misfit
        value = float(value)
    elif not isinstance(value, _NO_NUMBERS):
        raise _Misfit
    return _scalar(value, kind)


def _integer(value: Any) -> int:
    if isinstance(value, _NO_NUMBERS) or (
        isinstance(value, float) and not (value.is_integer() and abs(value) <= EXACT)
    ):
        raise _Misfit
    return int(value)


def _scalar(value: Any, kind: pa.DataType) -> Any:
    try:
        scalar = cast_text(pa.array([value]), kind)[0] if isinstance(value, str) else pa.scalar(value, type=kind)
    except (pa.ArrowException, OverflowError):
        raise _Misfit from None
    return scalar.as_py() if not pa.types.is_temporal(kind) else scalar
