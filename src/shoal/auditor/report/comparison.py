"""Several releases of the same input side by side: a table, a picture, and which one to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from shoal.auditor.report.frame import page_of, table_of
from shoal.auditor.report.svg import draw_points

_RISKS: Final = ("prosecutor", "whole released set", "2 known items")
"""The attack that a setting is chosen by: the first of these that was tried."""
_ERRORS: Final = ("workload", "counts", "counts of heavy hitters", "support of frequent pairs")
"""The error that a setting is chosen by."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One release, described as by `shoal report`."""

    name: str
    method: str
    chosen: Mapping[str, Any]
    content: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the promise is kept: not broken, and it could be checked."""
        return self.state == "kept"

    @property
    def state(self) -> str:
        """What became of the promise, by the verdict of the audit."""
        return str(self.content["audit"]["verdict"]["state"])

    @property
    def risk(self) -> float | None:
        """The upper end of the interval of the chance to find a person; None if no one could be attacked."""
        rate = self._attack("success")
        return None if rate is None else float(rate["high"])

    def _attack(self, side: str) -> Any:
        attacks = {attack["name"]: attack for attack in self.content["attacks"]["attacks"]}
        return next((attacks[name][side] for name in _RISKS if name in attacks), None)

    @property
    def error(self) -> float | None:
        """The error of counts from the release."""
        return self._measure(*_ERRORS)

    @property
    def released(self) -> float | None:
        """The share of the records that are released."""
        return self._measure("released")

    def _measure(self, *names: str) -> float | None:
        found = {measure["name"]: measure["value"] for measure in self.content["utility"]}
        return next((found[name] for name in names if name in found), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the table."""
        columns = self.content.get("columns") or []
        attacks = self.content["attacks"]["attacks"]
        tried = [attack for attack in attacks if attack["success"]]
        delay, classes = self.content["delay"], self.content["classes"]
        return {
            "setting": self.name,
            "method": self.method,
            **self.chosen,
            "promise_kept": self.ok,
            "promise": self.state,
            "released": self.released,
            "loss": sum(column["loss"] for column in columns) / len(columns) if columns else None,
            "error_of_counts": self.error,
            "risk": (self._attack("success") or {}).get("rate"),
            "risk_up_to": self.risk,
            "attacks_that_gain": sum(attack["gains"] for attack in tried),
            "attacks_tried": len(tried),
            **({"smallest_class": classes["smallest"]} if classes["are_promised"] else {}),
            "median_delay": None if delay is None else delay["median"],
            "delay_unit": None if delay is None else delay["unit"],
            **({"checked_by_pycanon": self.content["checked"]} if "checked" in self.content else {}),
        }


_HEAD: Final = {
    "setting": "setting", "promise_kept": "promise", "released": "released", "loss": "loss",
    "error_of_counts": "error of counts", "risk": "found", "risk_up_to": "found, up to",
    "attacks_that_gain": "attacks that gain", "smallest_class": "smallest class", "median_delay": "median delay",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """All settings, and the largest acceptable risk."""

    settings: tuple[Setting, ...]
    max_risk: float

    @property
    def best(self) -> Setting | None:
        """The setting to take; None if no release keeps its promise."""
        kept = [one for one in self.settings if one.ok and one.risk is not None and one.error is not None]
        safe = [one for one in kept if (one.risk or 0.0) <= self.max_risk]
        if safe:
            return min(safe, key=lambda one: (one.error or 0.0, one.risk or 0.0))
        return min(kept, key=lambda one: (one.risk or 0.0, one.error or 0.0)) if kept else None

    @property
    def reason(self) -> str:
        """Why, as one sentence."""
        best = self.best
        if best is None:
            return "No setting can be taken: none keeps its promise and releases anything."
        figures = (
            f"counts from it are off by {best.error:.1%}, and a person is found in at most {best.risk:.2%} of the cases"
        )
        if (best.risk or 0.0) <= self.max_risk:
            return f"Take {best.name}: the smallest error at a risk of at most {self.max_risk:.0%}; {figures}."
        return f"No setting has a risk of at most {self.max_risk:.0%}; {best.name} has the smallest: {figures}."

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        best = self.best
        return {
            "settings": [one.to_dict() for one in self.settings],
            "max_risk": self.max_risk,
            "take": None if best is None else best.name,
            "why": self.reason,
        }

    def text(self) -> str:
        """Return a table for people, and the choice."""
        lines = [list(_HEAD.values()), *(_cells(one.to_dict()) for one in self.settings)]
        widths = [max(len(line[at]) for line in lines) for at in range(len(_HEAD))]
        shown = [
            "  ".join(cell.ljust(width) if not at else cell.rjust(width)
                      for at, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
            for line in lines
        ]  # fmt: skip
        return "\n".join([*shown, "", *self._checks(), self.reason])

    def _checks(self) -> list[str]:
        """What another package measures of the releases, next to the audit of tables; both count rows."""
        found = []
        for one in self.settings:
            if "checked" in one.content:
                sides = [one.content["checked"][side] for side in ("pycanon", "shoal")]
                pairs = ", ".join(f"{what} {value} / {sides[1][what]}" for what, value in sides[0].items())
                found.append(f"{one.name}, by pycanon / shoal: {pairs}")
        return [*found, ""] if found else []

    def html(self) -> str:
        """Return one page that needs nothing else."""
        rows = [[escape(cell) for cell in _cells(one.to_dict())] for one in self.settings]
        best = self.best
        points = [
            (one.name, one.risk, one.error, one is best)
            for one in self.settings if one.risk is not None and one.error is not None
        ]  # fmt: skip
        picture = draw_points(points, "chance to find a person (upper end)", "error of counts", limit=self.max_risk)
        body = (
            f"<p><b>{escape(self.reason)}</b></p>{picture}"
            f"{table_of(list(_HEAD.values()), rows, range(1, len(_HEAD)))}"
            f"{''.join(f'<p>{escape(line)}</p>' for line in self._checks() if line)}"
            '<p class="soft">Found: the success rate of the attack that a setting is chosen by (prosecutor for rows, '
            "the whole released set for z-anonymity, two known items for sets), and the end of its 95% interval. "
            "Attacks that gain: clearly better than guessing and than on people who are not in the data. "
            "<code>shoal report</code> has all of them.</p>"
        )
        return page_of("Settings compared", body)


def _cells(found: Mapping[str, Any]) -> list[str]:
    cells = {name: _cell(found.get(name)) for name in _HEAD}
    cells["promise_kept"] = found["promise"]
    cells["attacks_that_gain"] = f"{found['attacks_that_gain']} of {found['attacks_tried']}"
    if found["median_delay"] is not None:
        cells["median_delay"] = f"{found['median_delay']:,g} {found['delay_unit']}"
    return list(cells.values())


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
