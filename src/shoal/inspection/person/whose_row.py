"""Whose row it is: the column of persons if names and values show it, or the columns that may be it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shoal.inspection.columns.column_names import says_nothing, words, words_of
from shoal.inspection.columns.facts import Facts
from shoal.inspection.columns.sensitive_names import is_sensitive_name
from shoal.inspection.person.panels import is_period_name, unit_of_panel
from shoal.inspection.person.person_names import Says, is_id_name, is_trait_name, said_by
from shoal.inspection.person.person_values import HANDFUL, Column, columns_of, same_values

_SURE: Final = (Says.PERSON, Says.NUMBER, Says.UNIT, Says.HOST)
"""What a name says if its column is taken for the person without a question, from the most certain on."""
_FEW: Final = 20
"""Fewer values of a name for people are taken for people only if their rows are even or together."""
_SEVERAL: Final = 2
"""Columns that depend on it, from which on a column without a telling name may be the person."""
_CROWD: Final = 5
"""The smallest k that is proposed: fewer people could not be hidden among each other."""
_MOST_MISSING: Final = 0.5
_NAMES: Final = words("name fullname nom nombre nome naam namn navn nimi jmeno imie nazwisko")
_PLACES: Final = words("lat latitude lon lng long longitude region country state city town county postcode zip")
"""What depends on a place and on hardly anything else that has an unknown name."""
_ENDS: Final = words("from to source target sender receiver recipient src dst origin destination ego alter")
"""The two ends of what is between two people."""
_NO_NAMES: Final = words("column1 unnamed0 unnamed rownames rowname rownumber rowid")
"""Above the names of rows, in whatever order they are."""
_MOST_CANDIDATES: Final = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A column that may say whose row it is, and the counts that speak for it; never a value."""

    column: str
    evidence: str


@dataclass(frozen=True, slots=True)
class WhoseRow:
    """What the columns show about whose row it is."""

    person: Candidate | None
    """The column of persons; None: rows are counted, or somebody must say which of the candidates it is."""
    is_sure: bool
    candidates: tuple[Candidate, ...]
    """Columns of which one may be the person, if it is not certain which or whether any."""
    row_numbers: frozenset[str]
    """Columns that number the rows."""
    identifiers: frozenset[str]
    """Columns that stand for somebody, whether or not it is the person."""
    too_few: tuple[str, ...]
    """Columns with the name of a person and a handful of values."""


def whose_row(facts: Mapping[str, Facts], names: Iterable[str], time: str | None) -> WhoseRow:
    """Find the column of persons among those named; `time` is the column that says when, if there is one."""
    return _Search(columns_of(facts), [name for name in names if name != time], time).found()


def _is_name(name: str) -> bool:
    """Whether a column may have names of people: name, short_name; not city_name."""
    own = words_of(name)
    if "".join(own) in _NAMES:
        return True
    rest = [word for word in own if word not in _NAMES]
    return len(rest) < len(own) and said_by(" ".join(rest)) in (Says.NOTHING, Says.PERSON, Says.UNIT)


def _says_person(name: str) -> bool:
    """Whether names are those of people: patient_name, nom du patient."""
    return said_by(" ".join(word for word in words_of(name) if word not in _NAMES)) is Says.PERSON


class _Search:
    """Looks at the names of all columns and at the values of those that may be the person.

    A good kind of name is enough (`_SURE`). Weaker signs, of names and values together, only make candidates.
    """

    def __init__(self, columns: Mapping[str, Column], names: Sequence[str], time: str | None) -> None:
        self.columns, self.time = columns, time
        self.says = {name: Says.NOTHING if _is_name(name) else said_by(name) for name in columns}
        self.row_numbers = frozenset(
            name for place, (name, one) in enumerate(columns.items())
            if self.says[name] not in _SURE and (one.is_row_number or self._names_rows(one, is_first=not place))
        )  # fmt: skip
        self.able = [columns[name] for name in names if name in columns and self._is_able(columns[name])]
        """Columns that may be the person."""
        self.weak = [one for one in self.able if self._is_weak(one)]
        """Those of them with weaker signs."""

    def found(self) -> WhoseRow:
        """The person, or candidates."""
        sure = self._sure()
        candidates: list[Column] = []
        if sure is None:
            candidates = self._tied() or self.weak or self._few() or self._panel_unit()
        chosen = sure or (None if candidates else self._unique_id())
        return WhoseRow(
            None if chosen is None else Candidate(chosen.name, self._evidence(chosen)),
            chosen is not None and self.says[chosen.name] in (Says.PERSON, Says.NUMBER),
            tuple(Candidate(one.name, self._evidence(one)) for one in self._ordered(candidates)[:_MOST_CANDIDATES]),
            self.row_numbers,
            frozenset(one.name for one in (*self.weak, *self.able) if one in self.weak or self._identifies(one)),
            tuple(name for name, one in self.columns.items() if self._is_too_few(name, one)),
        )

    def _names_rows(self, one: Column, *, is_first: bool) -> bool:
        """Whether it has the numbers of rows of which some were left out: all different, in their order."""
        says = self.says[one.name]
        is_named_so = says is Says.ROW if len(one.name) > 1 else is_first  # a column x may also be measured
        is_named_so |= is_first and says is Says.NOTHING and says_nothing(one.name)
        if not is_named_so or one.name == self.time or one.facts.time_unit is not None:
            return False
        has_no_name = "".join(words_of(one.name)) in _NO_NAMES
        return one.is_numbering and (has_no_name or one.is_rising)

    def _few(self) -> list[Column]:
        """Columns with the name of a person and a handful of values, but as many as a crowd: somebody must say."""
        named = [one for name, one in self.columns.items() if self.says[name] is Says.PERSON and one.repeats.is_handful]
        return [one for one in named if one.repeats.distinct >= _CROWD
                and (one.repeats.is_together or is_id_name(one.name))]  # fmt: skip

    def _panel_unit(self) -> list[Column]:
        """What has a row at each of several times, whatever its name: shoal cannot know whether it is somebody's."""
        able = [one for one in self.columns.values()
                if one.name not in self.row_numbers and not is_sensitive_name(one.name)]  # fmt: skip
        unit = unit_of_panel(able, self.time)
        return [] if unit is None else [unit]

    def _is_able(self, one: Column) -> bool:
        says, repeats = self.says[one.name], one.repeats
        if says is Says.OTHER or one.name in self.row_numbers or one.facts.missing > _MOST_MISSING * one.facts.rows:
            return False
        is_like_one = one.can_identify or (says >= Says.ID and one.facts.shape in ("date", "path"))  # 500101/1234
        return is_like_one and (repeats.distinct >= 2 or one.facts.rows == 1) and not repeats.is_handful

    def _is_too_few(self, name: str, one: Column) -> bool:
        return self.says[name] is Says.PERSON and 2 <= one.repeats.distinct < HANDFUL and one.repeats.is_handful

    def _identifies(self, one: Column) -> bool:
        """Whether a column has identifiers of somebody or of what they have, if it is not the person."""
        says = self.says[one.name]
        if says in _SURE:
            return not one.counts_something or is_id_name(one.name) or one.is_counter
        return says in (Says.DEVICE, Says.RELATIVE, Says.ACT, Says.ID) and (is_id_name(one.name) or one.has_digits)

    # ---- names that are enough

    def _sure(self) -> Column | None:
        """The only column with the best kind of name, if its values do not speak against it."""
        for says in _SURE:
            named = self._alike([one for one in self.able if self.says[one.name] is says])
            if named:
                return named[0] if len(named) == 1 and self._fits(named[0]) else None
        return self._with_traits()

    def _tied(self) -> list[Column]:
        """The columns with the best kind of name, if there are several or their values speak against them."""
        for says in _SURE:
            if named := [one for one in self.able if self.says[one.name] is says]:
                return named
        return []

    def _alike(self, named: list[Column]) -> list[Column]:
        """Of columns that identify the same people, the one whose name says most clearly that it identifies."""
        found: list[Column] = []
        for one in sorted(named, key=lambda one: not is_id_name(one.name)):
            if not any(one.determines(other) and other.determines(one) for other in found):
                found.append(one)
        return found

    def _fits(self, one: Column) -> bool:
        """Whether the values may be people's, not counts or categories under the name of a person."""
        repeats = one.repeats
        if self.says[one.name] is Says.HOST:
            return self.time is not None
        if repeats.is_unique or repeats.is_together or repeats.is_even:
            return True
        if one.is_counter:
            return False
        if is_id_name(one.name) or self._dependents(one):
            return True
        return repeats.distinct >= _FEW and not one.counts_something

    def _with_traits(self) -> Column | None:
        """A column with e-mail addresses, or an identifier or name on which sex, age or birth depends."""
        emails = [one for one in self.able if one.facts.shape == "email"]
        able = [one for one in self.able if self.says[one.name] is Says.ID or _is_name(one.name)]
        named = self._alike([*emails, *(one for one in able if self._traits(one))])
        return named[0] if len(named) == 1 else None

    def _unique_id(self) -> Column | None:
        """An identifier of the rows, or a device, of which every row has another: as good as the row itself."""
        named = [one for one in self.able if self.says[one.name] in (Says.ID, Says.DEVICE) and one.repeats.is_unique]
        return next(iter(named), None) or self._unique_name()

    def _unique_name(self) -> Column | None:
        """The only column of names, of people by its own name or by a column of their sex, age or birth."""
        named = [one for one in self.able if _is_name(one.name) and one.repeats.is_unique]
        has_traits = any(is_trait_name(name) for name in self.columns if not _is_name(name))
        of_people = [one for one in named if has_traits or _says_person(one.name)]
        return of_people[0] if len(of_people) == 1 else None

    # ---- values

    def _is_weak(self, one: Column) -> bool:
        """Whether values repeat as a person's may, under a name that does not say so."""
        says, repeats = self.says[one.name], one.repeats
        if repeats.per_value < 1.1 or (one.is_counter and says is not Says.ID):
            return False
        if says is Says.RELATIVE and self._unique_id() is not None:
            return False
        if says in (Says.DEVICE, Says.RELATIVE, Says.ACT):
            return is_id_name(one.name) or one.has_digits
        if says is Says.ID:
            return True
        if _is_name(one.name):
            return True
        if says not in (Says.NOTHING, Says.ROW) or repeats.per_value < 1.5 or is_sensitive_name(one.name):
            return False
        return (
            self._is_panel(one) or self._is_end(one) or self._is_someone_at_times(one) or self._has_periods(one)
            or self._is_key(one)
        )  # fmt: skip

    def _is_key(self, one: Column) -> bool:
        """Whether several other columns depend on it, in whatever order the rows are."""
        is_like_one = one.has_digits and not one.counts_something and one.repeats.distinct >= _FEW
        return is_like_one and len(self._dependents(one)) >= _SEVERAL and not self._is_place(one)

    def _is_panel(self, one: Column) -> bool:
        """Whether the rows of each value are together, and another column depends on it."""
        if not one.repeats.is_together or not (one.has_digits or self._traits(one)):
            return False
        return bool(self._dependents(one)) and not self._is_place(one)

    def _is_end(self, one: Column) -> bool:
        """Whether it is one end of what is between two people: the other has the same values."""
        if one.name.casefold() not in _ENDS:
            return False
        others = (other for name, other in self.columns.items() if name != one.name and name.casefold() in _ENDS)
        return any(same_values(one, other) for other in others)

    def _is_someone_at_times(self, one: Column) -> bool:
        """Whether values of a column without a telling name repeat at many times, with other values each time."""
        if self.time is None or not says_nothing(one.name) or not one.has_digits or self._is_place(one):
            return False
        return not one.counts_something and not one.determines(self.columns[self.time])

    def _has_periods(self, one: Column) -> bool:
        """Whether a column without a telling name and one of periods have most pairs of values once, as in a panel."""
        if not says_nothing(one.name) or not one.has_digits or self._is_place(one):
            return False
        periods = (other for name, other in self.columns.items() if is_period_name(name))
        return any(other is not one and other.repeats.per_value >= 1.5 and one.is_crossed_with(other)
                   for other in periods)  # fmt: skip

    def _is_place(self, one: Column) -> bool:
        found = self._dependents(one)
        return bool(found) and all(_PLACES.intersection(words_of(name)) for name in found)

    def _dependents(self, one: Column) -> list[str]:
        others = [other for other in self.columns.values() if other.name not in self.row_numbers]
        return one.dependents(others)

    def _traits(self, one: Column) -> list[str]:
        return [name for name in self._dependents(one) if is_trait_name(name)]

    # ---- words

    def _ordered(self, candidates: list[Column]) -> list[Column]:
        return sorted(candidates, key=lambda one: (-self.says[one.name], -one.repeats.distinct))

    def _evidence(self, one: Column) -> str:
        repeats = one.repeats
        found = ["its name"] if self.says[one.name] >= Says.ID else []
        if repeats.is_unique:
            return "; ".join([*found, f"{repeats.distinct:,} different ones, one in each row"])
        found.append(f"{repeats.distinct:,} different ones, {repeats.per_value:.1f} rows each")
        if repeats.is_together:
            found[-1] += ", one after another"
        if names := self._dependents(one):
            shown = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            found.append(f"the same in all rows of one: {shown}")
        if self.says[one.name] is Says.ACT:
            found.append("one person may have several")
        return "; ".join(found)
