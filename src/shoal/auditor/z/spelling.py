"""One value, one spelling, in columns that are published unchanged; the spellings of the truth are allowed."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.checks import check
from shoal.auditor.counting import combined
from shoal.auditor.engine import Place
from shoal.auditor.findings import Finding
from shoal.auditor.reading.columns import Bools, plain
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.sorting import dense
from shoal.auditor.spelling import are_mixed, are_text, odd_spellings, spellings_of
from shoal.auditor.z.evidence import coded
from shoal.auditor.z.promise import ZPromise
from shoal.auditor.z.pseudonyms import marked

_SPELT: Final[Shape] = {"row": int, "number": int, "value": str, "spelling": str, "is_text": int, "is_known": bool}
_NO_TIME: Final = np.iinfo(np.int64).min
_ONE_SPELLING: Final = (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_date, pa.types.is_boolean)


@check(
    "spelling", "A row spells a value differently from other rows; this distinguishes it.", families=("z",), by="value",
    needs=("truth",), advice="Write all rows in the same way: a spelling of its own can mark a row.")  # fmt: skip
def spelling(rows: Relation) -> Bools:
    return np.ones(len(rows), np.bool_)


def check_spellings(place: Place, promise: ZPromise) -> list[Finding]:
    """Check every column in which a value may be spelled in several ways."""
    odd: set[int] = set()
    for name in (promise.time, *(attribute.name for attribute in promise.attributes), *promise.carry):
        files = place.facts("release", partial(_kinds, promise, name))
        if len(set[str]().union(*files)) < 2 and not any("" in kinds for kinds in files) and _is_alike(files):
            continue
        read = partial(_read, promise, name)
        known = place.regroup(place.read("truth", read, _SPELT), ("spelling",), _different, _SPELT)
        rows = place.both(known, place.read("release", read, _SPELT), ("spelling",), _allowed, _SPELT)
        is_mixed = any(place.facts("truth", partial(_is_mixed, name)))
        for found in place.divide(rows, ("number", "value"), partial(_odd, name == promise.time, is_mixed)):
            odd.update(found)
    return spelling(Relation({"row": np.array(sorted(odd), np.int64)}))


def _is_alike(files: list[set[str]]) -> bool:
    """Whether no value can have several spellings; a file of texts shows that only of itself."""
    return len(files) < 2 or not any("text" in kinds for kinds in files)


def _kinds(promise: ZPromise, name: str, rows: Rows) -> set[str]:
    """How a file holds a column; "" if a value may have several spellings in it."""
    found = {_kind(piece) for piece in rows.pieces(name)}
    if found == {"text"}:
        if name in [attribute.name for attribute in promise.attributes]:
            return {"itself"}
        column = _read(promise, name, rows, 0)
        column = column.take((column["number"] != _NO_TIME) & (column.codes("spelling") >= 0))
        values = combined([dense(column["number"]), column.codes("value")], len(column))
        return {"text"} if values.max(initial=-1) == dense(column.codes("spelling")).max(initial=-1) else {""}
    return found


def _kind(piece: Any) -> str:
    if isinstance(piece, list):
        return ""
    kind = piece.type.value_type if pa.types.is_dictionary(piece.type) else piece.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return str(piece.type) if any(has_one(piece.type) for has_one in _ONE_SPELLING) else ""


def _read(promise: ZPromise, name: str, rows: Rows, first: int) -> Relation:
    """A column: its values, and how they are spelled."""
    count = len(rows)
    value, number = Texts(np.full(count, -1), []), np.zeros(count, np.int64)
    if name == promise.time:
        at, is_there = rows.moments(name)
        number = np.where(is_there & ~rows.broken, at, _NO_TIME)
    else:
        value = coded(rows.text(name))
        value = value.mapped(map(plain, value.texts)) if name in promise.carry else value
    return Relation({
        "row": np.arange(first, first + count), "number": number, "value": value,
        "spelling": coded(spellings_of(rows, name)),
        "is_text": are_text(rows, name), "is_known": np.zeros(count, np.bool_),
    })  # fmt: skip


def _is_mixed(name: str, rows: Rows) -> bool:
    return are_mixed(rows, name)


def _different(rows: Relation) -> Relation:
    """Every spelling once."""
    return rows.take(np.unique(rows.codes("spelling"), return_index=True)[1])


def _allowed(known: Relation, rows: Relation) -> Relation:
    """Mark the rows that spell their value in a way that the truth has."""
    there = known["spelling"].take(known.codes("spelling") >= 0)
    return rows.having(is_known=marked(rows["spelling"], {there.texts[code] for code in there.codes.tolist()}))


def _odd(is_time: bool, is_mixed: bool, rows: Relation) -> list[int]:  # noqa: FBT001
    """The rows that spell their value differently from most rows that have it."""
    rows = rows.ordered("row")
    code, spelling = dense(rows["number"], rows.codes("value")), rows.codes("spelling")
    is_null = (rows["number"] == 0) & (rows.codes("value") < 0) & ~is_time
    code = np.where(is_null | (rows["number"] == _NO_TIME), -1, code)
    # Where two are equally frequent, the one that the truth has is usual, else the first one.
    first = np.unique(spelling, return_index=True)[1]
    rank = np.argsort(np.lexsort((first, ~rows["is_known"][first])))
    ranked = np.where(spelling >= 0, rank[np.searchsorted(spelling[first], spelling)], -1)
    odd = odd_spellings(code, ranked) & ~rows["is_known"]
    if not is_mixed:
        odd |= odd_spellings(code, rows["is_text"])
    found: list[int] = rows["row"][odd].tolist()
    return found
