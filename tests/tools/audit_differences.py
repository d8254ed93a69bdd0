"""What differs between two answers of the auditor, and the differences of many cases in lines to read.

Compared are the verdict, of every code its severities, counts and rows, the number of checks that were not possible,
every metric, every figure of an attack or a window, and the type of an error. Not compared: sentences (`_SENTENCES`,
and messages of errors), and digits of a fraction after the twelfth, as sums may be taken in another order. No answer of
the auditor has a duration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tests.golden.fingerprints import rounded

_SENTENCES = {"sentence", "wants", "knows", "control_is", "why_not"}
_DERIVED = {"verdict"}
"""Made from the rest of the answer, or sentences."""
_EXAMPLES = 3
_WIDTH = 160


@dataclass(frozen=True)
class Difference:
    """One fact of a case that is another than before; None where there is none."""

    case: str
    fact: str
    before: str | None
    now: str | None

    @property
    def kind(self) -> str:
        """Whether the fact is gone, new or changed."""
        return "new" if self.before is None else "gone" if self.now is None else "changed"


def differences(case: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Every fact that differs between two answers."""
    old, new = facts(before), facts(now)
    return [
        Difference(case, fact, old.get(fact), new.get(fact))
        for fact in sorted({*old, *new})
        if old.get(fact) != new.get(fact)
    ]


def facts(answer: Mapping[str, Any]) -> dict[str, str]:
    """What an answer says, by name."""
    if "report" not in answer:
        return {"error": str(answer["error"])}
    report = {name: part for name, part in answer["report"].items() if name not in _DERIVED}
    found: dict[str, list[str]] = {}
    for one in report.pop("findings", ()):
        rows = f", rows {' '.join(map(str, one['rows']))}" if one["rows"] else ""
        found.setdefault(f"finding {one['code']}", []).append(f"{one['severity']}, count {one['count']}{rows}")
    if "ok" in report:
        found["verdict"] = ["nothing broken" if report.pop("ok") else "promise broken"]
    if "not_checked" in report:
        found["checks not possible"] = [str(len(report.pop("not_checked")))]
    return {name: "; ".join(sorted(values)) for name, values in found.items()} | dict(_leaves("", report))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every value inside, by its path; parts of a list by their names if they have one, else by their places."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            if key not in _SENTENCES:
                yield from _leaves(f"{name}.{key}" if name else key, inner)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for place, inner in enumerate(value):
            own = inner.get("name", f"[{place}]") if isinstance(inner, dict) else f"[{place}]"
            yield from _leaves(f"{name}.{own}", inner)
    else:
        yield name, json.dumps(rounded(value))


def described(found: Iterable[Difference]) -> Iterator[str]:
    """Lines: each code or metric, and below it how many cases lost, gained or changed it, with some of them."""
    by_group = sorted(found, key=lambda one: (_group(one), one.case))
    for (fact, kind), group in groupby(by_group, key=_group):
        same = list(group)
        yield f"{fact}: {kind} in {len(same):,} case{'s' if len(same) > 1 else ''}"
        for one in same[:_EXAMPLES]:
            change = " -> ".join(value for value in (one.before, one.now) if value is not None)
            yield f"    {one.case}: {change if len(change) <= _WIDTH else change[:_WIDTH] + ' …'}"
        if len(same) > _EXAMPLES:
            yield f"    … and {len(same) - _EXAMPLES:,} more"


def _group(one: Difference) -> tuple[str, str]:
    return re.sub(r"\[\d+\]", "[]", one.fact), one.kind
