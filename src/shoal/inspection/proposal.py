"""Roles, a family, a method and its parameters for a table of data about people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.inspection.codes import as_code, is_code, may_be_codes
from shoal.inspection.derived import find_derived
from shoal.inspection.diversity import suppressed_share
from shoal.inspection.domains import domain_of
from shoal.inspection.events import choose_window, order_settings, waiting_times
from shoal.inspection.facts import Facts, as_moments, texts
from shoal.inspection.items import FANOUT, count_items, popular_tree
from shoal.inspection.person_values import columns_of
from shoal.inspection.persons import Candidate, WhoseRow, whose_row
from shoal.inspection.range_ends import choose_grids
from shoal.inspection.risk import Measure, Risk
from shoal.inspection.roles import (
    Role,
    find_attribute,
    find_items,
    find_time,
    is_model,
    is_of_things,
    is_sensitive,
    names_people,
    role_of,
)
from shoal.inspection.trees import nested, paths_of
from shoal.inspection.wishes import ROWS, Wishes

_FAMILIES: Final = {"z-anonymity": "z", "k^m": "sets", "k^m-apriori": "sets", "flexible-k": "flexible"}
_MOSTLY_MISSING: Final = 0.35
_MOST_LEAVES: Final = 20_000
_LITTLE: Final = 0.1
_MOST_ROWS: Final = 0.5
_MOST_DIVERSE: Final = 4_000
"""Different values up to which diversity can be counted."""
_WITH_OWN: Final = ("fads", "fast", "castle", "least-loss")
_WITHOUT_OWN: Final = ("k-varp", "iot-anonymization")
"""Methods that merge rows that lack different columns: there `own` is not possible."""
_MOST_SUPPRESSED: Final = 0.1
"""The share of rows that may be suppressed because too few lack the same columns."""
_FEW_COMMON: Final = 0.1
"""The share of events that z-anonymity would publish, below which rows are generalized instead."""
_AGAIN: Final = 3
"""Rows for each value from which on a column may be what several people did."""


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
    time = _named(wishes.time, "time") or find_time(_without(given, wishes.person))
    found = whose_row(facts, given, None if time is None else time.column)
    person = _person(facts, wishes, found)
    rows = next(iter(facts.values())).rows if facts else 0
    facts = _with_codes(facts, {person.column if person else None, time.column if time else None})
    measure = Measure(facts, person.column if person else None, 2)
    measure.k = wishes.k or wishes.z or _crowd(measure.people)
    return _Proposer(facts, wishes, person, found, measure, rows).proposal()


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


def _named(column: str | None, role: Any) -> Role | None:
    return None if column is None else Role(column, role, "as given")


class _Proposer:
    """Builds the proposal step by step."""

    def __init__(
        self, facts: Mapping[str, Facts], wishes: Wishes, person: Role | None, found: WhoseRow, measure: Measure,
        rows: int,
    ) -> None:  # fmt: skip
        self.facts, self.wishes, self.person, self.measure, self.rows = facts, wishes, person, measure, rows
        self.found = found
        taken = {person.column} if person else set()
        free = {name: one for name, one in wishes.open_columns(facts).items()
                if name not in taken and name not in found.row_numbers}  # fmt: skip
        self.time = _named(wishes.time, "time") or find_time(free)
        if self.time is not None:
            taken.add(self.time.column)
            self.facts = {**facts, self.time.column: as_moments(facts[self.time.column])}
        self.index = wishes.hidden(facts)
        free = {name: one for name, one in free.items() if name not in self.index}
        self.items = _named(wishes.items, "items") or find_items(free)
        self.attribute = _named(wishes.attribute, "attribute") or find_attribute(free, taken) or self._repeating(free)
        self.others = [name for name in facts if name not in taken and name not in {*wishes.drop, *self.index}]
        self.trees: dict[str, str] = {}
        self.ends: dict[str, str] = {}
        self.costs: dict[str, float] = {}
        """What different values of a sensitive column in each group cost, as a share of the rows."""
        self.missing = ""

    @property
    def per_person(self) -> float:
        """Rows for each person."""
        return self.rows / max(self.measure.people, 1)

    def proposal(self) -> Proposal:
        family, why = self._family()
        if family == "sets" and self.wishes.is_live:
            raise PolicyError("methods on sets decide all records at once, so they read files only; name a file")
        builders = {"z": self._events, "sets": self._sets, "flexible": self._flexible, "tuples": self._tuples}
        roles, anonymize = builders[family]()
        dropped = [Role(name, "drop", "as given") for name in self.wishes.drop]
        who = [self.person] if self.person else []
        listed = [*who, *roles, *dropped]
        known = {one.column for one in listed}
        listed += [Role(name, "drop", "in the index" if name in self.index else "not needed by this method")
                   for name in self.facts if name not in known]  # fmt: skip
        stream: dict[str, Any] = {"person": self.person.column if self.person else ROWS}
        if any(one.role == "time" for one in listed) and self.time is not None:
            stream["time"] = self.time.column
        carried = [one.column for one in listed if one.role == "carry"]
        if family == "tuples" and self.wishes.is_live:
            stream["time"] = self._live_time().column
        stream |= {"carry": carried} if carried else {}
        known_to_others = [one.column for one in listed if one.role in ("quasi", "attribute", "time")]
        pairs = self.measure.pairs(known_to_others)[:3]
        return Proposal(
            family, anonymize["method"], why, self.measure.people, listed, stream, anonymize, pairs,
            self.trees, self._questions(listed, family), self.ends, self.missing,
        )  # fmt: skip

    def _family(self) -> tuple[str, str]:
        given = self.wishes
        if given.method is not None:
            return _FAMILIES.get(given.method, "tuples"), f"the method {given.method} is given"
        if given.m is not None or given.items is not None:
            return "sets", "m items of a person may be known, so sets are published"
        if given.z is not None or given.attribute is not None:
            return "z", "z people must share a value, so events are published"
        if given.quasi is not None:
            return "tuples", "quasi-identifiers are given, so rows are published"
        more = len(self.others)
        if self.items is not None and more <= 3 and not given.is_live:
            return "sets", f"column {self.items.column!r} holds sets of items"
        if self.person and self.attribute and self.per_person >= 1.5 and given.k is None:
            if self.time is not None and more <= 4 and self._has_common_values(self.person, self.time, self.attribute):
                return "z", "rows say who did what and when, several for each person"
            if self.time is None and more <= 2 and not given.is_live:
                return "sets", "rows say which items a person has, without times"
        if given.k is None and self._sparse() and self._has_normal():  # its K_s is below k
            return "flexible", f"many values of {self._sparse()[0]!r} are rare, and k of them rarely occur together"
        return "tuples", "rows have several columns that together may identify a person"

    def _has_common_values(self, *columns: Role) -> bool:
        """Whether enough people have the same values within some window, so that z-anonymity would publish any."""
        person, time, attribute = (self.facts[one.column] for one in columns)
        return choose_window(person, time, attribute, z=self._z(), window=self.wishes.window).released >= _FEW_COMMON

    def _z(self) -> int:
        return self.wishes.z or (20 if self.measure.people >= 3000 else 10 if self.measure.people >= 500 else 5)

    def _repeating(self, free: Mapping[str, Facts]) -> Role | None:
        """The only column of things that come again and again with other people, if every row has a time."""
        if self.person is None or self.time is None:
            return None
        columns = columns_of(self.facts)
        person, others = columns[self.person.column], [columns[name] for name in free if name in columns]
        others = [one for one in others if one.name != self.time.column]
        if any(person.determines(one) and one.is_telling for one in others):
            return None  # age, sex and the like: the rows describe people
        found = [one for one in others if is_of_things(one.facts) and one.repeats.per_value >= _AGAIN]
        if len(found) != 1:
            return None
        reason = f"the only column that repeats: {found[0].repeats.distinct:,} different values"
        return Role(found[0].name, "attribute", reason, is_sure=False)

    def _has_normal(self) -> bool:
        """Whether another quasi-identifier is left besides the sparse ones; numbers are then results."""
        others = (role_of(self.facts[name], self.measure) for name in self.others if name not in self._sparse())
        return any(self._measurement(one).role == "quasi" for one in others)

    def _sparse(self) -> list[str]:
        """Columns of models and the like in which at least a tenth of the rows have a rare value."""
        given = {*(self.wishes.sensitive or ()), *(self.wishes.carry or ())}
        named = [name for name in self.others if is_model(self.facts[name]) and name not in given]
        named = [name for name in named if role_of(self.facts[name], self.measure).role == "quasi"]
        return [name for name in named if self.measure.of(name).rare >= 0.1 and self.facts[name].distinct > 20]

    # ---- one family each

    def _events(self) -> tuple[list[Role], dict[str, Any]]:
        attribute, time = self.attribute, self.time
        if attribute is None or time is None or self.person is None:
            found = {"person": self.person, "time": time, "attribute": attribute}
            raise PolicyError([f"{what}: not found; name the column" for what, one in found.items() if one is None])
        columns = [self.facts[name] for name in (self.person.column, time.column, attribute.column)]
        z = self._z()
        window = choose_window(*columns, z=z, window=self.wishes.window).window
        roles = [time, attribute]
        for name in self.others:
            if name != attribute.column:
                roles.append(self._other_column(name))
        rules = {"method": "z-anonymity", "attribute": attribute.column, "z": z, "window": window}
        rules |= {"k": self.wishes.k} if self.wishes.k is not None else {}
        return roles, {**rules, **order_settings(self.facts[time.column]), **self.wishes.settings}

    def _other_column(self, name: str) -> Role:
        """Another column of events: carried if at least k people share each of its values."""
        if name in (self.wishes.carry or ()):
            return Role(name, "carry", "as given")
        hidden = self._hidden(name)
        if hidden is not None:
            return hidden
        one = self.facts[name]
        risk = self.measure.of(name)
        if (
            one.kind in ("text", "whole", "number")
            and not risk.rare
            and one.distinct <= 50
            and one.shape != "set"
            and not names_people(one)
        ):
            return Role(name, "carry", f"few values, shared by many: {risk.words()}", is_sure=False)
        return Role(name, "drop", f"published unchanged it would single people out: {risk.words()}")

    def _sets(self) -> tuple[list[Role], dict[str, Any]]:
        items = self.items or self.attribute
        if items is None:
            raise PolicyError("items: no column of items was found; name it")
        role = Role(items.column, "items", items.reason, is_sure=items.is_sure)
        k = self.wishes.k or self.measure.k
        rules = {"method": self.wishes.method or "k^m", "item": items.column, "k": k, "m": self.wishes.m or 2}
        rules |= {"generalize": self._generalize(items.column, k)}
        return [role], {**rules, **self.wishes.settings}

    def _generalize(self, column: str, k: int) -> dict[str, Any]:
        """A tree over all items; if some may not have been seen, one that the run builds."""
        counts = count_items(self.facts[column], self.facts[self.person.column] if self.person else None)
        if not self.wishes.sees_all or not 2 <= len(counts) <= _MOST_LEAVES:
            return {"balanced": FANOUT}
        self.trees[column] = "items in the order of popularity, so that rare ones are merged with rare ones"
        return {"hierarchy": {"kind": "nested", "tree": popular_tree(counts, k)}}

    def _tuples(self) -> tuple[list[Role], dict[str, Any]]:
        k = self.wishes.k or self.measure.k
        deadline = max(4 * k, min(2000, self.rows // 4))
        roles = [self._affordable(one, k, deadline) for one in self._row_roles()]
        quasi = self._quasi_tables(roles)
        named = [self.facts[name] for name in quasi]
        missing = sum(one.missing for one in named) / max(1, sum(one.rows for one in named))
        method = self.wishes.method or ("k-varp" if missing > _MOSTLY_MISSING else "least-loss")
        waits: dict[str, Any] = {"deadline": deadline, "reuse": deadline // 10}
        if self.wishes.is_live:  # arrivals would never end on a silent stream
            waits = waiting_times(self.facts[self._live_time().column], deadline)
        rules: dict[str, Any] = {"method": method, "k": k, **waits, **self._missing(method, list(quasi), k, deadline)}
        sensitive = [one.column for one in roles if one.role == "sensitive"]
        if sensitive:
            rules |= {"sensitive": sensitive} | ({"l": 2} if self._can_differ(sensitive) else {})
        return roles, {**rules, **self.wishes.settings, "quasi": quasi}

    def _affordable(self, role: Role, k: int, deadline: int) -> Role:
        """A sensitive column, unless it is a guess and different values in every group would cost most of the rows."""
        if role.role != "sensitive" or self.facts[role.column].kind == "list":
            return role
        if self.facts[role.column].distinct < 2 and not role.is_sure:
            return Role(role.column, "drop", "all its values are equal", is_sure=False)
        cost = suppressed_share(self.facts[role.column], k, deadline)
        if cost <= _LITTLE:
            return role
        if role.is_generalized and not is_sensitive(self.facts[role.column]):
            known = self.measure.of_known(role.column).words()
            return Role(role.column, "quasi", f"an attacker may know it; {known}", is_sure=False)
        if role.is_sure or cost <= _MOST_ROWS:
            self.costs[role.column] = cost
            return role
        why = (
            f"rows pending together mostly have one value, so that different ones in each group cost {cost:.0%} of them"
        )
        return Role(
            role.column, "drop", f"it is sensitive, and {why}; name it as sensitive to publish it", is_sure=False
        )

    def _missing(self, method: str, quasi: list[str], k: int, deadline: int) -> dict[str, str]:
        """What rows show of columns that some of them lack: what loses fewest rows of what fills in no value.

        Of generated tables with gaps in 2 to 8 columns, `own` lost less than `hidden` wherever it suppressed less than
        a tenth of the rows, and more wherever it suppressed more. `covered` fills in up to 40% of the cells.
        """
        has_gaps = any(self.facts[name].missing for name in quasi)
        if not has_gaps or "missing" in self.wishes.settings or method not in (*_WITH_OWN, *_WITHOUT_OWN):
            return {}
        if method in _WITHOUT_OWN:
            self.missing = "a column is shown where all rows of a class have it; the default would fill in values"
            return {"missing": "hidden"}
        self.measure.k = k
        rare = self.measure.of_rare_patterns(quasi, deadline)
        if rare <= _MOST_SUPPRESSED:
            self.missing = f"rows are published with rows that lack the same; about {rare:.1%} are too few for that"
            return {"missing": "own"}
        self.missing = f'a column is shown where all rows of a class have it; "own" would suppress about {rare:.0%}'
        return {"missing": "hidden"}

    def _flexible(self) -> tuple[list[Role], dict[str, Any]]:
        roles = [self._measurement(one) for one in self._row_roles(is_diverse=False)]
        quasi = self._quasi_tables(roles)
        sparse = [name for name in self._sparse() if quasi.get(name, {}).get("kind") == "categorical"]
        k = self.wishes.k or self.measure.k
        rules: dict[str, Any] = {"method": "flexible-k", "k": k, "compare": False}
        rules |= {"sparse": sparse, "k_s": max(2, (k + 1) // 2)} if sparse else {}
        sensitive = [one.column for one in roles if one.role == "sensitive"]
        rules |= {"sensitive": sensitive} if sensitive else {}
        return roles, {**rules, **self.wishes.settings, "quasi": quasi}

    def _measurement(self, role: Role) -> Role:
        """In measurements a number that nobody can know beforehand is the result; nothing else is published exactly."""
        one = self.facts[role.column]
        is_result = role.role == "quasi" and not role.is_sure and one.is_number and not self._numbers_people(one)
        reason = "a number that nobody knows beforehand: the result of a measurement"
        return Role(role.column, "sensitive", reason, is_sure=False) if is_result else role

    def _numbers_people(self, one: Facts) -> bool:
        """Whether most people have a whole number of their own, as telephones and cards do."""
        is_whole = pc.all(pc.equal(pc.floor(one.values), one.values), min_count=0).as_py()
        return bool(is_whole) and self.measure.of(one.name).unique > 0.5

    # ---- rows

    def _row_roles(self, *, is_diverse: bool = True) -> list[Role]:
        named = (*(self.wishes.quasi or ()), *self.wishes.also_quasi)
        given = {name: Role(name, "quasi", "as given") for name in named}
        given |= {name: Role(name, "sensitive", "as given") for name in self.wishes.sensitive or ()}
        given |= {name: Role(name, "carry", "as given") for name in self.wishes.carry or ()}
        derived = find_derived({name: self.facts[name] for name in self.others if name not in given})
        found = []
        is_kept = self.time is not None and self.time.column not in {*given, *self.index}
        if self.time is not None and is_kept and self.wishes.quasi is None:
            found.append(self._time_of_rows(self.time))
        for name in self.others:
            if name in given:
                found.append(given[name])
            elif self.wishes.quasi is not None:
                found.append(Role(name, "drop", "not among the given quasi-identifiers"))
            else:
                repeated = Role(name, "drop", derived[name]) if name in derived else None
                found.append(self._hidden(name) or repeated or self._role(name, is_diverse=is_diverse))
        return found

    def _role(self, name: str, *, is_diverse: bool) -> Role:
        """The role of a column; one is generalized and diverse only where all values are known, and not too many."""
        found, one = role_of(self.facts[name], self.measure), self.facts[name]
        if not found.is_generalized or (is_diverse and self.wishes.sees_all and one.distinct < _MOST_DIVERSE):
            return found
        return Role(name, "quasi", found.reason, is_sure=False)

    def _hidden(self, name: str) -> Role | None:
        """The role of a column that numbers the rows or stands for somebody."""
        if name in self.found.row_numbers:
            return Role(name, "drop", "it numbers the rows in their order")
        if name in self.found.identifiers and not is_model(self.facts[name]):
            return Role(name, "drop", "another identifier")
        return None

    def _time_of_rows(self, time: Role) -> Role:
        if time.column == self.wishes.arrival:
            return Role(time.column, "time", "when the broker got the message; not published")
        return Role(time.column, "quasi", f"{time.reason}; published as ranges")

    def _quasi_tables(self, roles: list[Role]) -> dict[str, Any]:
        tables: dict[str, Any] = {}
        for place, role in enumerate(roles):
            if role.role != "quasi" and not role.is_generalized:
                continue
            table, problem = self._quasi_table(role.column)
            if table is not None:
                tables[role.column] = table
            elif role.reason == "as given":
                raise PolicyError(f"column {role.column!r}: cannot be generalized: {problem}")
            else:
                roles[place] = Role(role.column, "drop", str(problem))
        if not tables:
            raise PolicyError([
                "quasi: no column can serve as a quasi-identifier; name one of these, or change it so that it can:",
                *(f"column {one.column!r}: {_taken(one)}" for one in ([self.person] if self.person else []) + roles),
            ])  # fmt: skip
        self.ends = choose_grids(tables, self.facts, self.measure.k)
        return tables

    def _quasi_table(self, name: str) -> tuple[dict[str, Any] | None, str | None]:
        one = self.facts[name]
        if one.kind == "moment" and one.is_converted and not one.time_unit and not self.wishes.reads_moments:
            return None, "it has moments as text; store them as timestamps to publish ranges of them"
        if one.is_number or one.kind == "moment":
            domain = domain_of(one)
            return (domain, None) if domain is not None else (None, _without_a_domain(one))
        if one.kind != "text":
            return None, "it is neither a number, a moment nor text; write it as text"
        values = list(texts(one))
        if len(values) < 2:
            return None, "all its values are equal"
        if len(values) > _MOST_LEAVES:
            return None, f"it has more than {_MOST_LEAVES:,} different texts; describe its hierarchy in a policy"
        paths, words = paths_of(one, values, self.measure.common(name))
        self.trees[name] = words
        return {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": nested(paths)}}, None

    def _live_time(self) -> Role:
        if self.time is None:
            raise PolicyError("time: not found, and a deadline on a live system needs it; name the column")
        return self.time

    def _can_differ(self, sensitive: list[str]) -> bool:
        return all(self.facts[name].distinct >= 2 for name in sensitive)

    def _questions(self, roles: list[Role], family: str) -> list[str]:
        found = []
        if self.wishes.is_live and self.trees:
            found.append("hierarchies have the values of the messages that were looked at; a record with another value "
                         "is refused, so add what may come")  # fmt: skip
        if self.person is None and not self.wishes.counts_rows(self.facts):
            found.append("no column says whose row it is, so rows are counted, not people; if people have several "
                         "rows, name the column (person)")  # fmt: skip
            found.append("is the file about people at all? Prices, earthquakes and tree rings need no anonymity")
        elif self.person is not None and not self.person.is_sure:
            found.append(f"is {self.person.column!r} a person? If it is a device, a household or the number of a row, "
                         "several of them may belong to one person")  # fmt: skip
        found += [f"{name!r} has a handful of values, too few to be the people; if it is the person, no k is kept"
                  for name in self.found.too_few if self.person is None]  # fmt: skip
        found += [f"the labels of {one.column!r} are made of its values; if they name people, give a tree of your own"
                  for one in roles
                  if one.role == "quasi" and one.column in self.trees and self.measure.of(one.column).unique > 0.5
                  and self.facts[one.column].shape in ("words", "free", "set")]  # fmt: skip
        unsure = [one.column for one in roles if (one.role == "quasi" or one.is_generalized) and not one.is_sure]
        if unsure:
            found.append(f"can somebody know {_listed(unsure)} of a person? If not, it may be sensitive or carried")
        found += self._code_questions(roles)
        found += [f"l = 2 suppresses about {cost:.0%} of the rows, because most have the same {name!r}; to keep them, "
                  "drop the column, or leave out l" for name, cost in self.costs.items()]  # fmt: skip
        kept = [one.column for one in roles
                if one.role in ("sensitive", "carry") and not one.is_sure and not one.is_generalized]  # fmt: skip
        if kept:
            instead = "drop it" if family == "z" else "make it a quasi-identifier"
            found.append(f"{_listed(kept)}: published unchanged; if somebody can know it, {instead}")
        return found

    def _code_questions(self, roles: list[Role]) -> list[str]:
        ranges = [one.column for one in roles if one.role == "quasi" and one.column in self.ends]
        codes = [name for name in ranges if may_be_codes(self.facts[name])]
        question = (f"are the numbers of {_listed(codes)} quantities? If they are codes of something else, ranges of "
                    'them say nothing: give a tree, kind = "categorical"')  # fmt: skip
        return [question] if codes else []


def _taken(role: Role) -> str:
    """Why a column is no quasi-identifier."""
    return role.reason if role.role == "drop" else f"taken for {role.role}: {role.reason}"


def _without_a_domain(one: Facts) -> str:
    if one.distinct < 2:
        return "all its values are equal"
    if one.kind == "moment":
        return "none of its times is between 1824 and 2116"
    if pc.any(pc.is_inf(one.values)).as_py():
        return "it has infinite numbers; put numbers or missing values there"
    return "its numbers are too large or too small to be written as ranges"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:6]))
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
