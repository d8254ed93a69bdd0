"""The report of a release by window: counts of people, and released values. No person is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.schema import format_duration

_SECOND: Final = 1_000_000_000
_EARLIEST: Final = -(2**63) + 1
_WORST: Final = 10
_LONGEST_VALUE: Final = 60
WINDOW_COLUMNS: Final = (
    "start", "active", "shown", "k_anonymous", "not_k_anonymous", "unique", "k_anonymous_share", "target_met",
    "released_rows", "largest_set", "average_set",
)  # fmt: skip
"""Of a table with a line a window."""
COST_COLUMNS: Final = (
    "window", "rank", "attribute", "value", "fewer_not_k_anonymous", "people_with_it", "rows_with_it", "windows",
)  # fmt: skip
"""Of a table with a line a value: first of all windows together, then of every window."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A released value, and the effect of removing it from everybody's set."""

    attribute: str
    value: str
    saved: int
    """People not k-anonymous now who would be, or would no longer be shown."""
    holders: int
    """People with the value in their set."""
    rows: int
    """Released rows with the value."""
    windows: int
    """The number of windows in which a person is saved."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "attribute": self.attribute,
            "value": self.value,
            "fewer_not_k_anonymous": self.saved,
            "people_with_it": self.holders,
            "rows_with_it": self.rows,
            "windows": self.windows,
        }


@dataclass(frozen=True, slots=True)
class Window:
    """One epoch of pseudonyms. A person is shown if a row of theirs was released."""

    start_ns: int
    shown: int
    anonymous: int
    """Shown with a set that at least k people of the window have."""
    unique: int
    rows: int
    values: int
    """The sizes of the sets of all people shown, added up."""
    largest_set: int
    active: int | None = None
    """People with a row in the truth; None without a truth."""
    target_met: bool | None = None
    """Whether the target was met; None without a target, or if no one is shown."""
    costs: tuple[Cost, ...] = ()
    """The values that cost most, at most three."""

    @property
    def exposed(self) -> int:
        """People shown who are not k-anonymous."""
        return self.shown - self.anonymous

    @property
    def share(self) -> float | None:
        """The share of k-anonymous people among those shown; None if no one is shown."""
        return self.anonymous / self.shown if self.shown else None

    @property
    def average_set(self) -> float | None:
        """The average size of the sets of people shown; None if no one is shown."""
        return self.values / self.shown if self.shown else None

    @property
    def start(self) -> str:
        """When it begins, as ISO 8601 in UTC."""
        moment = np.datetime64(max(self.start_ns, _EARLIEST), "ns")
        return str(np.datetime_as_string(moment, unit="ns" if self.start_ns % _SECOND else "s")) + "Z"

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "start": self.start,
            "active": self.active,
            "shown": self.shown,
            "k_anonymous": self.anonymous,
            "not_k_anonymous": self.exposed,
            "unique": self.unique,
            "k_anonymous_share": self.share,
            "target_met": self.target_met,
            "released_rows": self.rows,
            "largest_set": self.largest_set,
            "average_set": self.average_set,
        }


@dataclass(frozen=True, slots=True)
class Target:
    """The ``target`` of the policy, and how often it was met."""

    k: int
    p: float
    shown: int
    """Windows with a released row."""
    met: int
    """Windows in which a share p of the people shown is k-anonymous."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {"k": self.k, "p": self.p, "windows_shown": self.shown, "windows_met": self.met}


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Every window of a release, and the values that cost most. A person shown in two windows counts twice."""

    k: int
    k_from: str
    """Where k comes from, as words."""
    rotation_ns: int
    windows: tuple[Window, ...]
    costs: tuple[Cost, ...]
    """Over all windows, at most ten."""
    target: Target | None
    unreadable_rows: int
    """Released rows without a person or a time, which are not counted."""

    def total(self, name: str) -> int:
        """Add up a count over all windows: ``shown``, ``anonymous``, ``exposed``, ``unique``, ``rows``, ``active``."""
        return sum(getattr(window, name) or 0 for window in self.windows)

    @property
    def has_truth(self) -> bool:
        """Whether active people were counted."""
        return any(window.active is not None for window in self.windows)

    @property
    def worst(self) -> list[Window]:
        """The windows with the smallest share of k-anonymous people: at most ten, and none in which everybody is."""
        found = [window for window in self.windows if window.exposed]
        return sorted(found, key=lambda window: (window.share, -window.exposed, window.start_ns))[:_WORST]

    def window_lines(self) -> list[dict[str, Any]]:
        """Return a line for every window, with the keys of WINDOW_COLUMNS."""
        return [window.to_dict() for window in self.windows]

    def cost_lines(self) -> list[dict[str, Any]]:
        """Return lines with the keys of COST_COLUMNS: ``all`` windows together, then each by its start."""
        places = [("all", self.costs), *((window.start, window.costs) for window in self.windows)]
        return [
            {"window": where, "rank": rank, **cost.to_dict()}
            for where, costs in places
            for rank, cost in enumerate(costs, start=1)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "method": "z-anonymity",
            "k": self.k,
            "window_s": self.rotation_ns / _SECOND,
            **self._totals(),
            "target": self.target and self.target.to_dict(),
            "unreadable_rows": self.unreadable_rows,
            "costs": [cost.to_dict() for cost in self.costs],
            "windows": [
                {**window.to_dict(), "costs": [cost.to_dict() for cost in window.costs]} for window in self.windows
            ],
        }

    def _totals(self) -> dict[str, Any]:
        shown = self.total("shown")
        return {
            "active": self.total("active") if self.has_truth else None,
            "shown": shown,
            "k_anonymous": self.total("anonymous"),
            "not_k_anonymous": self.total("exposed"),
            "unique": self.total("unique"),
            "k_anonymous_share": self.total("anonymous") / shown if shown else None,
            "released_rows": self.total("rows"),
        }

    def text(self) -> str:
        """Return a summary for people."""
        return "\n".join([*self._headlines(), *self._worst_lines(), *self._cost_text()])

    def _headlines(self) -> list[str]:
        shown = self.total("shown")
        silent = sum(not window.shown for window in self.windows)
        windows = f"{_counted(len(self.windows), 'window')} of {format_duration(self.rotation_ns)}"
        without = f"; no one is shown in {silent:,}" if silent else ""
        lines = [f"report of z-anonymity: {windows}, k = {self.k} ({self.k_from}){without}"]
        if self.has_truth:
            lines.append(f"  people active      {self.total('active'):>12,}  (counted in every window)")
        lines += [
            f"  people shown       {shown:>12,}" + ("" if self.has_truth else "  (counted in every window)"),
            f"    k-anonymous      {self.total('anonymous'):>12,}  {_share(self.total('anonymous'), shown)}",
            f"    not k-anonymous  {self.total('exposed'):>12,}  {_share(self.total('exposed'), shown)}",
            f"      unique         {self.total('unique'):>12,}  {_share(self.total('unique'), shown)}",
            f"  released rows      {self.total('rows'):>12,}",
        ]
        if self.unreadable_rows:
            lines.append(f"  left out           {self.unreadable_rows:>12,}  rows without a person or a time")
        if self.target is not None:
            lines.append(
                f"  target             {self.target.p:.0%} of the people shown {self.target.k}-anonymous: "
                f"met in {self.target.met:,} of {_counted(self.target.shown, 'window')} with a released row"
            )
        return lines

    def _worst_lines(self) -> list[str]:
        if not self.worst:
            return []
        heads = ("active", "shown", "k-anonymous", "not", "unique", "rows", "largest set", "average")
        lines = ["windows with the smallest share of k-anonymous people"]
        lines.append(f"  {'start':<21}" + "".join(f"{head:>{_width(head)}}" for head in heads))
        for window in self.worst:
            cells = (
                "–" if window.active is None else f"{window.active:,}", f"{window.shown:,}",
                f"{window.anonymous:,} {_share(window.anonymous, window.shown)}", f"{window.exposed:,}",
                f"{window.unique:,}", f"{window.rows:,}", f"{window.largest_set:,}", f"{window.average_set:.2f}",
            )  # fmt: skip
            ends = (f"{cell:>{_width(head)}}" for cell, head in zip(cells, heads, strict=True))
            lines.append(f"  {window.start:<21}" + "".join(ends))
        if not self.has_truth:
            lines.append(
                "  active: people with a record in the window; counted if you give the private input (--truth)"
            )
        return lines

    def _cost_text(self) -> list[str]:
        exposed = self.total("exposed")
        if not self.costs:
            return ["no single value, removed from everybody's set, would help anybody"] if exposed else []
        lines = [
            "values that cost most: people who become k-anonymous if the value is withheld",
            f"  {'people':>12} {'share':>6} {'windows':>8} {'people with it':>16} {'rows with it':>14}",
        ]
        lines += [
            f"  {cost.saved:>12,} {_share(cost.saved, exposed)}"
            f" {cost.windows:>8,} {cost.holders:>16,} {cost.rows:>14,}   {cost.attribute} = {_printable(cost.value)}"
            for cost in self.costs
        ]
        return lines


def _width(head: str) -> int:
    return max(len(head), 7) + (5 if head == "k-anonymous" else 2)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:>6.1%}" if whole else "     –"


def _printable(value: str) -> str:
    """Return a value for a terminal: long ones are cut, control characters are escaped."""
    shown = value if value.isprintable() else ascii(value)
    return shown if len(shown) <= _LONGEST_VALUE else shown[: _LONGEST_VALUE - 1] + "…"
