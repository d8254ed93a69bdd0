"""Released rows next to the truth when nothing says which record each is of: only the unchanged columns link them."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import check, look
from shoal.auditor.counting import combined, surplus
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Finding
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.reading import RowReader, shown, true
from shoal.auditor.rows.texts import kept, shared_numbers, spelt_alike

_MARKS: Final[Shape] = {"row": int, "is_absent": bool, "is_extra": bool, "lacks_others": bool}
_of_value: Final = partial(check, families=("tuples", "flexible"), by="value", needs=("truth",))


@_of_value(
    "not-in-truth",
    "A released row is not in the truth.",
    advice="Somebody added rows, or the truth is not the one that the release was made from.",
)
def absent(rows: Relation) -> Bools:
    """Mark rows with sensitive and carried values that no record has."""
    found: Bools = rows["is_absent"]
    return found


@_of_value(
    "more-often-than-truth",
    "A row was released more often than it is in the truth.",
    advice="Rows were published twice or added: do not publish this release.",
)
def too_often(rows: Relation) -> Bools:
    """Mark rows beyond the number of records with their values."""
    found: Bools = rows["is_extra"]
    return found


@check(
    "wrong-nulls",
    "Too few records with the sensitive and carried values of a row lack what the row lacks.",
    advice="Values that the record does not have were made up, or known ones are gone: see `missing` in the policy.",
    families=("tuples",),
    by="value",
    needs=("truth",),
)
def lacks_others(rows: Relation) -> Bools:
    """Mark rows that lack other quasi-identifiers than the records they may be of."""
    found: Bools = rows["lacks_others"]
    return found


def look_at_membership(
    place: Place, released: Table, records: Table, reader: RowReader, *, with_nulls: bool
) -> list[Finding]:
    """Compare released rows with records by their unchanged values, and by what they lack, if asked for.

    Released rows have ``is_assumed_root``: nothing is expected of what those lack.
    """
    values: Shape = dict.fromkeys(reader.unchanged, str)
    lacks: Shape = dict.fromkeys((f"{one.name}: lacks" for one in reader.quasi), bool) if with_nulls else {}
    rows = place.each(released, partial(_shown, reader, lacks), {"row": int, "judged": bool, **values, **lacks})
    known = place.each(records, partial(_known, reader, lacks), {"record": int, **values, **lacks})
    marks = place.both(rows, known, reader.unchanged, partial(_compared, reader.unchanged, tuple(lacks)), _MARKS)
    checks = absent, too_often, lacks_others
    return [one for part in place.divide(marks, ("row",), partial(look, checks=checks)) for one in part]


def _shown(reader: RowReader, lacks: Shape, rows: Relation) -> Relation:
    values = {name: spelt_alike(rows[shown(name)]) for name in reader.unchanged}
    nulls = {name: ~one.is_shown(rows) for name, one in zip(lacks, reader.quasi, strict=False)}
    return Relation({"row": rows["row"], "judged": ~rows["is_assumed_root"], **values, **nulls})


def _known(reader: RowReader, lacks: Shape, records: Relation) -> Relation:
    records = kept(records, records["usable"])
    values = {name: spelt_alike(records[true(name)]) for name in reader.unchanged}
    nulls = {name: ~one.is_recorded(records) for name, one in zip(lacks, reader.quasi, strict=False)}
    return Relation({"record": records["record"], **values, **nulls})


def _compared(names: tuple[str, ...], lacks: tuple[str, ...], rows: Relation, known: Relation) -> Relation:
    rows = rows.take(np.argsort(rows["row"], kind="stable"))
    of_known, of_rows = _keys(names, known, rows)
    is_absent, is_extra = surplus(of_known, of_rows)
    wrong = np.zeros(len(rows), np.bool_)
    if lacks:
        reported = np.isin(of_rows, of_rows[is_absent | is_extra])
        judged = np.flatnonzero(rows["judged"] & ~reported)
        own = [np.concatenate([known[name], rows[name][judged]]).astype(np.int64) for name in lacks]
        joined = combined([np.concatenate([of_known, of_rows[judged]]), *own], len(known) + len(judged))
        nobody, too_few = surplus(joined[: len(known)], joined[len(known) :])
        wrong[judged] = nobody | too_few
    return Relation({"row": rows["row"], "is_absent": is_absent, "is_extra": is_extra, "lacks_others": wrong})


def _keys(names: tuple[str, ...], known: Relation, rows: Relation) -> tuple[Ints, Ints]:
    """Number the combinations of values on both sides together."""
    columns = [np.concatenate(shared_numbers(known[name], rows[name])[1]) for name in names]
    joined = combined(columns, len(known) + len(rows))
    return joined[: len(known)], joined[len(known) :]
