"""The result of simulated attacks: how often each succeeded, and what it is compared with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from textwrap import wrap
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_Z95: Final = 1.959963984540054
"""The 97.5% quantile of the normal distribution."""
CLEAR_GAIN: Final = 0.02
"""By how much the lower end of an interval must exceed guessing and the control group to be called a gain."""
_WIDTH: Final = 110
"""Characters of a line with names of attacks."""


OUTSIDE: Final = "people who are not in the data"
NEEDS_TRACE: Final = "it needs the trace, to know which row is whose"
NO_ROW: Final = "people who are not in the data have no row to be found"


class Question(StrEnum):
    """The three questions of the Article 29 Working Party (Opinion 05/2014)."""

    SINGLING_OUT = "singling out"
    LINKING = "linking"
    INFERENCE = "inference"


@dataclass(frozen=True, slots=True)
class Rate:
    """A success rate over n targets, with its 95% confidence interval (Wilson's)."""

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, successes: npt.ArrayLike) -> Rate | None:
        """Average successes, each a probability from 0 to 1; None without any target."""
        found = np.asarray(successes, np.float64)
        return cls.counted(float(found.sum()), len(found)) if len(found) else None

    @classmethod
    def counted(cls, successes: float, n: int) -> Rate:
        """Return the rate of a number of successes among n targets.

        Successes may be sums of probabilities: their variance is lower than that of counts, so the interval is safe.

        >>> rate = Rate.counted(5, 100)
        >>> round(rate.low, 4), rate.value, round(rate.high, 4)
        (0.0215, 0.05, 0.1118)
        """
        share = min(max(successes / n, 0.0), 1.0)
        scale = 1 + _Z95**2 / n
        middle = (share + _Z95**2 / (2 * n)) / scale
        half = _Z95 * math.sqrt(share * (1 - share) / n + _Z95**2 / (4 * n * n)) / scale
        return cls(share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)), n)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {"rate": self.value, "low": self.low, "high": self.high, "n": self.n}


@dataclass(frozen=True, slots=True)
class Attack:
    """One simulated attacker: what they want and know, and how often they succeed."""

    name: str
    question: Question
    wants: str
    """What counts as a success, as one sentence."""
    knows: str
    """What the attacker knows besides the release and the policy."""
    success: Rate | None = None
    """None if the attack does not apply; then `why_not` says why."""
    guess: float | None = None
    """The success rate of guessing without the release."""
    raw: float | None = None
    """The success rate on the raw data: what would happen without any protection."""
    control: float | None = None
    """The success rate against people who are not in the data: what the population teaches, not a leak."""
    control_is: str = ""
    """What the control group is."""
    why_not: str = ""

    @property
    def applies(self) -> bool:
        """Whether the attack could be tried."""
        return self.success is not None

    @property
    def baseline(self) -> float:
        """The larger of guessing and the control group."""
        return max(self.guess or 0.0, self.control or 0.0)

    @property
    def gains(self) -> bool:
        """Whether the release clearly helps: even the lower end of the interval is above all baselines."""
        return self.success is not None and self.success.low > self.baseline + CLEAR_GAIN

    @property
    def has_own_control(self) -> bool:
        """Whether it is compared with something else than people who are not in the data."""
        return self.control is not None and self.control_is not in {"", OUTSIDE, NO_ROW}

    def not_applicable(self, why: str) -> Attack:
        """Return the attack without a rate."""
        return replace(self, why_not=why)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "name": self.name,
            "question": str(self.question),
            "wants": self.wants,
            "knows": self.knows,
            "success": None if self.success is None else self.success.to_dict(),
            "guess": self.guess,
            "raw": self.raw,
            "control": self.control,
            "control_is": self.control_is,
            "has_own_control": self.has_own_control,
            "gains": self.gains,
            "why_not": self.why_not,
        }


@dataclass(frozen=True, slots=True)
class AttackReport:
    """All attacks on one release."""

    method: str
    attacks: tuple[Attack, ...]
    facts: Mapping[str, Any]
    """What the rates refer to: released rows, people, targets, the seed of the draw."""

    def of(self, question: Question) -> tuple[Attack, ...]:
        """Return the attacks that ask one of the three questions."""
        return tuple(attack for attack in self.attacks if attack.question is question)

    def __getitem__(self, name: str) -> Attack:
        return {attack.name: attack for attack in self.attacks}[name]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "method": self.method,
            "facts": dict(self.facts),
            "attacks": [attack.to_dict() for attack in self.attacks],
        }

    def text(self) -> str:
        """Return a summary for people."""
        facts = "; ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in self.facts.items())
        lines = [f"attacks on a release of {self.method}: {facts}"]
        width = max((len(attack.name) for attack in self.attacks), default=0)
        shared = self._shared_reasons()
        for question in Question:
            asked = [attack for attack in self.of(question) if attack.applies or attack.why_not not in shared]
            if asked:
                lines += [f"{question}", f"  {'':<{width}}  success (95% interval)    guess     raw control       n"]
            lines += [_line(attack, width) for attack in asked if attack.applies]
            lines += [f"  {attack.name:<{width}}  does not apply: {attack.why_not}" for attack in asked
                      if not attack.applies]  # fmt: skip
        for reason, names in shared.items():
            lines.append(f"does not apply: {reason}")
            lines += wrap("; ".join(names), _WIDTH, initial_indent="  ", subsequent_indent="  ")
        lines.append("guess: without the release; raw: on the raw data; control: people who are not in the data;")
        lines += [f"control of {attack.name}: {attack.control_is};" for attack in self.attacks
                  if attack.has_own_control]  # fmt: skip
        lines.append("*: clearly above guess and control. What each attacker wants and knows: --json")
        return "\n".join(lines)

    def _shared_reasons(self) -> dict[str, list[str]]:
        """Why several attacks do not apply, and their names."""
        names: dict[str, list[str]] = {}
        for attack in self.attacks:
            if not attack.applies:
                names.setdefault(attack.why_not, []).append(attack.name)
        return {reason: found for reason, found in names.items() if len(found) > 1}


def rated(attack: Attack, success: npt.ArrayLike, guess: npt.ArrayLike, raw: npt.ArrayLike) -> Attack:
    """Return an attack with its rates: the means over targets, over blind guesses, and over targets in the raw data."""
    sides = (np.asarray(side, np.float64) for side in (guess, raw))
    blind, unprotected = (float(side.mean()) if side.size else None for side in sides)
    return replace(attack, success=Rate.of(success), guess=blind, raw=unprotected)


def with_control(attack: Attack) -> Attack:
    """Return an attack that looks for a row with its control group: nobody outside the data has one."""
    if attack.question is Question.INFERENCE or not attack.applies:
        return attack
    return replace(attack, control=0.0, control_is=NO_ROW)


def by_question(attacks: Iterable[Attack]) -> tuple[Attack, ...]:
    """Return attacks in the order of the questions they ask."""
    order = list(Question)
    return tuple(sorted(attacks, key=lambda attack: order.index(attack.question)))


def _line(attack: Attack, width: int) -> str:
    rate = attack.success
    assert rate is not None
    mark = "*" if attack.gains else " "
    interval = f"{rate.value:6.4f}{mark} ({rate.low:.4f}–{rate.high:.4f})"
    cells = " ".join(f"{'–' if side is None else format(side, '.4f'):>7}"
                     for side in (attack.guess, attack.raw, attack.control))  # fmt: skip
    return f"  {attack.name:<{width}}  {interval}  {cells} {rate.n:>7}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
