"""Refuses what the values of a frame cannot give, such as ranges of infinity, or more people than there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import is_binary
from shoal.errors import InputError, PolicyError
from shoal.inspection import Proposal
from shoal.inspection.columns.column_names import printable
from shoal.inspection.person.person_values import HANDFUL
from shoal.inspection.wishes import Wishes
from shoal.policy import Policy

_INSTEAD: Final = (
    (pa.types.is_null, "has no values; leave it out"),
    (pa.types.is_duration, "has durations; convert them to numbers, such as hours"),
    (pa.types.is_time, "has times of day; convert them to numbers, such as hours, or to text"),
    (pa.types.is_nested, "has several values in each row; give each a column, or publish lists on their own (items=)"),
    (lambda kind: is_binary(kind) or pa.types.is_binary_view(kind), "has bytes; decode them to text"),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), "has values of an unusual type; convert them to text"),
)
"""What to do with quasi-identifiers that are neither numbers, moments nor categories."""


def require_usable(table: pa.Table, wishes: Wishes) -> None:
    """Raise an error if values cannot be used in the role that is given, or if a number is infinite."""
    for name in ("k", "z"):
        wanted = getattr(wishes, name)
        if wanted is not None and wanted > table.num_rows:
            raise _too_few(name, f"{wanted:,}", table.num_rows, "row", "rows")
    if table.num_rows == 1:
        raise InputError("frame: has 1 row, and one person cannot be hidden among others; give more rows")
    given = wishes.quasi or ()
    problems = [f"column {name!r}: {why}" for name in given for why in _why_not(table.column(name))]
    if problems:
        raise PolicyError(problems)
    named = {wishes.person, wishes.time, wishes.attribute, wishes.items}
    named |= {*(wishes.sensitive or ()), *(wishes.carry or ()), *wishes.index}
    is_guessed = wishes.attribute is None and wishes.items is None and wishes.z is None and wishes.m is None
    for name in given or [name for name in table.column_names if is_guessed and name not in named]:
        column = table.column(name)
        if pa.types.is_floating(column.type) and (count := pc.sum(pc.is_inf(column)).as_py()):
            values = "1 value is" if count == 1 else f"{count:,} values are"
            raise InputError(f"column {name!r}: {values} infinite, which no range can cover; put a number or a missing "
                             "value there, or remove the column")  # fmt: skip
    if wishes.person in table.column_names and table.column(wishes.person).null_count == table.num_rows:
        raise InputError(f"column {wishes.person!r}: has no values, so it cannot say whose row it is; name another")


def _why_not(column: Any) -> Iterator[str]:
    found = next((words for is_kind, words in _INSTEAD if is_kind(column.type)), None)
    if found is not None:
        yield found
    elif column.null_count == len(column):
        yield "has no values; leave it out"
    elif len(column.drop_null().unique()) == 1:
        yield "all its values are equal, so nothing can be generalized; leave it out, or publish it unchanged (carry)"


def require_roles(proposal: Proposal, wishes: Wishes) -> None:
    """Raise PolicyError if a given role is of no use to the method that was chosen."""
    problems = []
    for role in ("sensitive", "carry", "attribute", "items", "time"):
        given = getattr(wishes, role) or ()
        used = {one.column for one in proposal.roles if one.column in given and one.role != "drop"}
        unused = sorted({given} - used if isinstance(given, str) else {*given} - used)
        problems += [f"{role}: {proposal.method} does not use column {name!r}; leave it out" for name in unused]
    if wishes.window is not None and proposal.family != "z":
        problems.append(f"window: {proposal.method} has none; leave it out, or give z for events")
    if problems:
        raise PolicyError(problems)


def require_people(table: pa.Table, policy: Policy, wishes: Wishes | None = None) -> None:
    """Raise PolicyError if there are fewer people than must share what is published, or too few sensitive values."""
    column = table.column(policy.stream.person) if policy.stream.person in table.column_names else None
    people = table.num_rows if column is None else len(column.drop_null().unique())
    words = ("row", "rows") if column is None else ("person", "people")
    rules = policy.anonymize
    for name in ("k", "z"):
        wanted = getattr(rules, name, None)
        is_chosen = wishes is not None and getattr(wishes, name) is None
        if wanted is not None and wanted > people:
            is_doubtful = people < min(HANDFUL, table.num_rows)
            person = printable(str(policy.stream.person))
            other = f"if column {person!r} does not say whose row it is, name another, or "
            given = f"{wanted:,}{' (chosen by shoal)' if is_chosen else ''}"
            raise _too_few(name, given, people, *words, hint=other if is_doubtful else "")
    wanted = getattr(rules, "l", None)
    for name in getattr(rules, "sensitive", ()):
        values = len(table.column(name).drop_null().unique()) if name in table.column_names else 0
        if isinstance(wanted, int) and wanted > values:
            raise PolicyError(f"l: is {wanted}, but column {name!r} has {values} different values, so nothing could "
                              "be published; choose a smaller l, or leave it out")  # fmt: skip


def _too_few(name: str, wanted: Any, there: int, one: str, several: str, *, hint: str = "") -> PolicyError:
    hint = hint or (f"choose a {name} of at most {there:,}, or " if there >= 2 else "")
    return PolicyError(f"{name}: is {wanted}, but the frame has {there:,} {one if there == 1 else several}, so nothing "
                       f"could be published; {hint}give more {several}")  # fmt: skip
