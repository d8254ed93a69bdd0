"""The roles of columns, and durations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Final, Literal, Protocol, get_args

from shoal.errors import PolicyError

NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "sec": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
ROWS: Final = "row"
"""In place of the person column: every row counts as one person, unless the input has a column of this name."""
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_LONGEST = 2**62
_READ_EXACTLY: Final = 2**50
"""Decimals up to this length are read back unchanged."""
_BOTH: Final = ("quasi", "sensitive")
"""The roles that a column may have together."""
_MOST_UNITS: Final = 2**51
_SIMPLE: Final = 2**31


def duration_ns(value: object, *, name: str) -> int:
    """Read a duration: text such as ``"90s"``, ``"1h30min"``, or a number of seconds.

    >>> duration_ns("1h30min", name="window") == duration_ns(5400, name="window")
    True
    """
    nanoseconds = _text_ns(value, name) if isinstance(value, str) else _seconds_ns(value, name)
    if nanoseconds > _LONGEST:
        raise PolicyError(f"{name}: longer than 146 years; give a shorter duration")
    return nanoseconds


def format_duration(nanoseconds: int) -> str:
    """Write a duration as policies do: whole seconds in the largest unit that divides them, else decimals.

    >>> [format_duration(duration_ns(text, name="")) for text in ("7d", "1w", "1h", "90min", "61s", "1.5s", "250ms")]
    ['7d', '7d', '1h', '90min', '61s', '1.5s', '250ms']
    """
    if nanoseconds % NANOSECONDS["s"] == 0:
        unit = next((unit for unit in ("d", "h", "min") if nanoseconds and nanoseconds % NANOSECONDS[unit] == 0), "s")
        return f"{nanoseconds // NANOSECONDS[unit]}{unit}"
    unit = next(unit for unit in ("s", "ms", "us", "ns") if nanoseconds >= NANOSECONDS[unit])
    whole, rest = divmod(nanoseconds, NANOSECONDS[unit])
    if nanoseconds > _READ_EXACTLY:
        return f"{whole}s{rest}ns"
    digits = len(str(NANOSECONDS[unit])) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".") + unit


def _seconds_ns(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PolicyError(f'{name}: not a duration; write text such as "30min" or a number of seconds')
    if not 0 <= value < float("inf"):  # NaN fails too
        raise PolicyError(f"{name}: a duration cannot be negative or infinite; give a number of seconds from 0")
    return value * NANOSECONDS["s"] if isinstance(value, int) else round(value * NANOSECONDS["s"])


def _text_ns(text: str, name: str) -> int:
    total, end = 0.0, 0
    exact = 0
    for part in _PART.finditer(text):
        number, unit = part.groups()
        if part.start() != end or unit not in NANOSECONDS:
            break
        end = part.end()
        if "." in number:
            total += float(number) * NANOSECONDS[unit]
        else:
            exact += int(number) * NANOSECONDS[unit]
    if not text or end != len(text):
        units = ", ".join(NANOSECONDS)
        raise PolicyError(f'{name}: not a duration; write for example "90s", "30min" or "1h30min" (units: {units})')
    return exact + round(total)


# ---- roles of columns

Outside = Literal["refuse", "clamp"]


class Tree(Protocol):
    """The hierarchy interface that a schema uses; shoal.Hierarchy implements it."""

    @property
    def is_open(self) -> bool:
        """Whether it accepts values that it does not list."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label, the root first."""

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain values."""


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number that may help to identify a person; it is published as a range.

    Parameters
    ----------
    name
        The column: numbers, or timestamps (then ``low`` and ``high`` may be dates, datetimes or ISO 8601 text and
        ``grid`` a duration).
    low, high
        The domain. Losses are relative to it; a published range is within it.
    weight
        How much a loss here counts.
    grid
        Ranges are widened to multiples of this, counted from ``low``: without it a range ends at two people's values.
        Multiples are exact: with ``low=0`` and ``grid=0.1`` the third is 0.3.
    outside
        What becomes of a value outside the domain: ``"refuse"`` (the row goes to the dead letters) or ``"clamp"``.
    """

    name: str
    low: float
    high: float
    weight: float = 1.0
    grid: float | None = None
    outside: Outside = "refuse"

    def __post_init__(self) -> None:
        problems = [*_name_problems(self.name), *_weight_problems(self.name, self.weight)]
        for key in ("low", "high"):
            object.__setattr__(self, key, _number(self.name, key, getattr(self, key), problems))
        if self.grid is not None:
            object.__setattr__(self, "grid", _step(self.name, self.grid, problems))
        if not problems and self.low >= self.high:
            problems.append(f"column {self.name!r}: low must be below high")
        if not problems and self.grid is not None and (self.high - self.low) / self.grid > 2**50:
            problems.append(f"column {self.name!r}: grid is too fine for the domain")
        if not problems and self.grid is not None and grid_units(self.low, self.high, self.grid) is None:
            problems.append(
                f"column {self.name!r}: grid has too many digits together with low; round low, or choose a coarser grid"
            )
        if self.outside not in get_args(Outside):
            problems.append(f'column {self.name!r}: outside must be "refuse" or "clamp"')
        if problems:
            raise PolicyError(problems)

    def describe(self) -> dict[str, Any]:
        """The role as plain values."""
        return {
            "kind": "numeric", "name": self.name, "low": self.low, "high": self.high, "weight": self.weight,
            "grid": self.grid, "outside": self.outside,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Categorical:
    """A value that may help to identify a person; it is published as a label of its hierarchy.

    Parameters
    ----------
    name
        The column; its values are leaves of the hierarchy.
    hierarchy
        A :class:`shoal.Hierarchy` that lists its values. Left out if an ontology describes them, which only
        :class:`shoal.FlexibleK` accepts.
    weight
        How much a loss here counts.
    """

    name: str
    hierarchy: Tree | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        problems = [*_name_problems(self.name), *_weight_problems(self.name, self.weight)]
        if self.hierarchy is None:
            pass  # the method finds one elsewhere, or reports that it is missing
        elif not hasattr(self.hierarchy, "leaf_counts"):
            problems.append(f"column {self.name!r}: hierarchy must be a shoal.Hierarchy")
        elif self.hierarchy.is_open:
            problems.append(
                f"column {self.name!r}: the hierarchy must list its values; use from_nested, from_csv or flat"
            )
        if problems:
            raise PolicyError(problems)

    def describe(self) -> dict[str, Any]:
        """The role as plain values."""
        tree = self.hierarchy.to_dict() if self.hierarchy is not None else None
        return {"kind": "categorical", "name": self.name, "hierarchy": tree, "weight": self.weight}


Quasi = Numeric | Categorical


@dataclass(frozen=True, slots=True)
class Schema:
    """The roles of the columns of a tuple stream.

    Quasi-identifiers are published generalized, sensitive and carried columns unchanged, and no other column. A column
    may be both: it is published generalized, and diversity is required of its exact values.
    A value may be missing in any quasi-identifier. Carried columns are not measured here: a value that few people have
    singles them out, whatever k is. :func:`shoal.audit` measures them, and ``shoal run`` refuses such columns.

    Examples
    --------
    >>> schema = Schema(person="id", quasi=[Numeric("age", low=0, high=120)], sensitive=["illness"])
    >>> schema.columns
    ('id', 'age', 'illness')
    """

    person: str
    quasi: Sequence[Quasi]
    time: str | None = None
    sensitive: Sequence[str] = ()
    carry: Sequence[str] = ()

    def __post_init__(self) -> None:
        problems = [*_name_problems(self.person, "person")]
        if self.time is not None:
            problems += _name_problems(self.time, "time")
        object.__setattr__(self, "quasi", _listed(self.quasi, Numeric | Categorical))
        if not self.quasi or not all(isinstance(role, Numeric | Categorical) for role in self.quasi):
            problems.append("quasi: give a list of shoal.Numeric and shoal.Categorical, at least one")
        for key in ("sensitive", "carry"):
            names = _listed(getattr(self, key), str)
            object.__setattr__(self, key, names)
            problems += [problem for name in names for problem in _name_problems(name, key)]
        problems += self._repeated() if not problems else []
        if problems:
            raise PolicyError(problems)

    def _repeated(self) -> Iterator[str]:
        # Time may also be a quasi-identifier or carried: that it orders the stream is not a way to leave.
        generalized = [role.name for role in self.quasi]
        names = [self.person, *generalized, *self.sensitive, *self.carry]
        both = {name for name in self.sensitive if name in generalized and names.count(name) == len(_BOTH)}
        for name in sorted(
            {name for name in names if name not in both and (names.count(name) > 1 or self.person == self.time == name)}
        ):
            yield f"column {name!r}: has two roles; a column is person, quasi-identifier, sensitive or carried, once"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns read, each once."""
        names = (
            self.person, *((self.time,) if self.time else ()), *(role.name for role in self.quasi),
            *self.sensitive, *self.carry,
        )  # fmt: skip
        return tuple(dict.fromkeys(names))

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Columns that are published as they are."""
        generalized = {role.name for role in self.quasi}
        return (*(name for name in self.sensitive if name not in generalized), *self.carry)

    def describe(self) -> dict[str, Any]:
        """The schema as plain values."""
        return {
            "person": self.person, "time": self.time, "quasi": [role.describe() for role in self.quasi],
            "sensitive": list(self.sensitive), "carry": list(self.carry),
        }  # fmt: skip


def grid_units(low: float, high: float, grid: float) -> tuple[int, int, int] | None:
    """Units in one, units in ``low`` and units in ``grid``, all whole; None if they do not fit a float.

    Point n of the grid is ``(low_units + n * grid_units) / unit``: whole numbers that a float holds exactly, then one
    division, so it is the float nearest to the true multiple.

    >>> grid_units(-74.25, 0, 0.01)
    (100, -7425, 1)
    """
    for read in (as_printed, _simplest):
        units = whole_units(read(low), read(grid), as_printed(high))
        if units is not None:
            return units
    return None


def whole_units(low: Fraction, step: Fraction, high: Fraction) -> tuple[int, int, int] | None:
    """The result of grid_units for fractions."""
    unit = math.lcm(low.denominator, step.denominator)
    largest = max(abs(low), abs(high)) + step
    if unit >= _MOST_UNITS or largest * unit >= _MOST_UNITS:
        return None
    return unit, int(low * unit), int(step * unit)


def as_printed(number: float) -> Fraction:
    """The number as printed: 0.1 is one tenth."""
    return Fraction(repr(float(number)))


def _simplest(number: float) -> Fraction:
    """The simplest fraction that rounds to the number, so that 1/3 is a third."""
    found = Fraction(number).limit_denominator(_SIMPLE)
    return found if float(found) == number else as_printed(number)


def _listed(given: object, kind: Any) -> tuple[Any, ...]:
    if isinstance(given, kind):
        return (given,)
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else (given,)


def _name_problems(name: object, role: str = "name") -> list[str]:
    return [] if isinstance(name, str) and name else [f"{role}: must be the name of a column"]


def _weight_problems(name: object, weight: object) -> list[str]:
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if is_number and 0 < weight < math.inf:  # type: ignore[operator]
        return []
    return [f"column {name!r}: weight must be a number above 0"]


def _number(name: object, key: str, value: Any, problems: list[str]) -> float:
    """A bound as a number; a moment in seconds."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        if isinstance(moment, datetime):
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        problems.append(f"column {name!r}: {key} must be a number below 2^53, or a moment in ISO 8601")
        return 0.0
    return value


def _step(name: object, grid: Any, problems: list[str]) -> float:
    try:
        value = duration_ns(grid, name="grid") / NANOSECONDS["s"] if isinstance(grid, str) else grid
    except PolicyError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        problems.append(f"column {name!r}: grid must be a number above 0, or a duration")
        return 1.0
    return value
