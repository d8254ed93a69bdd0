"""Read the internal store of `shoal sanitize` as an intruder would; the truth says which records are real."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.attacks.decoys.features import Column, StoredRecords
from shoal.auditor.attacks.promise import read_row_promise
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.counting import combined, dense
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT, Ints
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.rows.rules import NumberRule, Rule
from shoal.auditor.tuples.diversity.sensitive import meaning
from shoal.errors import InputError

_TABLE: Final = "shoal_internal_records"
_OWN: Final = "shoal_"
_PERSON: Final = "shoal_person"
_SQLITE: Final = b"SQLite format 3\x00"
_HOUR: Final = 3600.0
_SECOND: Final = 1e9
_MICRO: Final = 1000
"""Stores cut moments to microseconds."""


def read_store(policy: Policy, store: Any, truth: Any, settings: Settings) -> StoredRecords:
    """Read the records of a store (a SQLite file, or its table in any format) and compare them with the truth."""
    settings.progress("reading")
    written = policy if "person" in policy.section("stream") else _with_person(policy)
    promise = read_row_promise(written)
    sparse = _sparse(promise, written) if isinstance(promise, FlexiblePromise) else ()
    rules = [rule for rule in promise.quasi if rule.name not in sparse]
    rows = read(_table_of(store), name="release", expected=Format())
    rows.require(_PERSON)
    known = by_stream(read(truth, name="truth", expected=Format.of_source(policy.section("source"))),
                      policy.section("stream"))  # fmt: skip
    names = [name for name in rows.columns if not name.startswith(_OWN)]
    known.require(*names)
    texts = {name: _Meanings(name, rows, known) for name in names}
    person = np.unique(np.array(rows.text(_PERSON).to_pylist(), object).astype(str), return_inverse=True)[1]
    is_real = _real_ids(person, [texts[name] for name in names], len(known))
    cells = {rule.name: _cells(rule, texts[rule.name]) for rule in rules if rule.name in texts}
    cell = combined(list(cells.values()), len(rows))
    time = policy.section("stream").get("time")
    return StoredRecords(
        {name: Column(own.shown, own.value, name in cells) for name, own in texts.items()},
        person, cell, texts[time].value if time in texts else None, _together(person, cell), is_real,
    )  # fmt: skip


def is_store(release: Any, policy: Policy) -> bool:
    """Return whether a release is an internal store: a SQLite file, or a table with the ids of one."""
    if "sanitize" not in policy.content:
        return False
    if isinstance(release, str | Path) and _is_sqlite(Path(release)):
        return True
    return _PERSON in read(release, name="release", expected=Format()).columns


def _sparse(promise: FlexiblePromise, policy: Policy) -> tuple[str, ...]:
    """The columns that do not define groups: those named, else those with an ontology."""
    if promise.sparse is not None:
        return tuple(promise.sparse)
    quasi = policy.section("anonymize").get("quasi", {})
    return tuple(name for name, own in quasi.items() if own.get("kind") == "ontology")


def _with_person(policy: Policy) -> Policy:
    """People are ids of the store, whatever columns identify them in the source."""
    content = {**policy.content, "stream": {**policy.section("stream"), "person": _PERSON}}
    return Policy(content, policy.folder)


def _table_of(store: Any) -> Any:
    if not isinstance(store, str | Path) or not _is_sqlite(Path(store)):
        return store
    try:
        with closing(sqlite3.connect(f"{Path(store).absolute().as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute(f"SELECT * FROM {_TABLE}")
            names = [column[0] for column in found.description]
            columns = list(zip(*found.fetchall(), strict=True)) or [()] * len(names)
    except sqlite3.Error:
        raise InputError(
            f"{store}: has no table {_TABLE}, or is damaged; give the internal store of shoal sanitize"
        ) from None
    return pa.table({name: pa.array([_text(cell) for cell in column], TEXT)
                     for name, column in zip(names, columns, strict=True)})  # fmt: skip


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return cell.hex() if isinstance(cell, bytes) else repr(cell)


class _Meanings:
    """A column of the store and of the truth, by meaning: 12.50 and 12.5 are equal, and so are moments in any form."""

    def __init__(self, name: str, rows: Rows, known: Rows) -> None:
        numbers: dict[str | None, int] = {}
        self.shown, self.true = (_numbered(side.text(name), numbers) for side in (rows, known))
        values = [_number(text) for text in numbers]
        self.value = None
        used = np.unique(self.shown)
        if any(value is not None for value in values) and all(
            values[at] is not None or text is None for at, text in enumerate(numbers) if at in set(used.tolist())
        ):
            self.value = np.array([0.0 if value is None else value for value in values])[self.shown]


def _numbered(column: Any, numbers: dict[str | None, int]) -> Ints:
    return np.array([numbers.setdefault(_meaning(text), len(numbers)) for text in column.to_pylist()], np.int64)


def _meaning(text: str | None) -> str | None:
    found = None if text is None else meaning(text)
    return f"@{int(found[1:]) // _MICRO * _MICRO}" if found is not None and found[0] == "@" else found


def _number(text: str | None) -> float | None:
    """Return a number as it is, a moment in seconds; None for any other text."""
    if text is None or text[0] == "'" or text in {"true", "false"}:
        return None
    return int(text[1:]) / _SECOND if text[0] == "@" else float(text)


def _real_ids(person: Ints, columns: Sequence[_Meanings], count: int) -> Any:
    """Return which records are of real ids: all records of a person are in the truth, a decoy's are not."""
    left = Counter(zip(*(own.true.tolist() for own in columns), strict=True)) if count else Counter()
    stored = zip(*(own.shown.tolist() for own in columns), strict=True)
    found = np.array([left[record] > 0 for record in stored], np.bool_)
    share = np.bincount(person, weights=found) / np.maximum(np.bincount(person), 1)
    return (share >= 1.0)[person]


def _cells(rule: Rule, column: _Meanings) -> Ints:
    if not isinstance(rule, NumberRule) or column.value is None:
        return column.shown
    grid = rule.grid if rule.grid is not None else (_HOUR if rule.is_moment else None)
    if grid is None:
        return column.shown
    return dense(np.floor((column.value - rule.low) / grid + 1e-9).astype(np.int64))


def _together(person: Ints, cell: Ints) -> Ints:
    """Number the ids that have records in exactly the same groups, equally often: a person and its decoys."""
    order = np.lexsort((cell, person))
    pieces = np.split(cell[order], np.flatnonzero(np.diff(person[order])) + 1)
    numbers: dict[bytes, int] = {}
    of_id = np.array([numbers.setdefault(piece.tobytes(), len(numbers)) for piece in pieces], np.int64)
    return of_id[person]
