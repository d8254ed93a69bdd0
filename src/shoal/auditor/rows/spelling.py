"""One value, one spelling: rows with equal values that are written differently can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.checks import check, look, merged
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Finding
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.quasi import LabelColumn, Quasi
from shoal.auditor.rows.reading import RowReader
from shoal.auditor.rows.texts import ArrowTexts, coded, shared_numbers, spelt_alike, texts_of
from shoal.auditor.sorting import firsts
from shoal.auditor.spelling import are_text, odd_spellings, spellings_of

_TEXT: Final = "text"
_ANY: Final = ""
"""A column whose values may have several spellings."""
_ITSELF: Final = "itself"
"""A text that is its own value: equal values are equal texts."""
_ROW: Final[Shape] = {"row": int}


@check(
    "spelling",
    "A row spells a value differently from other rows; this distinguishes it.",
    advice="Write all rows in one format with one writer: a spelling can mark a person's rows.",
    families=("tuples", "flexible", "z"),
    by="value",
)
def spelling(rows: Relation) -> Bools:
    """Mark rows that were found in some column; each once."""
    found = np.zeros(len(rows), np.bool_)
    found[np.unique(rows["row"], return_index=True)[1]] = True
    return found


def look_at_spelling(place: Place, reader: RowReader) -> list[Finding]:
    """Find rows that spell a value in another way than most rows do."""
    found: Table = None
    forms: dict[str, set[str]] = {one.name: set() for one in reader.quasi}
    for own in place.facts("release", partial(_forms, reader.quasi)):
        forms = {name: forms[name] | own[name] for name in forms}
    for one in reader.quasi:
        if _ANY in forms[one.name] or len(forms[one.name]) > 1:
            shape = {**one.shown, **_SPELT, **_ROW}
            rows = place.read("release", partial(_generalized, one), shape)
            found = _joined(place, found, place.regroup(rows, tuple(one.shown), partial(_odd_ranges, one), _ROW))
    meanings = dict.fromkeys(reader.unchanged, values_of) if place.has("truth") else {}
    return look_at_unchanged_spelling(place, meanings, found)


def look_at_unchanged_spelling(place: Place, meanings: Mapping[str, Meaning], found: Table = None) -> list[Finding]:
    """The same for columns that are published unchanged, which may use the spellings of the truth."""
    for name, meaning in meanings.items():
        files = place.facts("release", partial(_forms_of_values, name, meaning))
        forms = set[str]().union(*files)
        if len(forms) < 2 and _ANY not in forms and (_TEXT not in forms or len(files) < 2):
            continue
        mixed = len(set().union(*place.facts("truth", partial(_kinds_in_json, name)))) > 1
        shape = {"value": str, **_SPELT, **_ROW}
        rows, known = (place.read(role, partial(_unchanged, name, meaning), shape) for role in ("release", "truth"))
        odd = place.both(rows, known, ("value",), partial(_odd_texts, are_mixed=mixed), _ROW)
        found = _joined(place, found, odd)
    if found is None:
        return []
    return merged(one for part in place.divide(found, ("row",), partial(look, checks=[spelling])) for one in part)


_SPELT: Final[Shape] = {"spelling": str, "is_text": bool}
Meaning = Callable[[Rows, str], Texts]
"""Reads a column as texts that are equal where values are, however these are spelt."""


def values_of(rows: Rows, name: str) -> Texts:
    """Read a column whose numbers, moments and booleans formats spell in several ways."""
    return spelt_alike(texts_of(rows, name))


def moments_of(rows: Rows, name: str) -> Texts:
    """Read a column of moments; what is none is missing."""
    at, is_there = rows.moments(name)
    encoded = pa.array(at, mask=~is_there | rows.broken).dictionary_encode()
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    return Texts(codes, ArrowTexts(encoded.dictionary.cast(TEXT)))


def _joined(place: Place, found: Table, odd: Table) -> Table:
    return odd if found is None else place.both(found, odd, ("row",), _stack, _ROW)


def _stack(left: Relation, right: Relation) -> Relation:
    return Relation({"row": np.concatenate([left["row"], right["row"]])})


# ---- how columns are written


def _forms(quasi: Sequence[Quasi], rows: Rows) -> dict[str, set[str]]:
    """The forms in which a file writes quasi-identifiers; in one that is not _ANY every value has one spelling."""
    form_of = {one.name: _form_of_label if isinstance(one, LabelColumn) else _form_of_range for one in quasi}
    found = {name: map(form, rows.pieces(name)) for name, form in form_of.items()}
    return {name: {form for form in forms if form is not None} for name, forms in found.items()}


def _forms_of_values(name: str, meaning: Meaning, rows: Rows) -> set[str]:
    """The forms of an unchanged column; texts of which each is another value have one spelling, in this file."""
    forms = {form for form in map(_form_of_text, rows.pieces(name)) if form is not None}
    if forms != {_TEXT}:
        return forms
    if meaning is texts_of:
        return {_ITSELF}
    value, spelt = meaning(rows, name).codes, texts_of(rows, name).codes
    is_there = (value >= 0) & (spelt >= 0)
    return {_TEXT} if len(firsts(value[is_there])) == len(firsts(spelt[is_there])) else {_ANY}


def _form_of_text(piece: Any) -> str | None:
    """Numbers, moments and booleans of one type have one spelling each; so have texts, but texts may mean the same."""
    kind = _kind(piece)
    if kind is None or pa.types.is_null(kind):
        return _ANY if kind is None else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _TEXT
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    return str(kind) if is_plain else _ANY


def _form_of_label(piece: Any) -> str | None:
    """A label is its text."""
    form = _form_of_text(piece)
    return form if form in (_ANY, None) else _TEXT


def _form_of_range(piece: Any) -> str | None:
    """Ranges are structs of two ends of one type; 0 and -0 are one number."""
    kind = _kind(piece)
    if kind is None or pa.types.is_null(kind):
        return _ANY if kind is None else None
    if not pa.types.is_struct(kind):
        return _ANY
    for chunk in getattr(piece, "chunks", [piece]):
        for end in chunk.flatten() if kind == chunk.type else ():
            if pa.types.is_floating(end.type):
                values = end.to_numpy(zero_copy_only=False)
                if (np.signbit(values) & (values == 0)).any():
                    return _ANY
            elif not (pa.types.is_integer(end.type) or pa.types.is_temporal(end.type)):
                return _ANY
    return str(kind)


def _kind(piece: Any) -> Any:
    """The type of an Arrow column; None for a list of values, and for a coded column of ranges."""
    return None if isinstance(piece, list) else getattr(piece.type, "value_type", piece.type)


# ---- columns with their spellings


def _spelt(rows: Rows, name: str) -> dict[str, Any]:
    return {"spelling": coded(spellings_of(rows, name)), "is_text": are_text(rows, name) > 0}


def _generalized(one: Quasi, rows: Rows, first: int) -> Relation:
    return Relation({**one.read_shown(rows)[0], **_spelt(rows, one.name), "row": first + np.arange(len(rows))})


def _unchanged(name: str, meaning: Meaning, rows: Rows, first: int) -> Relation:
    return Relation({"value": meaning(rows, name), **_spelt(rows, name), "row": first + np.arange(len(rows))})


def _kinds_in_json(name: str, rows: Rows) -> set[bool]:
    lists = (piece for piece in rows.pieces(name) if isinstance(piece, list))
    return {isinstance(value, str) for piece in lists for value in piece if value is not None}


def _odd_ranges(one: Quasi, rows: Relation) -> Relation:
    rows = rows.ordered("row")
    code = one.codes(rows)
    odd = odd_spellings(code, _by_appearance(rows.codes("spelling"))) | odd_spellings(
        code, rows["is_text"].astype(np.int64)
    )
    return Relation({"row": rows["row"][odd]})


def _odd_texts(rows: Relation, known: Relation, *, are_mixed: bool) -> Relation:
    rows = rows.ordered("row")
    (_, (spelt, others)), code = shared_numbers(rows["spelling"], known["spelling"]), rows.codes("value")
    odd = odd_spellings(code, _by_appearance(np.append(others, spelt))[len(others) :]) & ~np.isin(spelt, others)
    if not are_mixed:
        odd |= odd_spellings(code, rows["is_text"].astype(np.int64))
    return Relation({"row": rows["row"][odd]})


def _by_appearance(codes: Ints) -> Ints:
    """Number codes in the order of the rows: of two equally frequent spellings the first one counts as usual."""
    different, first, turn = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(different), np.int64)
    rank[np.argsort(first)] = np.arange(len(different))
    return np.where(codes < 0, -1, rank[turn])
