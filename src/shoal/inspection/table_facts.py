"""What is known of a table before a method is chosen: who, when and what, by name, by value or as stated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.inspection.columns.facts import Facts, as_moments
from shoal.inspection.columns.risk import Measure
from shoal.inspection.columns.roles import Role, find_attribute, find_items, find_time, is_model, is_of_things, role_of
from shoal.inspection.person.person_values import columns_of
from shoal.inspection.person.whose_row import WhoseRow
from shoal.inspection.wishes import Wishes

_AGAIN: Final = 3
"""Rows for each value from which on a column may be what several people did."""
_MANY_RARE: Final = 0.1
"""The share of rows with a rare value from which on a column of models is sparse."""
_MANY_MODELS: Final = 20


class TableFacts:
    """The columns, what the user states of them, and those that say who, when and what people did or have."""

    def __init__(
        self, facts: Mapping[str, Facts], wishes: Wishes, person: Role | None, whose: WhoseRow, measure: Measure
    ) -> None:
        self.wishes, self.person, self.whose, self.measure = wishes, person, whose, measure
        taken = {person.column} if person else set()
        free = {name: one for name, one in wishes.open_columns(facts).items()
                if name not in taken and name not in whose.row_numbers}  # fmt: skip
        self.facts = facts
        self.time = stated(wishes.time, "time") or find_time(free)
        if self.time is not None:
            taken.add(self.time.column)
            self.facts = {**facts, self.time.column: as_moments(facts[self.time.column])}
        self.index = wishes.hidden(facts)
        free = {name: one for name, one in free.items() if name not in self.index}
        self.items = stated(wishes.items, "items") or find_items(free)
        self.attribute = stated(wishes.attribute, "attribute") or find_attribute(free, taken) or self._repeating(free)
        self.others = [name for name in facts if name not in taken and name not in {*wishes.drop, *self.index}]
        """Columns that may be published, but for the person and the time."""

    @property
    def rows(self) -> int:
        """All rows."""
        return next(iter(self.facts.values())).rows if self.facts else 0

    @property
    def per_person(self) -> float:
        """Rows for each person."""
        return self.rows / max(self.measure.people, 1)

    @property
    def live_time(self) -> Role:
        """The column that says when, which a deadline on a live system needs."""
        if self.time is None:
            raise PolicyError("time: not found, and a deadline on a live system needs it; name the column")
        return self.time

    @property
    def z(self) -> int:
        """How many people must share a value of an event."""
        return self.wishes.z or (20 if self.measure.people >= 3000 else 10 if self.measure.people >= 500 else 5)

    @cached_property
    def sparse(self) -> list[str]:
        """Columns of models and the like in which at least a tenth of the rows have a rare value."""
        given = {*(self.wishes.sensitive or ()), *(self.wishes.carry or ())}
        named = [name for name in self.others if is_model(self.facts[name]) and name not in given]
        named = [name for name in named if role_of(self.facts[name], self.measure).role == "quasi"]
        return [name for name in named
                if self.measure.of(name).rare >= _MANY_RARE and self.facts[name].distinct > _MANY_MODELS]  # fmt: skip

    def identifier_role(self, name: str) -> Role | None:
        """The role of a column that numbers the rows or stands for somebody; None for other columns."""
        if name in self.whose.row_numbers:
            return Role(name, "drop", "it numbers the rows in their order")
        if name in self.whose.identifiers and not is_model(self.facts[name]):
            return Role(name, "drop", "another identifier")
        return None

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


def stated(column: str | None, role: Any) -> Role | None:
    """The role of a column that the user names."""
    return None if column is None else Role(column, role, "as given")
