"""What a check is: a function that marks the rows that break a promise, with what it declares about itself.

    @check(
        "below-k",
        "A row is in a class of fewer than k people.",
        families=("tuples",),
        by="class",
        needs=("truth", "trace"),
        advice="Do not publish this release: run it again, and report how it was made.",
    )
    def below_k(rows: Relation, promise: TuplePromise) -> Bools:
        return rows["people"] < promise.k

A family reads its evidence into relations, divides them by a key (see `engine`), adds the columns that its checks look
at to every part, and calls `look`. A check never sees more than one part at a time; all rows with an equal key are in
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import ROWS_NAMED, Finding, Notes, Severity
from shoal.auditor.policy import METHODS
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation

Key = Literal["value", "class", "person", "group", "order", "record", "none"]
"""How rows may be divided for a check: those that are equal in it stay together; order: one pass along the release."""
ROW: Final = "row"
"""The column of a relation that holds the numbers of released rows; -1 where there is none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a check says if marks alone are not enough: how many, which, and in which words."""

    rows: Bools | None = None
    count: int | None = None
    sentence: str | None = None
    named: tuple[int, ...] = ()
    """The first released rows, where they are known by number."""


Function = Callable[..., Any]
"""Takes a relation and what else it needs; returns marks of rows, a count, or an answer."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check and what it declares."""

    code: str
    sentence: str
    advice: str
    families: tuple[str, ...]
    by: Key
    needs: tuple[str, ...]
    severity: Severity
    function: Function

    def __call__(self, rows: Any, *others: Any) -> list[Finding]:
        """Look at some rows, or at the outline of all; return at most one finding."""
        found = self.function(rows, *others)
        answer = found if isinstance(found, Answer) else _answered(found)
        marked = answer.rows
        count = answer.count if answer.count is not None else (0 if marked is None else int(np.count_nonzero(marked)))
        if not count:
            return []
        named = answer.named
        if marked is not None and isinstance(rows, Relation) and ROW in rows:
            numbers = rows[ROW][np.flatnonzero(marked)]
            named = tuple(np.sort(numbers[numbers >= 0])[:ROWS_NAMED].tolist())
        return [Finding(self.code, self.severity, count, answer.sentence or self.sentence, named)]


def _answered(found: Any) -> Answer:
    return Answer(rows=found) if isinstance(found, np.ndarray) else Answer(count=int(found))


CHECKS: Final[dict[tuple[str, str], Check]] = {}
"""Every declared check, by code and function; filled as the modules of the families are imported."""


def check(
    code: str,
    sentence: str,
    *,
    advice: str,
    families: Iterable[str],
    by: Key,
    needs: Iterable[str] = (),
    severity: Severity = Severity.VIOLATION,
) -> Callable[[Function], Check]:
    """Declare a check.

    Parameters
    ----------
    code, sentence, advice
        What the report calls it, what it means for somebody who has not read the papers, and what to do.
    families
        The families that it is for: z, tuples, flexible, sets, table.
    by
        The key by which its rows may be divided.
    needs
        What it cannot do without: truth, trace, or keys of the policy.
    """

    def declared(function: Function) -> Check:
        made = Check(code, sentence, advice, tuple(families), by, tuple(needs), severity, function)
        CHECKS[code, f"{function.__module__}.{function.__name__}"] = made
        return made

    return declared


def advice_of(code: str, method: str) -> str:
    """Say what to do about a finding on a release of a method: as its family declares it, else as others do."""
    family = METHODS.get(method, method)
    declared = [one for (known, _), one in CHECKS.items() if known == code]
    own = [one for one in declared if family in one.families]
    return next((one.advice for one in own or declared), "")


@check(
    "unchecked-promise",
    "The truth or the trace was given but does not show whether a promise was kept.",
    advice="Give complete and undamaged files of one run (input and trace), then audit again.",
    families=("z", "tuples", "flexible", "sets"),
    by="none",
    needs=("truth", "trace"),
)
def unchecked_promise(sentence: str, count: int) -> Answer:
    """Report a promise that the given inputs should prove and do not; the sentence says which."""
    return Answer(count=count, sentence=sentence)


def look(rows: Any, checks: Iterable[Check], *others: Any) -> list[Finding]:
    """What some checks find in some rows."""
    return [finding for one in checks for finding in one(rows, *others)]


# ---- what parts found, merged


@dataclass(slots=True)
class Found:
    """What was found in a part: findings, and figures that add up (`sums`), or of which the least or most counts."""

    findings: list[Finding] = field(default_factory=list)
    sums: dict[str, int] = field(default_factory=dict)
    least: dict[str, float | None] = field(default_factory=dict)
    most: dict[str, float | None] = field(default_factory=dict)

    def add(self, other: Found) -> None:
        """Add what was found in another part."""
        self.findings = merged([*self.findings, *other.findings])
        for name, count in other.sums.items():
            self.sums[name] = self.sums.get(name, 0) + count
        _keep(self.least, other.least, min)
        _keep(self.most, other.most, max)


def _keep(own: dict[str, float | None], other: Mapping[str, float | None], which: Callable[..., float]) -> None:
    for name, figure in other.items():
        known = [one for one in (own.get(name), figure) if one is not None]
        own[name] = which(known) if known else None


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Add up findings of one code and sentence; of their rows name the first ones."""
    found: dict[tuple[Severity, str, str], Finding] = {}
    for finding in findings:
        key = (finding.severity, finding.code, finding.sentence)
        before = found.get(key)
        rows = finding.rows if before is None else (*before.rows, *finding.rows)
        count = finding.count + (0 if before is None else before.count)
        found[key] = replace(finding, count=count, rows=tuple(sorted(rows)[:ROWS_NAMED]))
    return list(found.values())


def all_found(parts: Iterable[Found]) -> Found:
    """What all parts found."""
    whole = Found()
    for part in parts:
        whole.add(part)
    return whole


def find(place: Place, table: Table, by: tuple[str, ...], work: Callable[[Relation], Found], notes: Notes) -> Found:
    """What a function finds in all parts, whose rows that are equal in some columns are together; note the findings."""
    found = all_found(place.divide(table, by, work))
    notes.findings += found.findings
    return found
