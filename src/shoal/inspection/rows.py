"""Rows for methods on tuples and for flexible k-anonymity: roles, generalization, and what both cost."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.inspection.columns.derived import find_derived
from shoal.inspection.columns.facts import Facts, texts
from shoal.inspection.columns.risk import suppressed_share
from shoal.inspection.columns.roles import Role, is_sensitive, role_of
from shoal.inspection.draft import Draft
from shoal.inspection.events import waiting_times
from shoal.inspection.generalization.domains import domain_of
from shoal.inspection.generalization.range_ends import choose_grids
from shoal.inspection.generalization.trees import nested, paths_of
from shoal.inspection.table_facts import TableFacts

_MOSTLY_MISSING: Final = 0.35
_MOST_LEAVES: Final = 20_000
_LITTLE: Final = 0.1
"""The share of rows that diversity of a column may cost without a question."""
_MOST_ROWS: Final = 0.5
"""The share of rows that diversity of a column may cost if nobody named it as sensitive."""
_MOST_DIVERSE: Final = 4_000
"""Different values up to which diversity can be counted."""
_WITH_OWN: Final = ("fads", "fast", "castle", "least-loss")
_WITHOUT_OWN: Final = ("k-varp", "iot-anonymization")
"""Methods that merge rows that lack different columns: there `own` is not possible."""
_MOST_SUPPRESSED: Final = 0.1
"""The share of rows that may be suppressed because too few lack the same columns."""


def tuples_draft(table: TableFacts) -> Draft:
    """What a method on tuples needs; raise PolicyError if no column can be generalized."""
    return _Rows(table).tuples()


def flexible_draft(table: TableFacts) -> Draft:
    """What flexible k-anonymity needs; raise PolicyError if no column can be generalized."""
    return _Rows(table).flexible()


def has_results(table: TableFacts) -> bool:
    """Whether flexible k-anonymity can publish results: with numbers as results, a common quasi-identifier is left."""
    return _Rows(table).has_results()


class _Rows:
    """Decides about the columns of rows, and notes what there is to say about them."""

    def __init__(self, table: TableFacts) -> None:
        self.table, self.facts, self.wishes, self.measure = table, table.facts, table.wishes, table.measure
        self.trees: dict[str, str] = {}
        self.costs: dict[str, float] = {}
        self.missing = ""

    def tuples(self) -> Draft:
        k = self.measure.k
        deadline = max(4 * k, min(2000, self.table.rows // 4))
        roles = [self._affordable(one, deadline) for one in self._row_roles()]
        quasi = self._quasi_tables(roles)
        named = [self.facts[name] for name in quasi]
        missing = sum(one.missing for one in named) / max(1, sum(one.rows for one in named))
        method = self.wishes.method or ("k-varp" if missing > _MOSTLY_MISSING else "least-loss")
        waits: dict[str, Any] = {"deadline": deadline, "reuse": deadline // 10}
        if self.wishes.is_live:  # arrivals would never end on a silent stream
            waits = waiting_times(self.facts[self.table.live_time.column], deadline)
        rules: dict[str, Any] = {"method": method, "k": k, **waits, **self._missing(method, list(quasi), deadline)}
        sensitive = [one.column for one in roles if one.role == "sensitive"]
        if sensitive:
            rules |= {"sensitive": sensitive} | ({"l": 2} if self._can_differ(sensitive) else {})
        return self._draft(roles, rules, quasi)

    def flexible(self) -> Draft:
        roles = [self._measurement(one) for one in self._row_roles(is_diverse=False)]
        quasi = self._quasi_tables(roles)
        sparse = [name for name in self.table.sparse if quasi.get(name, {}).get("kind") == "categorical"]
        k = self.measure.k
        rules: dict[str, Any] = {"method": "flexible-k", "k": k, "compare": False}
        rules |= {"sparse": sparse, "k_s": max(2, (k + 1) // 2)} if sparse else {}
        sensitive = [one.column for one in roles if one.role == "sensitive"]
        rules |= {"sensitive": sensitive} if sensitive else {}
        return self._draft(roles, rules, quasi)

    def has_results(self) -> bool:
        names = (name for name in self.table.others if name not in self.table.sparse)
        others = (role_of(self.facts[name], self.measure) for name in names)
        return any(self._measurement(one).role == "quasi" for one in others)

    def _draft(self, roles: list[Role], rules: dict[str, Any], quasi: dict[str, Any]) -> Draft:
        ends = choose_grids(quasi, self.facts, self.measure.k)
        anonymize = {**rules, **self.wishes.settings, "quasi": quasi}
        return Draft(roles, anonymize, self.trees, ends, self.costs, self.missing)

    def _affordable(self, role: Role, deadline: int) -> Role:
        """A sensitive column, unless it is a guess and different values in every group would cost most of the rows."""
        if role.role != "sensitive" or self.facts[role.column].kind == "list":
            return role
        if self.facts[role.column].distinct < 2 and not role.is_sure:
            return Role(role.column, "drop", "all its values are equal", is_sure=False)
        cost = suppressed_share(self.facts[role.column], self.measure.k, deadline)
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
        reason = f"it is sensitive, and {why}; name it as sensitive to publish it"
        return Role(role.column, "drop", reason, is_sure=False)

    def _missing(self, method: str, quasi: list[str], deadline: int) -> dict[str, str]:
        """What rows show of columns that some of them lack: what loses fewest rows of what fills in no value.

        Of generated tables with gaps in 2 to 8 columns, `own` lost less than `hidden` wherever it suppressed less than
        a tenth of the rows, and more wherever it suppressed more. `covered` fills in up to 40% of the cells.
        """
        has_gaps = any(self.facts[name].missing for name in quasi)
        if not has_gaps or "missing" in self.wishes.settings or method not in (*_WITH_OWN, *_WITHOUT_OWN):
            return {}
        if method in _WITHOUT_OWN:
            self.missing = "a column is shown where all rows of a class have it, so that nothing is filled in"
            return {"missing": "hidden"}
        rare = self.measure.of_rare_patterns(quasi, deadline)
        if rare <= _MOST_SUPPRESSED:
            self.missing = f"rows are published with rows that lack the same; about {rare:.1%} are too few for that"
            return {"missing": "own"}
        self.missing = f'a column is shown where all rows of a class have it; "own" would suppress about {rare:.0%}'
        return {"missing": "hidden"}

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

    def _row_roles(self, *, is_diverse: bool = True) -> list[Role]:
        named = (*(self.wishes.quasi or ()), *self.wishes.also_quasi)
        given = {name: Role(name, "quasi", "as given") for name in named}
        given |= {name: Role(name, "sensitive", "as given") for name in self.wishes.sensitive or ()}
        given |= {name: Role(name, "carry", "as given") for name in self.wishes.carry or ()}
        derived = find_derived({name: self.facts[name] for name in self.table.others if name not in given})
        found = []
        time = self.table.time
        if time is not None and time.column not in {*given, *self.table.index} and self.wishes.quasi is None:
            found.append(self._time_of_rows(time))
        for name in self.table.others:
            if name in given:
                found.append(given[name])
            elif self.wishes.quasi is not None:
                found.append(Role(name, "drop", "not among the given quasi-identifiers"))
            else:
                repeated = Role(name, "drop", derived[name]) if name in derived else None
                found.append(self.table.identifier_role(name) or repeated or self._role(name, is_diverse=is_diverse))
        return found

    def _role(self, name: str, *, is_diverse: bool) -> Role:
        """The role of a column; one is generalized and diverse only where all values are known, and not too many."""
        found, one = role_of(self.facts[name], self.measure), self.facts[name]
        if not found.is_generalized or (is_diverse and self.wishes.sees_all and one.distinct < _MOST_DIVERSE):
            return found
        return Role(name, "quasi", found.reason, is_sure=False)

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
            person = [self.table.person] if self.table.person else []
            raise PolicyError([
                "quasi: no column can serve as a quasi-identifier; name one of these, or change it so that it can:",
                *(f"column {one.column!r}: {_taken(one)}" for one in (*person, *roles)),
            ])  # fmt: skip
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

    def _can_differ(self, sensitive: list[str]) -> bool:
        return all(self.facts[name].distinct >= 2 for name in sensitive)


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
