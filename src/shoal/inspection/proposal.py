"""Roles, a family, a method and its parameters for a table of data about people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.inspection.columns.facts import Facts
from shoal.inspection.columns.numeric_codes import as_code, is_code
from shoal.inspection.columns.risk import Measure, Risk
from shoal.inspection.columns.roles import Role, find_time
from shoal.inspection.draft import Draft
from shoal.inspection.events import events_draft, has_common_values
from shoal.inspection.person.whose_row import Candidate, WhoseRow, whose_row
from shoal.inspection.questions import questions
from shoal.inspection.rows import flexible_draft, has_results, tuples_draft
from shoal.inspection.sets import sets_draft
from shoal.inspection.table_facts import TableFacts, stated
from shoal.inspection.wishes import Wishes
from shoal.schema import ROWS

_FAMILIES: Final = {"z-anonymity": "z", "k^m": "sets", "k^m-apriori": "sets", "flexible-k": "flexible"}
_NOBODY: Final = 0.005
"""The share of people that is written as 0%: two columns that single out no more are no risk to list."""


class PersonDoubt(PolicyError):
    """Columns may say whose row it is, and it is not certain which, or whether any does."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = tuple(candidates)
        super().__init__([
            "person: it is not certain whose row it is; name the column, or say that every row is another person "
            "(person=shoal.ROWS)",
            *(f"{one.column!r} may be the person: {one.evidence}" for one in candidates),
        ])  # fmt: skip


@dataclass(slots=True)
class Proposal:
    """What to do with a table, and why."""

    family: str
    method: str
    why: str
    people: int
    roles: list[Role]
    stream: dict[str, Any]
    anonymize: dict[str, Any]
    pairs: list[Risk]
    trees: dict[str, str] = field(default_factory=dict)
    """How the tree of a column was found."""
    questions: list[str] = field(default_factory=list)
    """What only a person can decide."""
    ends: dict[str, str] = field(default_factory=dict)
    """What the ends of the ranges of a column give away."""
    missing: str = ""
    """Why rows show what they show of missing values; nothing if no value is missing."""

    @property
    def content(self) -> dict[str, Any]:
        """The sections [stream] and [anonymize] of a policy."""
        return {"stream": self.stream, "anonymize": self.anonymize}

    def columns(self, role: str) -> list[str]:
        """Names of the columns with a role."""
        return [one.column for one in self.roles if one.role == role]


def propose(facts: Mapping[str, Facts], wishes: Wishes) -> Proposal:
    """Propose roles, a method and its parameters; raise PersonDoubt if it is not certain whose row it is.

    Raise PolicyError if a named column does not exist.
    """
    wishes.check(facts)
    given = wishes.open_columns(facts)
    time = stated(wishes.time, "time") or find_time(_without(given, wishes.person))
    found = whose_row(facts, given, None if time is None else time.column)
    person = _person(facts, wishes, found)
    facts = _with_codes(facts, {person.column if person else None, time.column if time else None})
    measure = Measure(facts, person.column if person else None, 2)
    measure.k = wishes.k or wishes.z or _crowd(measure.people)
    return _proposal(TableFacts(facts, wishes, person, found, measure))


def _person(facts: Mapping[str, Facts], wishes: Wishes, found: WhoseRow) -> Role | None:
    """The column of persons; None if rows are counted."""
    if wishes.counts_rows(facts):
        return None
    if wishes.person is not None:
        return Role(wishes.person, "person", "as given")
    if found.candidates and [one.column for one in found.candidates] != [ROWS]:
        raise PersonDoubt(found.candidates)
    if found.person is not None:
        return Role(found.person.column, "person", found.person.evidence, is_sure=found.is_sure)
    if ROWS in facts:  # a policy would take this column for the person
        return Role(ROWS, "person", "its name", is_sure=False)
    return None


def _with_codes(facts: Mapping[str, Facts], taken: set[str | None]) -> dict[str, Facts]:
    """Numbers that are names, such as those of districts, as texts."""
    return {name: as_code(one) if name not in taken and is_code(one) else one for name, one in facts.items()}


def _without(facts: Mapping[str, Facts], name: str | None) -> dict[str, Facts]:
    return {one: fact for one, fact in facts.items() if one != name}


def _crowd(people: int) -> int:
    return 10 if people >= 2000 else 5


def _proposal(table: TableFacts) -> Proposal:
    family, why = _family(table)
    draft = _draft(table, family)
    roles = _all_roles(table, draft.roles)
    stream: dict[str, Any] = {"person": table.person.column if table.person else ROWS}
    if any(one.role == "time" for one in roles) and table.time is not None:
        stream["time"] = table.time.column
    if family == "tuples" and table.wishes.is_live:
        stream["time"] = table.live_time.column
    carried = [one.column for one in roles if one.role == "carry"]
    stream |= {"carry": carried} if carried else {}
    known_to_others = [one.column for one in roles if one.role in ("quasi", "attribute", "time")]
    pairs = [risk for risk in table.measure.pairs(known_to_others)[:3] if risk.unique > _NOBODY]
    return Proposal(
        family, draft.anonymize["method"], why, table.measure.people, roles, stream, draft.anonymize,
        pairs, draft.trees, questions(table, draft, roles, family), draft.ends,
        draft.missing,
    )  # fmt: skip


def _family(table: TableFacts) -> tuple[str, str]:
    """The family of methods, and why."""
    given = table.wishes
    if given.method is not None:
        return _FAMILIES.get(given.method, "tuples"), f"the method {given.method} is given"
    if given.m is not None or given.items is not None:
        return "sets", "m items of a person may be known, so sets are published"
    if given.z is not None or given.attribute is not None:
        return "z", "z people must share a value, so events are published"
    if given.quasi is not None:
        return "tuples", "quasi-identifiers are given, so rows are published"
    more = len(table.others)
    if table.items is not None and more <= 3 and not given.is_live:
        return "sets", f"column {table.items.column!r} holds sets of items"
    if table.person and table.attribute and table.per_person >= 1.5 and given.k is None:
        if table.time is not None and more <= 4 and has_common_values(table, table.person, table.time, table.attribute):
            return "z", "rows say who did what and when, several for each person"
        if table.time is None and more <= 2 and not given.is_live:
            return "sets", "rows say which items a person has, without times"
    if given.k is None and table.sparse and has_results(table):  # its K_s is below k
        return "flexible", f"many values of {table.sparse[0]!r} are rare, and k of them rarely occur together"
    return "tuples", "rows have several columns that together may identify a person"


def _draft(table: TableFacts, family: str) -> Draft:
    if family == "z":
        return events_draft(table)
    if family == "sets":
        if table.wishes.is_live:
            raise PolicyError("methods on sets decide all records at once, so they read files only; name a file")
        return sets_draft(table)
    return flexible_draft(table) if family == "flexible" else tuples_draft(table)


def _all_roles(table: TableFacts, decided: Sequence[Role]) -> list[Role]:
    """The person first, then what the family decided, then all that is dropped."""
    roles = [*([table.person] if table.person else []), *decided]
    roles += [Role(name, "drop", "as given") for name in table.wishes.drop]
    known = {one.column for one in roles}
    return roles + [Role(name, "drop", "in the index" if name in table.index else "not needed by this method")
                    for name in table.facts if name not in known]  # fmt: skip
