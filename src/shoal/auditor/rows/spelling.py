"""One value, one spelling: rows with equal values that are written differently can be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.checks import check, look
from shoal.auditor.counting import shared_codes
from shoal.auditor.engine import Place, Table
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.quasi import LabelColumn, Quasi
from shoal.auditor.rows.reading import RowReader
from shoal.auditor.rows.texts import shared_numbers, spelt_alike
from shoal.auditor.spelling import are_text, odd_spellings, spellings_of

_TEXT: Final = "text"
_ANY: Final = ""
"""A column whose values may have several spellings."""
_ROW: Final[Shape] = {"row": int}


@check(
    "spelling",
    "A row spells a value differently from other rows; this distinguishes it.",
    advice="Write all rows in one format with one writer: a spelling can mark a person's rows.",
    families=("tuples", "flexible"),
    by="value",
)
def spelling(rows: Relation) -> Bools:
    """Mark rows that were found in some column; each once."""
    found = np.zeros(len(rows), np.bool_)
    found[np.unique(rows["row"], return_index=True)[1]] = True
    return found


def look_at_spelling(place: Place, reader: RowReader) -> list[Any]:
    """Find rows that spell a value in another way than most rows do; a column that is published unchanged may use
    the spellings of the truth."""
    found: Table = None
    has_truth = place.has("truth")
    forms = _forms_of(place, "release", reader)
    for one in reader.quasi:
        if _ANY in forms[one.name] or len(forms[one.name]) > 1:
            shape = {**one.shown, **_SPELT, **_ROW}
            rows = place.read("release", partial(_generalized, one), shape)
            found = _joined(place, found, place.regroup(rows, tuple(one.shown), partial(_odd_ranges, one), _ROW))
    of_truth = _forms_of(place, "truth", reader) if has_truth else {}
    for name in reader.unchanged if has_truth else ():
        both = forms[name] | of_truth[name]
        if len(both) == 1 and not both & {_ANY, _TEXT}:
            continue
        mixed = len(set().union(*place.facts("truth", partial(_kinds_in_json, name)))) > 1
        shape = {"value": str, **_SPELT, **_ROW}
        rows, known = (place.read(role, partial(_unchanged, name), shape) for role in ("release", "truth"))
        odd = place.both(rows, known, ("value",), partial(_odd_texts, are_mixed=mixed), _ROW)
        found = _joined(place, found, odd)
    if found is None:
        return []
    return [finding for part in place.divide(found, ("row",), partial(look, checks=[spelling])) for finding in part]


_SPELT: Final[Shape] = {"spelling": str, "is_text": bool}


def _joined(place: Place, found: Table, odd: Table) -> Table:
    return odd if found is None else place.both(found, odd, ("row",), _stack, _ROW)


def _stack(left: Relation, right: Relation) -> Relation:
    return Relation({"row": np.concatenate([left["row"], right["row"]])})


# ---- how columns are written


def _forms_of(place: Place, role: str, reader: RowReader) -> dict[str, set[str]]:
    """By column the forms in which files write it; in one form that is not _ANY every value has one spelling."""
    found: dict[str, set[str]] = {name: set() for name in (*(one.name for one in reader.quasi), *reader.unchanged)}
    for forms in place.facts(role, partial(_forms, reader.quasi if role == "release" else (), reader.unchanged)):
        for name, own in forms.items():
            found[name] |= own
    return found


def _forms(quasi: Sequence[Quasi], unchanged: Sequence[str], rows: Rows) -> dict[str, set[str]]:
    kinds: Mapping[str, Any] = dict.fromkeys(unchanged, _form_of_text) | {
        one.name: _form_of_label if isinstance(one, LabelColumn) else _form_of_range for one in quasi
    }
    return {name: {form(piece) for piece in rows.pieces(name)} - {None} for name, form in kinds.items()}


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
    texts, (codes,) = shared_codes(spellings_of(rows, name))
    return {"spelling": Texts(codes, texts), "is_text": are_text(rows, name) > 0}


def _generalized(one: Quasi, rows: Rows, first: int) -> Relation:
    return Relation({**one.read_shown(rows)[0], **_spelt(rows, one.name), "row": first + np.arange(len(rows))})


def _unchanged(name: str, rows: Rows, first: int) -> Relation:
    texts, (codes,) = shared_codes(rows.text(name))
    value = spelt_alike(Texts(codes, texts))
    return Relation({"value": value, **_spelt(rows, name), "row": first + np.arange(len(rows))})


def _in_order(rows: Relation) -> Relation:
    return rows.take(np.argsort(rows["row"], kind="stable"))


def _kinds_in_json(name: str, rows: Rows) -> set[bool]:
    lists = (piece for piece in rows.pieces(name) if isinstance(piece, list))
    return {isinstance(value, str) for piece in lists for value in piece if value is not None}


def _odd_ranges(one: Quasi, rows: Relation) -> Relation:
    rows = _in_order(rows)
    code = one.codes(rows)
    odd = odd_spellings(code, _by_appearance(rows.codes("spelling"))) | odd_spellings(
        code, rows["is_text"].astype(np.int64)
    )
    return Relation({"row": rows["row"][odd]})


def _odd_texts(rows: Relation, known: Relation, *, are_mixed: bool) -> Relation:
    rows = _in_order(rows)
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
