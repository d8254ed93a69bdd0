"""Collect everything a privacy officer signs: promise, audit, attacks, utility, distributions, and how to repeat it."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from shoal.auditor.attacks.attack import attack_rows, read_rows, refuse_control
from shoal.auditor.attacks.classes import RowEvidence
from shoal.auditor.attacks.naive_bayes import Spread
from shoal.auditor.attacks.promise import has_quasi_identifiers
from shoal.auditor.attacks.released_sets import attack_sets, read_set_evidence
from shoal.auditor.attacks.settings import Progress, Settings
from shoal.auditor.attacks.z.attacks import attack_stream
from shoal.auditor.attacks.z.evidence import StreamEvidence, read_stream_evidence
from shoal.auditor.audit import audit
from shoal.auditor.digests import checksum, version_of
from shoal.auditor.policy import METHODS, Policy, read_policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.files import read
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.paths import Format
from shoal.auditor.report.page import render
from shoal.auditor.report.windows import report_windows
from shoal.auditor.report.words import promise_in_words
from shoal.auditor.rows.attributes import Labels, Spans
from shoal.auditor.sets.promise import read_set_promise
from shoal.auditor.utility.rows import marginal_shares, measure_rows
from shoal.auditor.utility.sets import measure_sets
from shoal.auditor.utility.streams import measure_stream
from shoal.auditor.utility.workload import Count, measure_workload, read_workload
from shoal.auditor.verdict import Verdict, verdict_of
from shoal.errors import InputError, PolicyError

_VALUES: Final = 10
"""How many values of a column are shown; the rest is one."""
_FEWEST: Final = 20
"""Groups of fewer records are not reported by themselves."""
_WORST: Final = 10
_BINS: Final = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """The content of the report; the page and the JSON show the same."""

    content: dict[str, Any]
    verdict: Verdict
    """What the audit and the attacks say; `content` has it, too."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return self.content

    def html(self) -> str:
        """Return one page that needs nothing else: no network, no other file."""
        return render(self.content)


def report_evidence(
    release: Any,
    truth: Any,
    policy: Any,
    *,
    trace: Any = None,
    control: Any = None,
    targets: int = 1000,
    seed: int = 1,
    workload: Any = None,
    max_memory: int | str | None = None,
    progress: Progress | None = None,
) -> EvidenceReport:
    """Audit and attack a release, measure its utility, and describe it; parameters as for `shoal.attack`.

    ``workload`` names the counts that matter: a TOML or JSON file, or its content (``{"count": [{"where": …}]}``).
    """
    counts = read_workload(workload)
    if truth is None:
        raise InputError("truth: the report needs the private input, to know what was changed and who was right")
    settings = Settings(None, targets, seed, progress or (lambda _: None))
    written = read_policy(policy)
    settings.progress("audit")
    judged = audit(release, truth, trace, policy, max_memory=max_memory)
    with limited(max_memory):
        method = str(written.section("anonymize").get("method"))
        if counts and not has_quasi_identifiers(method):
            raise PolicyError(f"workload: counts rows by their columns; releases of {method} have none to count by")
        found = describe_release(method, written, release, truth, trace, control, settings, counts)
        settings.progress("delays")
        delay = _delay(trace, unit=found.pop("delay_unit"))
    verdict = verdict_of(judged, found.pop("tried"))
    given = {"release": release, "truth": truth, "trace": trace, "control": control, "policy": policy}
    content = {
        "method": method,
        "promise": found.pop("promise"),
        "verdict": verdict.to_dict(),
        "audit": {**judged.to_dict(), "verdict": verdict.to_dict()},
        **found,
        "delay": delay,
        "policy": _policy_text(policy, written),
        "repeat": _repeat(seed, targets, {**given, "workload": workload}),
    }
    return EvidenceReport(content, verdict)


def describe_release(
    method: str, policy: Policy, release: Any, truth: Any, trace: Any, control: Any, settings: Settings,
    counts: tuple[Count, ...],
) -> dict[str, Any]:  # fmt: skip
    """Attack a release and measure what it is good for; return the parts of the report that say so."""
    refuse_control(method, control)
    more: dict[str, Any]
    family = METHODS.get(method)
    if family == "z":
        stream = read_stream_evidence(policy, release, truth, trace, settings)
        attacks, utility, promise = attack_stream(stream), measure_stream(stream), stream.promise
        more = {"windows": report_windows(release, policy.content, truth).to_dict(), "classes": _set_sizes(stream)}
    elif family == "sets":
        sets = read_set_evidence(policy, release, truth, trace, settings)
        attacks, utility, promise = attack_sets(sets), measure_sets(sets), read_set_promise(policy)  # type: ignore[assignment]
        more = {"classes": _sizes(_holders(sets.shown.keys()), "equal released records", are_promised=False)}
    else:
        rows = read_rows(policy, release, truth, trace, control, settings)
        attacks, utility, promise = attack_rows(rows, settings), measure_rows(rows), rows.promise
        utility += measure_workload(rows, counts)
        more = {
            "classes": _sizes(rows.released.rows, "rows that look alike", are_promised=True),
            "columns": list(_columns(rows)),
            "groups": _groups(rows),
        }
    return {
        "promise": promise_in_words(promise),
        "delay_unit": "seconds" if family == "z" or getattr(promise, "is_timed", False) else "arrivals",
        "tried": attacks,
        "attacks": attacks.to_dict(),
        "utility": [measure.to_dict() for measure in utility],
        **more,
    }


# ---- classes, columns, groups


def _holders(keys: list[bytes]) -> Ints:
    """How often each different key occurs."""
    return np.array(list(Counter(keys).values()), np.int64)


def _set_sizes(stream: StreamEvidence) -> dict[str, Any]:
    keys = [stream.shown_lists.of(group).tobytes() for group in range(len(stream.shown))]
    what = "people of an epoch with the same released set"
    return _sizes(_holders(keys), what, are_promised=stream.promise.k is not None)


def _sizes(sizes: Ints, what: str, *, are_promised: bool) -> dict[str, Any]:
    """Count rows (or people) by the size of the class they are in."""
    edges = [*_BINS, 2**62]
    counts = [int(sizes[(sizes >= low) & (sizes < high)].sum()) for low, high in pairwise(edges)]
    names = [str(low) if high == low + 1 else f"{low}–{high - 1}" for low, high in pairwise(edges[:-1])]
    names.append(f"{_BINS[-1]:,} or more")
    used = [place for place, count in enumerate(counts) if count]
    kept = range(used[0], used[-1] + 1) if used else range(0)
    return {
        "what": what,
        "are_promised": are_promised,
        "classes": len(sizes),
        "smallest": int(sizes.min()) if len(sizes) else None,
        "median": float(np.median(sizes)) if len(sizes) else None,
        "names": [names[place] for place in kept],
        "counts": [counts[place] for place in kept],
    }


def _columns(rows: RowEvidence) -> Iterator[dict[str, Any]]:
    for attribute in rows.members.attributes:
        spread = Spread(attribute, rows.released.first)
        before, after = marginal_shares(rows, spread, attribute)
        names = spread.names
        is_number = isinstance(attribute, Spans)
        if not is_number:
            order = np.argsort(-before, kind="stable")
            top, rest = order[:_VALUES], order[_VALUES:]
            names = [names[place] for place in top] + (["all others"] if len(rest) else [])
            before, after = (
                np.append(side[top], side[rest].sum()) if len(rest) else side[top] for side in (before, after)
            )
        yield {
            "name": attribute.name,
            "kind": "numbers" if is_number else "labels",
            "loss": float(attribute.loss.mean()) if len(attribute.loss) else 0.0,
            "names": names,
            "before": before.tolist(),
            "after": after.tolist(),
        }


def _groups(rows: RowEvidence) -> list[dict[str, Any]]:
    """Return the groups of people whose records were suppressed or generalized most."""
    if rows.class_of is None:
        return []
    usable = rows.members.records.usable
    gone = usable & (rows.class_of < 0)
    loss = np.mean([attribute.loss for attribute in rows.members.attributes], axis=0)[rows.released.first]
    own = np.where(rows.class_of >= 0, np.append(loss, 1.0)[rows.class_of], 1.0)
    found = []
    for attribute in rows.members.attributes:
        if isinstance(attribute, Labels):
            for code in np.unique(attribute.true_code[usable]).tolist():
                group = usable & (attribute.true_code == code)
                if int(group.sum()) >= _FEWEST:
                    name = "(missing)" if code < 0 else attribute.texts[code]
                    found.append(_group(attribute.name, name, group, gone, own))
        elif isinstance(attribute, Spans):
            for name, group in _quarters(attribute, usable):
                if int(group.sum()) >= _FEWEST:
                    found.append(_group(attribute.name, name, group, gone, own))
    found.sort(key=lambda group: (-group["loss"], -group["suppressed"], group["column"], group["value"]))
    return found[:_WORST]


def _quarters(span: Spans, usable: Any) -> Iterator[tuple[str, Any]]:
    """Yield the records in each quarter of a column of numbers, from the smallest values on."""
    value = span.true_value
    known = usable & np.isfinite(value)
    edges = np.unique(np.quantile(value[known], (0.25, 0.5, 0.75))) if known.any() else np.zeros(0)
    place = np.searchsorted(edges, value, side="left")
    for at in range(len(edges) + 1):
        group = known & (place == at)
        if group.any():
            yield f"{_spelt(value[group].min(), span)} – {_spelt(value[group].max(), span)}", group


def _spelt(value: float, span: Spans) -> str:
    return str(np.datetime64(int(value), "us").astype("datetime64[m]")) if span.are_moments else f"{value:g}"


def _group(column: str, value: str, group: Any, gone: Any, own: Any) -> dict[str, Any]:
    return {
        "column": column, "value": value, "records": int(group.sum()),
        "suppressed": float(gone[group].mean()), "loss": float(own[group].mean()),
    }  # fmt: skip


# ---- time, and how to repeat it


def _delay(trace: Any, *, unit: str) -> dict[str, Any] | None:
    if trace is None:
        return None
    rows = read(trace, name="trace", expected=Format(), part="trace")
    if "delay" not in rows.columns:
        return None
    delay = rows.numbers("delay")
    delay = delay[delay >= 0]
    if not len(delay):
        return None
    scale = 1e-9 if unit == "seconds" else 1.0  # traces have nanoseconds
    shares = {"median": 0.5, "95%": 0.95, "longest": 1.0}
    parts = {name: float(np.quantile(delay, share)) * scale for name, share in shares.items()}
    return {"records": len(delay), "unit": unit, **parts}


def _policy_text(policy: Any, written: Policy) -> str:
    if isinstance(policy, str | Path):
        return Path(policy).read_text(encoding="utf-8")
    return "\n".join(f"[{name}] {section}" for name, section in written.content.items())


def _repeat(seed: int, targets: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    versions = {name: version_of(name) for name in ("shoal", "numpy", "pyarrow")}
    return {
        "seed": seed,
        "targets": targets,
        "versions": {**versions, "python": platform.python_version()},
        "sha256": {name: digest for name, given in inputs.items() if (digest := checksum(given)) is not None},
    }
