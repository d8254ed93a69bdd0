"""What ``[table]`` of a policy promises about a plain table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.auditor.policy import Policy, is_number, names_of, whole_of
from shoal.errors import PolicyError

_WHERE: Final = "[table] "
_KEYS: Final = frozenset(
    {"quasi", "sensitive", "person", "population", "suppressed", "k", "m", "l", "entropy_l", "recursive_l"}
    | {"t", "t_distance", "alpha", "beta", "presence"}
)
_OF_SENSITIVE: Final = ("l", "entropy_l", "recursive_l", "t", "alpha", "beta")
DISTANCES: Final = ("ordered", "equal")


@dataclass(frozen=True, slots=True)
class TablePromise:
    """The columns of a table, and the bounds that hold for every class; None: measured, not promised."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    person: str | None = None
    """The column that names people, if it is there; without it every row counts as one person."""
    suppressed: str | None = None
    """Rows whose quasi-identifiers all are this text do not count."""
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
    population: bool | None = None
    """Whether there is a table of everyone who could be in this one."""

    @property
    def is_promised(self) -> bool:
        """Whether any bound was given."""
        bounds = (self.k, self.l, self.entropy_l, self.recursive_l, self.t, self.alpha, self.beta, self.presence)
        return any(bound is not None for bound in bounds)

    @property
    def unit(self) -> str:
        """What k counts."""
        return "rows" if self.person is None else "people"

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return tuple(dict.fromkeys((*self.quasi, *self.sensitive, *((self.person,) if self.person else ()))))


def read_promise(policy: Policy) -> TablePromise:
    """Read and check ``[table]``."""
    section = policy.section("table")
    unknown = sorted(set(section) - _KEYS)
    if unknown:
        raise PolicyError(f"{_WHERE}{unknown[0]}: no such key; there are {', '.join(sorted(_KEYS))}")
    quasi, sensitive = names_of(section.get("quasi", ())), names_of(section.get("sensitive", ()))
    if not quasi:
        raise PolicyError(f"{_WHERE}quasi: name the quasi-identifiers, the columns that others may know")
    _check_roles(section, quasi, sensitive)
    return TablePromise(
        quasi,
        sensitive,
        _text(section, "person"),
        _text(section, "suppressed"),
        k=_whole(section, "k"),
        m=_whole(section, "m", most=len(quasi)),
        l=_whole(section, "l"),
        entropy_l=_number(section, "entropy_l", least=1),
        recursive_l=_recursive(section.get("recursive_l")),
        t=_number(section, "t", most=1),
        t_distance=_distance(section),
        alpha=_number(section, "alpha", most=1),
        beta=_number(section, "beta"),
        presence=_presence(section),
        population=section.get("population") is not None or None,
    )


def _check_roles(section: Mapping[str, Any], quasi: tuple[str, ...], sensitive: tuple[str, ...]) -> None:
    names = [*quasi, *sensitive, *([section["person"]] if isinstance(section.get("person"), str) else [])]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PolicyError(f"{_WHERE}column {twice} is named twice; a column has one role")
    idle = next((key for key in _OF_SENSITIVE if section.get(key) is not None and not sensitive), None)
    if idle:
        raise PolicyError(f"{_WHERE}{idle}: is about sensitive columns; name them with sensitive = [...]")
    if section.get("m") is not None and section.get("k") is None:
        raise PolicyError(f"{_WHERE}m: needs k, the number of people who share any m values")


def _text(section: Mapping[str, Any], key: str) -> str | None:
    found = section.get(key)
    if found is not None and not isinstance(found, str):
        raise PolicyError(f"{_WHERE}{key}: must be text")
    return found


def _whole(section: Mapping[str, Any], key: str, most: int | None = None) -> int | None:
    if section.get(key) is None:
        return None
    found = whole_of(section, key, where=_WHERE)
    if most is not None and found > most:
        raise PolicyError(f"{_WHERE}{key}: must be at most {most}, the number of quasi-identifiers")
    return found


def _number(section: Mapping[str, Any], key: str, *, least: float = 0, most: float = math.inf) -> float | None:
    found = section.get(key)
    if found is None:
        return None
    if not is_number(found) or not least <= found <= most:
        limits = f"from {least}" if most == math.inf else f"from {least} to {most}"
        raise PolicyError(f"{_WHERE}{key}: must be a number {limits}")
    return float(found)


def _distance(section: Mapping[str, Any]) -> str | None:
    found = section.get("t_distance")
    if found is not None and found not in DISTANCES:
        raise PolicyError(f"{_WHERE}t_distance: must be one of {', '.join(DISTANCES)}")
    return found


def _recursive(given: Any) -> tuple[float, int] | None:
    if given is None:
        return None
    pair = list(given) if isinstance(given, list | tuple) else []
    if len(pair) != 2 or not is_number(pair[0]) or pair[0] <= 0 or type(pair[1]) is not int or pair[1] < 1:
        raise PolicyError(f"{_WHERE}recursive_l: give c and l, such as [2.0, 3]")
    return float(pair[0]), pair[1]


def _presence(section: Mapping[str, Any]) -> tuple[float, float] | None:
    given = section.get("presence")
    if given is None:
        return None
    pair = list(given) if isinstance(given, list | tuple) else []
    if len(pair) != 2 or not all(map(is_number, pair)) or not 0 <= pair[0] <= pair[1] <= 1:
        raise PolicyError(f"{_WHERE}presence: give the least and the largest share, such as [0.0, 0.5]")
    if section.get("population") is None:
        raise PolicyError(f"{_WHERE}presence: needs population, the table of everyone who could be in it")
    return float(pair[0]), float(pair[1])
