"""Risks from the sizes of classes on Spark: attackers who find the class of a person and pick one of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from shoal.auditor.attacks.outcome import NO_ROW, Attack, AttackReport, Question, Rate, by_question
from shoal.auditor.audit import METHODS
from shoal.auditor.flexible.promise import read_flexible_promise
from shoal.auditor.policy import Policy, read_policy
from shoal.auditor.reading.memory import size_of
from shoal.auditor.reading.paths import Format
from shoal.auditor.tables.promise import TablePromise, read_promise
from shoal.auditor.tuples.promise import read_tuple_promise
from shoal.errors import PolicyError
from shoal.spark.auditor.engine import Engine
from shoal.spark.auditor.shares import shares_of
from shoal.spark.auditor.tables import count_classes, count_rows

_WHY_NOT: Final = "it compares single people with classes or records; use shoal attack without --engine spark"
_OTHERS: Final = {
    "one unknown": Question.SINGLING_OUT, "one wrong": Question.SINGLING_OUT, "missing values": Question.SINGLING_OUT,
    "predicate": Question.SINGLING_OUT, "arrival": Question.LINKING, "arrival and values": Question.LINKING,
    "two windows": Question.LINKING, "several rows": Question.LINKING, "two releases": Question.LINKING,
    "range end": Question.INFERENCE, "range end, also shared": Question.INFERENCE,
    "homogeneous class": Question.INFERENCE, "class mode": Question.INFERENCE, "rows that fit": Question.INFERENCE,
    "classifier": Question.INFERENCE, "minimality": Question.INFERENCE,
}  # fmt: skip
"""Attacks of one machine that are not tried."""


def attack_on(
    engine: Engine, release: Any, truth: Any, policy: Any = None, *, control: Any = None,
    knows: Sequence[str] | None = None, person: str | None = None, max_memory: Any = None,
) -> AttackReport:  # fmt: skip
    """Measure the risks of a release in files. `max_memory` is that of a task."""
    written = None if policy is None else read_policy(policy)
    quasi, person, method = _columns(written, knows, person)
    limit = None if max_memory is None else size_of(max_memory)
    sink = Format() if written is None else Format.of(written.section("sink"))
    source = Format(trims=True) if written is None else Format.of_source(written.section("source"))
    shown, _ = count_classes(engine, _promise(quasi), shares_of(release, "release", sink, limit))
    known, people = count_classes(engine, _promise(quasi, person), shares_of(truth, "truth", source, limit))
    outside = 0
    if control is not None:
        outside = count_rows(engine, _promise(quasi), shares_of(control, "control", source, limit))
    people = people if person is not None else known.rows
    facts = {
        "released_rows": shown.rows, "classes": shown.classes, "people": people, "control": outside,
        "unique_rows": shown.unique, "highest_risk": 1 / shown.smallest if shown.smallest else None,
        "traced": False, "knows": list(quasi),
    }  # fmt: skip
    risk = shown.classes / shown.rows if shown.rows else 0.0
    raw = known.classes / known.rows if known.rows and people == known.rows else None
    found = _attacks(quasi, risk, shown.rows, 1 / max(people, 1), raw, people, outside)
    return AttackReport(method, by_question(found), facts)


def _columns(written: Policy | None, knows: Sequence[str] | None, person: str | None) -> tuple[
    tuple[str, ...], str | None, str
]:  # fmt: skip
    """The quasi-identifiers that attackers know, the column of persons, and the method."""
    if written is None:
        if not knows:
            raise PolicyError("knows: without a policy, name the quasi-identifiers that attackers know")
        return tuple(knows), person, "a table"
    method = str(written.section("anonymize").get("method"))
    if method not in METHODS or method == "z-anonymity" or method.startswith("k^m"):
        raise PolicyError(
            f"[anonymize] method: {method} has no classes to be counted on Spark; use shoal attack without "
            "--engine spark"
        )
    promise = read_flexible_promise(written) if method == "flexible-k" else read_tuple_promise(written)
    names = [rule.name for rule in promise.quasi]
    unknown = [name for name in knows or () if name not in names]
    if unknown or (knows is not None and not knows):
        raise PolicyError(f"knows: choose from the quasi-identifiers of the policy, {', '.join(names)}")
    own = None if promise.person == "row" else promise.person
    return tuple(name for name in names if knows is None or name in knows), own, method


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
