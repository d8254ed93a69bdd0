"""Risks from the sizes of classes on Spark: attackers who find the class of a person and pick one of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from shoal.auditor.attacks.outcome import NO_ROW, Attack, AttackReport, Question, Rate, by_question
from shoal.auditor.attacks.promise import check_knows, has_quasi_identifiers, read_row_promise
from shoal.auditor.engine import Place
from shoal.auditor.policy import METHODS, Policy, read_policy
from shoal.auditor.reading.paths import Format
from shoal.auditor.tables.audit import count_classes, read_columns
from shoal.auditor.tables.promise import TablePromise, read_promise
from shoal.auditor.task_files import File, files_of
from shoal.errors import PolicyError

RELEASE, TRUTH, CONTROL = "release", "truth", "control"
_WHY_NOT: Final = "it compares single people with classes or records; use shoal attack without --engine spark"
_OTHERS: Final = {
    "one unknown": Question.SINGLING_OUT, "one wrong": Question.SINGLING_OUT, "missing values": Question.SINGLING_OUT,
    "predicate": Question.SINGLING_OUT, "arrival": Question.LINKING, "arrival and values": Question.LINKING,
    "two windows": Question.LINKING, "1 row": Question.LINKING, "several rows": Question.LINKING,
    "10 rows": Question.LINKING, "30 rows": Question.LINKING, "two releases": Question.LINKING,
    "range end": Question.INFERENCE, "range end, also shared": Question.INFERENCE,
    "homogeneous class": Question.INFERENCE, "class mode": Question.INFERENCE, "rows that fit": Question.INFERENCE,
    "classifier": Question.INFERENCE, "minimality": Question.INFERENCE,
}  # fmt: skip
"""Attacks of one machine that are not tried."""


@dataclass(frozen=True, slots=True)
class Known:
    """What attackers know of a person."""

    method: str
    quasi: tuple[str, ...]
    person: str | None
    """The column of the truth that identifies people; without one each record is another person."""

    def files(self, written: Policy | None, given: Mapping[str, Any]) -> list[File]:
        """The files that tasks read, of what was given as release, truth and control group."""
        sink = Format() if written is None else Format.of(written.section("sink"))
        source = Format(trims=True) if written is None else Format.of_source(written.section("source"))
        found = []
        for role, what in given.items():
            names = (*self.quasi, *((self.person,) if self.person and role == TRUTH else ()))
            reader = partial(read_columns, names)
            found += files_of(what, role, sink if role == RELEASE else source, reader)
        return found


def attack_on(place: Place, known: Known) -> AttackReport:
    """Measure the risks of the release of a place."""
    shown = count_classes(place, RELEASE, _promise(known.quasi))
    truth = count_classes(place, TRUTH, _promise(known.quasi, known.person))
    rows, records, smallest = shown.sums.get("rows", 0), truth.sums.get("rows", 0), shown.least.get("k")
    people = truth.sums.get("people", 0) if known.person is not None else records
    outside = place.outline(CONTROL).rows
    classes = shown.sums.get("classes", 0)
    facts = {
        "released_rows": rows, "classes": classes, "people": people, "control": outside,
        "unique_rows": shown.sums.get("unique", 0), "highest_risk": 1 / smallest if smallest else None,
        "traced": False, "knows": list(known.quasi),
    }  # fmt: skip
    raw = truth.sums["classes"] / records if records and people == records else None
    found = _attacks(known.quasi, classes / rows if rows else 0.0, rows, 1 / max(people, 1), raw, people, outside)
    return AttackReport(known.method, by_question(found), facts)


def known_to_attackers(written: Policy | None, knows: Sequence[str] | None, person: str | None) -> Known:
    """What attackers know: what is named, else all quasi-identifiers of the policy."""
    if written is None:
        if not knows:
            raise PolicyError("knows: without a policy, name the quasi-identifiers that attackers know")
        return Known("a table", tuple(knows), person)
    method = str(written.section("anonymize").get("method"))
    if method not in METHODS or not has_quasi_identifiers(method):
        raise PolicyError(
            f"[anonymize] method: {method} has no classes to be counted on Spark; use shoal attack without "
            "--engine spark"
        )
    promise = read_row_promise(written)
    check_knows(knows, promise)
    names = [rule.name for rule in promise.quasi]
    own = None if promise.person == "row" else promise.person
    return Known(method, tuple(name for name in names if knows is None or name in knows), own)


def _promise(quasi: Sequence[str], person: str | None = None) -> TablePromise:
    section = {"quasi": list(quasi)} if person is None else {"quasi": list(quasi), "person": person}
    return read_promise(read_policy({"table": section}))


def _attacks(
    quasi: Sequence[str], risk: float, rows: int, guess: float, raw: float | None, people: int, outside: int
) -> list[Attack]:
    known = "the person's true " + ", ".join(quasi) + ", and the class that they lead to"
    wants = "A row drawn from the person's class is the person's; the mean over all released rows, computed, not drawn."
    control, control_is = (0.0, NO_ROW) if outside else (None, "")

    def made(name: str, knows: str, part: float = 1.0, n: int = rows) -> Attack:
        value = risk * part
        return Attack(
            name, Question.SINGLING_OUT, wants, knows, Rate(value, value, value, n) if rows else None, guess * part,
            None if raw is None else raw * part, control, control_is, "" if rows else "the release has no row",
        )  # fmt: skip

    found = [
        made("prosecutor", f"{known}; that the person is in the data"),
        made("marketer", f"{known}, for everybody"),
    ]
    if outside:
        part = people / (people + outside)
        found.append(made("journalist", f"{known}; not whether the person is in the data", part, rows + outside))
    else:
        attack = Attack("journalist", Question.SINGLING_OUT, wants, f"{known}; not whether the person is in the data")
        found.append(attack.not_applicable("it needs people who are not in the data; give them as the control group"))
    return found + [Attack(name, asks, "", "").not_applicable(_WHY_NOT) for name, asks in _OTHERS.items()]
