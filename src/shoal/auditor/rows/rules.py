"""Quasi-identifiers as a policy describes them: published as a range of a domain, or as a label of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final, Protocol

from shoal.auditor.hierarchies.hierarchy import Taxonomy, read_tree
from shoal.auditor.policy import is_number
from shoal.auditor.rows.grid import Points
from shoal.errors import PolicyError
from shoal.schema import NANOSECONDS, duration_ns

_LARGEST: Final = 2**53


@dataclass(frozen=True, slots=True)
class NumberRule:
    """A quasi-identifier published as a range within its domain."""

    name: str
    low: float
    high: float
    weight: float
    grid: float | None
    clamps: bool
    is_moment: bool
    """Whether the domain is given as moments; it is kept in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class LabelRule:
    """A quasi-identifier published as a label of its hierarchy."""

    name: str
    tree: Taxonomy
    weight: float


Rule = NumberRule | LabelRule


class RowPromise(Protocol):
    """What the promises of methods that publish rows with quasi-identifiers have in common."""

    @property
    def person(self) -> str:
        """The column of persons; it is not published."""

    @property
    def carry(self) -> tuple[str, ...]:
        """Columns published unchanged."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns, published unchanged."""

    @property
    def quasi(self) -> tuple[Rule, ...]:
        """The quasi-identifiers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be published."""

    @property
    def k(self) -> int:
        """How many people must share a row."""

    @property
    def rule_of_nulls(self) -> str:
        """Which nulls a row may have: ``exact`` (those of its record), ``hidden`` (more), or any."""


def quasi_tables(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of the quasi-identifiers by name."""
    tables = rules.get("quasi")
    if not isinstance(tables, Mapping) or not tables:
        raise PolicyError("[anonymize.quasi]: give a table for every quasi-identifier")
    return {str(name): table for name, table in tables.items()}


def read_rule(name: str, table: Any, folder: Path) -> Rule:
    """Read the table of one quasi-identifier."""
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if kind == "numeric":
        return _number_rule(name, table)
    if kind == "categorical":
        tree = read_tree(table.get("hierarchy"), folder=folder, name=f"hierarchy of {name}")
        return LabelRule(name, tree, weight_of(name, table))
    raise PolicyError(f"quasi-identifier {name}: kind is numeric or categorical")


def _number_rule(name: str, table: Mapping[str, Any]) -> NumberRule:
    low, high = (_bound(name, key, table.get(key)) for key in ("low", "high"))
    if low >= high:
        raise PolicyError(f"quasi-identifier {name}: low must be below high")
    return NumberRule(
        name=name,
        low=low,
        high=high,
        weight=weight_of(name, table),
        grid=_checked_step(name, low, high, _step(name, table.get("grid"))),
        clamps=choice(table, "outside", ("refuse", "clamp"), f"quasi-identifier {name}: ") == "clamp",
        is_moment=not is_number(table["low"]),
    )


def _bound(name: str, key: str, value: Any) -> float:
    """Return a bound as a number; a moment counts in seconds since 1970, and a day begins at midnight UTC."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time(), tzinfo=UTC)
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not is_number(value) or abs(value) >= _LARGEST:
        raise PolicyError(f"quasi-identifier {name}: {key} must be a number below 2^53, or a moment in ISO 8601")
    return float(value)


def _step(name: str, grid: Any) -> float | None:
    if grid is None:
        return None
    step = duration_ns(grid, name=f"grid of {name}") / NANOSECONDS["s"] if isinstance(grid, str) else grid
    if not is_number(step) or step <= 0:
        raise PolicyError(f"quasi-identifier {name}: grid must be a number above 0, or a duration")
    return float(step)


def _checked_step(name: str, low: float, high: float, step: float | None) -> float | None:
    try:
        if step is not None:
            Points.of(low, high, step)
    except ValueError:
        raise PolicyError(f"quasi-identifier {name}: low and grid have too many digits; round them") from None
    return step


def weight_of(name: str, table: Mapping[str, Any]) -> float:
    """Return the weight of a quasi-identifier in the loss."""
    weight = table.get("weight", 1)
    if not is_number(weight) or weight <= 0:
        raise PolicyError(f"quasi-identifier {name}: weight must be a number above 0")
    return float(weight)


def choice(rules: Mapping[str, Any], key: str, choices: tuple[str, ...], where: str = "") -> str:
    """Return one of some words of a policy; the first one if it says nothing."""
    found = rules.get(key, choices[0])
    if found not in choices:
        raise PolicyError(f"{where}{key} is one of {', '.join(choices)}")
    return str(found)
