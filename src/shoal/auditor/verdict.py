"""The verdict of an audit: one sentence, and the reasons for it. Everything that shows an audit shows this.

**The main promise** is the one about crowds, because nothing else hides a person. It is counted:

- z-anonymity: if the people behind every published value were counted, which needs the truth (and, where values are
  generalized, the trace);
- tuples and flexible k: if the different people of every class were counted, which needs the truth and the trace (the
  truth alone where nobody has two records); without them rows are counted, of which there are at least as many;
- sets: if sets of labels were counted in the release; with the truth, or where k or sigma differ by size, if sets of
  items were;
- a plain table: if anything is promised, and the table has a row.

A policy whose person is "row", and a table without a person, promise k rows: counting rows is enough, and the verdict
says "rows, not people".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from shoal.auditor.attacks.outcome import Attack, AttackReport
from shoal.auditor.checks import advice_of
from shoal.auditor.findings import ROWS, AuditReport, Finding, Severity
from shoal.auditor.policy import METHODS, Policy

_UNCHECKED: Final = "unchecked-promise"
_WORST: Final = ("identifi", "pseudonym", "hidden-value", "below-", "few-carriers", "sigma", "above-", "stands-out")
"""Parts of codes, worst first; all others are behind them; equally bad ones by their counts."""
_NAMED: Final = 3
"""Codes that the sentence names."""
_RESIDUAL: Final = "The residual rule"
_WITHOUT: Final = {
    "No row was checked": "the release lacks columns",
    _RESIDUAL: "without the trace nobody knows who counts for a generalized value",
    "K_s was not computed": "without the input K_s is not known",
    "Nothing is promised": "nothing is promised",
}
"""How a sentence in `not_checked` begins that leaves the main promise uncounted, and why."""
_ITEMS: Final = (
    "sets of labels were counted, not of what people have: that takes the input and which items a label covers"
)
_SIGMA: Final = {"k^m": 0.99}
"""Shares that methods promise by default."""
_ATTACKED: Final = "The promise does not cover what this attacker knows: publish less or coarser, or accept the risk."


class State(StrEnum):
    """What became of the promise."""

    KEPT = "kept"
    BROKEN = "broken"
    UNCHECKED = "could not be checked"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict: a finding, an attack, or a check that was not possible."""

    kind: str
    """A severity, "attack" or "not checked"."""
    sentence: str
    code: str = ""
    count: int = 0
    advice: str = ""
    rows: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {"kind": self.kind, "code": self.code, "count": self.count, "sentence": self.sentence,
                "advice": self.advice, "rows": list(self.rows)}  # fmt: skip

    def lines(self) -> list[str]:
        """Return a line for people, and one that says what to do."""
        if not self.code:
            return [f"{self.kind}: {self.sentence}"]
        where = ", ".join(map(str, self.rows)) + (", …" if self.count > len(self.rows) else "")
        more = f" [released rows {where}]" if self.rows else ""
        found = f"{self.kind} {self.code} ({self.count:,}): {self.sentence}{more}"
        return [found, f"  what to do: {self.advice}"] if self.advice else [found]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit, and attacks if there were any, say about a release."""

    state: State
    why: str
    """What breaks the promise, or why it could not be checked."""
    counted: str
    """What crowds were counted of: people, or rows, not people."""
    smallest: int | None
    """The smallest crowd; None if there is none."""
    reasons: tuple[Reason, ...]
    """Worst first."""
    not_checked: tuple[str, ...]
    strongest: Attack | None = None
    """The attack that surely gains most over guessing, by the lower end of its interval; None if none gains."""
    tried: int = 0
    gaining: int = 0
    """Attacks that were tried, and those that gain."""
    is_of_rows: bool = False
    """Whether k rows are promised, which may be of fewer people."""
    is_empty: bool = False
    """Whether nothing was published."""

    @property
    def sentence(self) -> str:
        """The verdict as one sentence."""
        of_rows = f" for {ROWS}" if self.is_of_rows and self.state is not State.UNCHECKED else ""
        words = f"promise {self.state}{of_rows}"
        if self.state is State.KEPT:
            words += " in what could be checked" if self.not_checked else ""
            words += "; nothing was published" if self.is_empty else ""
        else:
            words += f": {self.why}"
        one, several = ("row", "rows") if self.counted == ROWS else ("person", "people")
        if self.smallest is not None:
            words += f"; the smallest crowd has {self.smallest:,} {one if self.smallest == 1 else several}"
        fewer = next((reason for reason in self.reasons if reason.code == "rows-not-people"), None)
        words += "" if fewer is None else f", but {fewer.count:,} rows have fewer people behind them ({fewer.code})"
        if self.strongest is not None:
            join = ", but " if self.state is State.KEPT else "; "
            words += f"{join}{in_words(self.strongest)}"
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "state": str(self.state),
            "sentence": self.sentence,
            "counted": self.counted,
            "smallest_crowd": self.smallest,
            "strongest_attack": None if self.strongest is None else _attack_facts(self.strongest),
            "attacks_tried": self.tried,
            "attacks_that_gain": self.gaining,
            "reasons": [reason.to_dict() for reason in self.reasons],
        }


def verdict_of(report: AuditReport, attacks: AttackReport | None = None) -> Verdict:
    """Say what an audit found, and what simulated attackers learn from the same release."""
    tried = [] if attacks is None else [attack for attack in attacks.attacks if attack.applies]
    gaining = [attack for attack in tried if attack.gains]
    broken, gap = _broken(report), _gap(report)
    return Verdict(
        state=State.BROKEN if broken else State.UNCHECKED if gap else State.KEPT,
        why=broken or gap,
        counted=_counted(report),
        smallest=_smallest(report),
        reasons=_reasons(report, gaining),
        not_checked=report.not_checked,
        strongest=max(gaining, key=_sure_gain, default=None),
        tried=len(tried),
        gaining=len(gaining),
        is_of_rows=report.counts_rows,
        is_empty=_is_empty(report),
    )


def in_words(attack: Attack) -> str:
    """Say how often an attack succeeds, and how often guessing does."""
    return f"the attack “{attack.name}” is {_right(attack)}, where guessing is right about {_share(attack.baseline)}"


def gap_of(policy: Policy, *, has_truth: bool) -> str:
    """Why the main promise of a policy cannot be counted, because it has none or lacks the truth; else empty."""
    rules = policy.section("anonymize")
    method = str(rules.get("method"))
    if rules.get("missing") == "paper" and method != "iot-anonymization":
        return 'nothing is promised with missing = "paper"'
    others = ("l", "entropy_l", "t", "combine", "target")
    crowd = next((key for key in ("k", "z") if _all_ones(rules.get(key))), None)
    if crowd and not any(rules.get(key) for key in others):
        return f"{crowd} = 1 promises nothing"
    sigma, k = rules.get("sigma", _SIGMA.get(method, 1)), rules.get("k")
    is_even = sigma in (1, [1]) and not (isinstance(k, list) and len({*k}) > 1)
    return _ITEMS if METHODS.get(method) == "sets" and not has_truth and not is_even else ""


def _all_ones(given: Any) -> bool:
    return given == 1 or (isinstance(given, list) and {*given} == {1})


# ---- the parts of a verdict


def _broken(report: AuditReport) -> str:
    """What breaks the promise: the first codes, with how often."""
    found: dict[str, int] = {}
    for one in _worst_first(report):
        found[one.code] = found.get(one.code, 0) + one.count
    named = [f"{code} ({count:,})" for code, count in list(found.items())[:_NAMED]]
    return ", ".join(named) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")


def _worst_first(report: AuditReport) -> list[Finding]:
    """The broken promises: first those that name people, then those about crowds."""
    broken = [one for one in report.violations if one.code != _UNCHECKED]
    return sorted(broken, key=lambda one: (_rank(one.code), *_by_count(one)))


def _rank(code: str) -> int:
    """How bad a code is; 0 is worst."""
    return next((at for at, worst in enumerate(_WORST) if worst in code), len(_WORST))


def _by_count(finding: Finding) -> tuple[int, str, str]:
    """What sorts findings: most first, and then in an order that does not depend on how rows were divided."""
    return -finding.count, finding.code, finding.sentence


def _gap(report: AuditReport) -> str:
    """Why the main promise was not counted; empty if it was."""
    codes = {finding.code for finding in report.findings}
    if _UNCHECKED in codes:
        return "the evidence that was given does not show it"
    if report.gap:
        return report.gap
    if "no-rows" in codes:
        return "the release has no row"
    gaps = [one for one in report.not_checked if not (_is_empty(report) and one.startswith(_RESIDUAL))]
    named = (why for begin, why in _WITHOUT.items() for one in gaps if one.startswith(begin))
    return next(named, _UNCOUNTED.get(METHODS.get(report.method, report.method), _uncounted_rows)(report))


def _is_empty(report: AuditReport) -> bool:
    return bool(report.metrics.get("released_rows", report.metrics.get("released_records")) == 0)


def _uncounted_rows(report: AuditReport) -> str:
    is_counted = report.metrics.get("counted_in_classes") == "people" or (
        report.counts_rows and "counted_in_classes" in report.metrics
    )
    return "" if is_counted else f"{ROWS}, were counted: it takes the input and the trace to know whose rows they are"


def _uncounted_sets(report: AuditReport) -> str:
    metrics = report.metrics
    if "records" in metrics and not metrics.get("released_records"):
        return ""
    counted = "risk_after_sets_of_" if "records" in metrics else "released_sets_of_"
    return "" if any(name.startswith(counted) for name in metrics) else _ITEMS


def _uncounted_values(report: AuditReport) -> str:
    return "" if "smallest_crowd" in report.metrics else "it takes the input to count the people behind values"


_UNCOUNTED: Final[dict[str, Callable[[AuditReport], str]]] = {
    "z": _uncounted_values,
    "tuples": _uncounted_rows,
    "flexible": _uncounted_rows,
    "sets": _uncounted_sets,
    "table": lambda _: "",
}
"""By family: why the main promise was not counted, from the metrics; empty if it was."""


def _counted(report: AuditReport) -> str:
    are_rows = report.counts_rows or str(report.metrics.get("counted_in_classes", "people")).startswith("rows")
    return ROWS if are_rows else "people"


def _smallest(report: AuditReport) -> int | None:
    crowds = report.metrics.get("smallest_crowd")
    if isinstance(crowds, Mapping):
        return min((one for one in crowds.values() if one is not None), default=None)
    if METHODS.get(report.method) == "z":
        return None  # what smallest_k counts then are pseudonyms
    groups = report.metrics.get("groups")  # of flexible k: by all quasi-identifiers, of which K_s is promised
    sizes = [report.metrics.get("smallest_k"), groups.get("smallest") if isinstance(groups, Mapping) else None]
    return min((int(one) for one in sizes if one is not None), default=None)


def _reasons(report: AuditReport, gaining: list[Attack]) -> tuple[Reason, ...]:
    """Broken promises, what could not be proved, attacks, warnings, gaps, notes."""
    method = report.method
    broken = [_reason(one, method) for one in _worst_first(report)]
    unproved = [_reason(one, method) for one in report.violations if one.code == _UNCHECKED]
    attacks = [_attacked(one) for one in sorted(gaining, key=_sure_gain, reverse=True)]
    warnings = [_reason(one, method) for one in sorted(report.warnings, key=_by_count)]
    gaps = [Reason("not checked", one) for one in report.not_checked]
    infos = [one for one in report.findings if one.severity is Severity.INFO]
    notes = [_reason(one, method) for one in sorted(infos, key=_by_count)]
    return (*broken, *unproved, *attacks, *warnings, *gaps, *notes)


def _attacked(attack: Attack) -> Reason:
    assert attack.success is not None, "an attack that gains was tried"
    right = f"{_right(attack).capitalize()}, guessing about {_share(attack.baseline)}."
    return Reason("attack", f"{right} {attack.wants} Knows: {attack.knows}.", attack.name, attack.success.n, _ATTACKED)


def _reason(finding: Finding, method: str) -> Reason:
    advice = advice_of(finding.code, method)
    return Reason(str(finding.severity), finding.sentence, finding.code, finding.count, advice, finding.rows)


def _gain(attack: Attack) -> float:
    return 0.0 if attack.success is None else attack.success.value - attack.baseline


def _sure_gain(attack: Attack) -> float:
    """The gain at the lower end of the interval: success on one person alone proves little."""
    return 0.0 if attack.success is None else attack.success.low - attack.baseline


def _attack_facts(attack: Attack) -> dict[str, Any]:
    assert attack.success is not None
    return {"name": attack.name, "success": attack.success.to_dict(), "guess": attack.baseline,
            "gain": _gain(attack), "people": attack.success.n}  # fmt: skip


def _right(attack: Attack) -> str:
    rate = attack.success
    assert rate is not None, "an attack that gains was tried"
    return f"right about {_share(rate.value)} of {rate.n:,} {'person' if rate.n == 1 else 'people'}"


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.001 or value == 0 else "less than 0.1%"
