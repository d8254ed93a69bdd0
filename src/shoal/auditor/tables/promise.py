"""What ``[table]`` of a policy promises about a plain table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.auditor.policy import Policy, is_number, names_of, whole_of
from shoal.errors import PolicyError

_WHERE: Final = "[table] "
_WHOLE: Final = ("k", "m", "l")
_NUMBERS: Final = {"entropy_l": (1, math.inf), "t": (0, 1), "alpha": (0, 1), "beta": (0, math.inf)}
"""The least and the largest bound that makes sense."""
_TEXTS: Final = ("person", "suppressed")
_KEYS: Final = frozenset({
    "quasi", "sensitive", "population", "recursive_l", "t_distance", "presence", *_TEXTS, *_WHOLE, *_NUMBERS
})  # fmt: skip
_OF_SENSITIVE: Final = ("l", "entropy_l", "recursive_l", "t", "alpha", "beta")


@dataclass(frozen=True, slots=True)
class TablePromise:
    """The columns of a table, and the bounds that hold for every class; None: measured, not promised."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    person: str | None = None
    """The column that names people, if it is there; without it every row counts as one person."""
    suppressed: str | None = None
    """Rows whose quasi-identifiers all are this text do not count."""
    population: bool | None = None
    """Whether there is a table of everyone who could be in this one."""
    k: int | None = None
    m: int | None = None
    """k also holds for everyone who knows any m quasi-identifiers."""
    l: int | None = None  # noqa: E741
    entropy_l: float | None = None
    recursive_l: tuple[float, int] | None = None
    """c and l: the most frequent value is rarer than c times all values from the l-th most frequent on."""
    t: float | None = None
    t_distance: str | None = None
    alpha: float | None = None
    beta: float | None = None
    presence: tuple[float, float] | None = None
    """The least and the largest share of a class of the population that may be in the table."""

    @property
    def is_promised(self) -> bool:
        """Whether any bound was given."""
        return any(getattr(self, key) is not None for key in ("k", "presence", *_OF_SENSITIVE))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.quasi, *self.sensitive, *((self.person,) if self.person else ()))


def read_promise(policy: Policy) -> TablePromise:
    """Read and check ``[table]``."""
    section = {key: value for key, value in policy.section("table").items() if value is not None}
    unknown = sorted(set(section) - _KEYS)
    if unknown:
        raise PolicyError(f"{_WHERE}{unknown[0]}: no such key; there are {', '.join(sorted(_KEYS))}")
    quasi, sensitive = names_of(section.get("quasi", ())), names_of(section.get("sensitive", ()))
    for key in section.keys() & {*_TEXTS}:
        _require(isinstance(section[key], str), f"{key}: must be text")
    _check_roles(section, quasi, sensitive)
    given: dict[str, Any] = {key: section[key] for key in (*_TEXTS, "t_distance") if key in section}
    given |= {key: whole_of(section, key, where=_WHERE) for key in _WHOLE if key in section}
    _require(given.get("m", 0) <= len(quasi), f"m: must be at most {len(quasi)}, the number of quasi-identifiers")
    for key in section.keys() & _NUMBERS.keys():
        least, most = _NUMBERS[key]
        limits = f"from {least}" if most == math.inf else f"from {least} to {most}"
        _require(is_number(section[key]) and least <= section[key] <= most, f"{key}: must be a number {limits}")
        given[key] = float(section[key])
    _require(given.get("t_distance", "equal") in ("ordered", "equal"), "t_distance: must be one of ordered, equal")
    return TablePromise(
        quasi,
        sensitive,
        population="population" in section or None,
        recursive_l=_recursive(section.get("recursive_l")),
        presence=_presence(section),
        **given,
    )


def _require(holds: object, sentence: str) -> None:
    if not holds:
        raise PolicyError(f"{_WHERE}{sentence}")


def _check_roles(section: Mapping[str, Any], quasi: tuple[str, ...], sensitive: tuple[str, ...]) -> None:
    _require(quasi, "quasi: name the quasi-identifiers, the columns that others may know")
    names = [*quasi, *sensitive, *([section["person"]] if "person" in section else [])]
    twice = next((name for name in names if names.count(name) > 1), None)
    _require(twice is None, f"column {twice} is named twice; a column has one role")
    idle = next((key for key in _OF_SENSITIVE if key in section and not sensitive), None)
    _require(idle is None, f"{idle}: is about sensitive columns; name them with sensitive = [...]")
    _require("m" not in section or "k" in section, "m: needs k, the number of people who share any m values")


def _recursive(given: Any) -> tuple[float, int] | None:
    if given is None:
        return None
    pair = list(given) if isinstance(given, list | tuple) else []
    is_pair = len(pair) == 2 and is_number(pair[0]) and pair[0] > 0 and type(pair[1]) is int and pair[1] >= 1
    _require(is_pair, "recursive_l: give c and l, such as [2.0, 3]")
    return float(pair[0]), pair[1]


def _presence(section: Mapping[str, Any]) -> tuple[float, float] | None:
    given = section.get("presence")
    if given is None:
        return None
    pair = list(given) if isinstance(given, list | tuple) else []
    is_pair = len(pair) == 2 and all(map(is_number, pair)) and 0 <= pair[0] <= pair[1] <= 1
    _require(is_pair, "presence: give the least and the largest share, such as [0.0, 0.5]")
    _require("population" in section, "presence: needs population, the table of everyone who could be in it")
    return float(pair[0]), float(pair[1])
