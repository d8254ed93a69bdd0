"""How many people share what is published of them: for methods on tuples and the flexible method."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import is_interval
from shoal.methods.registry import METHODS
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.serve.recent import Step, newest

_ROWS: Final = 50_000
_CLASS, _PERSON, _FORMED, _KNOWN = "shoal: class", "shoal: person", "shoal: formed", "shoal: known"


class ClassSizes:
    """Counts the people of every class of equal published rows.

    Only classes whose first rows are among the recent ones are judged: rows that joined an older class would look like
    a class of too few people. People are those of the input.
    """

    def __init__(self, policy: Policy) -> None:
        parameters = policy.parameters()
        schema = parameters["schema"]
        assert isinstance(schema, Schema)
        self._quasi = [role.name for role in schema.quasi]
        self._sensitive = [name for name in schema.sensitive if name in schema.unchanged]
        self._person = schema.person
        self._k, self._l = int(parameters["k"]), parameters.get("l")
        self._is_flexible = METHODS[policy.anonymize.METHOD].family == "flexible"
        self._is_judged = parameters.get("missing", "covered") != "paper" and not self._is_flexible
        self._sees_all = True

    def measure(self, steps: list[Step], fresh: list[Step], *, has_gap: bool) -> list[dict[str, Any]]:
        """The promise of k, and of l if there is one, with the smallest classes among recent rows."""
        self._sees_all = self._sees_all and not has_gap and (not steps or steps[0].number == 0)
        sizes = self._sizes(steps)
        words = "the quasi-identifiers of every published row are those of at least {} people"
        if self._is_flexible:
            words = "every published combination of quasi-identifiers belongs to at least {} people"
        found = [_entry("k", words.format(self._k), self._k, None if sizes is None else sizes[0])]
        if self._l is not None and self._l > 1:
            text = f"every class of equal rows has at least {self._l} different known sensitive values, or none"
            found.append(_entry("l", text, self._l, None if sizes is None else sizes[1]))
        if self._is_flexible:  # sparse columns need fewer people, by K_s, so k alone does not decide
            found[0]["holds"] = None if found[0]["measured"] is None or found[0]["measured"] < self._k else True
        return found

    def smallest(self, steps: list[Step]) -> int | None:
        """The people of the smallest class; None if no class can be judged."""
        sizes = self._sizes(steps)
        return None if sizes is None else sizes[0]

    def _sizes(self, steps: list[Step]) -> tuple[int, int | None] | None:
        """The least number of people, and of sensitive values, in a class."""
        if not self._is_judged and not (self._is_flexible and self._sees_all):
            return None
        looked_at = steps if self._is_flexible else newest(steps, _ROWS)
        shown = [found for step in looked_at if (found := step.shown()) is not None and found[0].num_rows]
        if not shown:
            return None
        rows, trace = (pa.Table.from_batches(parts) for parts in zip(*shown, strict=True))
        is_formed = pc.invert(trace.column("reused").fill_null(True)) if "reused" in trace.column_names else None  # noqa: FBT003
        people, is_known = self._people(steps, trace.column("row").to_numpy())
        columns = {_PERSON: people, _KNOWN: is_known}
        columns[_FORMED] = pa.array(np.ones(rows.num_rows, np.bool_)) if is_formed is None else is_formed
        keys = _flat(rows.select([name for name in self._quasi if name in rows.column_names]))
        kept = {name: rows.column(name) for name in self._sensitive if name in rows.column_names}
        table = pa.table({**keys, **columns, **kept})
        wanted = [(_PERSON, "count_distinct"), (_FORMED, "max"), (_KNOWN, "min")]
        wanted += [(name, "count_distinct") for name in kept]
        classes = table.group_by(list(keys), use_threads=False).aggregate(wanted)
        judged = classes.filter(pc.and_(classes.column(f"{_FORMED}_max"), classes.column(f"{_KNOWN}_min")))
        if not judged.num_rows:
            return None
        counts = [judged.column(f"{name}_count_distinct") for name in kept]
        revealing = [count.filter(pc.greater(count, 0)) for count in counts]  # a class without a value reveals none
        values = [pc.min(count).as_py() for count in revealing if len(count)]
        return int(pc.min(judged.column(f"{_PERSON}_count_distinct")).as_py()), min(values, default=None)

    def _people(self, steps: list[Step], rows: np.ndarray[Any, Any]) -> tuple[pa.Array, pa.Array]:
        """The person of every row, and whether the record is still known."""
        arrived = [step for step in steps if step.batch is not None and step.batch.num_rows]
        if not arrived:
            return pa.array(rows), pa.array(np.zeros(len(rows), np.bool_))
        if self._person not in arrived[0].batch.schema.names:  # type: ignore[union-attr]
            return pa.array(rows), pa.array(np.ones(len(rows), np.bool_))  # each row is a person
        numbers = np.concatenate([step.numbers for step in arrived])
        places = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
        is_known = numbers[places] == rows
        persons = pa.chunked_array([step.batch.column(self._person) for step in arrived])  # type: ignore[union-attr]
        return persons.take(pa.array(np.where(is_known, places, 0))), pa.array(is_known)


def _flat(rows: pa.Table) -> dict[str, Any]:
    """Columns that can be compared: a range is its two ends."""
    found = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if is_interval(column.type):
            whole = column.combine_chunks()
            for end in ("lo", "hi"):
                found[f"{name}.{end}"] = pc.struct_field(whole, end)
        else:
            found[name] = column
    return found


def _entry(name: str, words: str, promised: int, measured: int | None) -> dict[str, Any]:
    holds = None if measured is None else measured >= promised
    return {"name": name, "words": words, "promised": promised, "measured": measured, "holds": holds,
            "bound": "least", "scope": "recent rows"}  # fmt: skip
