"""Every code of tuple streams: a sound release is acquitted, a changed one convicted; at once and in parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.auditor.checks import CHECKS
from tests.auditor.in_parts import audit_in_parts, same_report
from tests.auditor.tuples.naive import RELEASE, SECOND, TRACE, TRUTH, Run, records, table
from tests.spark.auditor.test_tuples import BROKEN

Change = Callable[[Run], None]
REFERENCE = {"t": 0.9, "reference": 30}
TIMED = {"is_timed": True, "deadline": 120 * SECOND, "reuse": 60 * SECOND}
ELSEWHERE = {
    "hidden-value",
    "unexpected-metadata",
    "missing-column",
    "layout",
    "not-a-cell",
    "rows-not-people",
    "pending",
}
"""Codes of all families, which have tables of their own, and one of flexible k."""


def promise(**rules: Any) -> Change:
    def change(run: Run) -> None:
        run.promised["anonymize"] |= rules

    return change


def shown(place: int, **values: Any) -> Change:
    return lambda run: run.release[place].update(values)


def entry(**values: Any) -> Change:
    """Change the entry of the tenth released row."""
    return lambda run: run.trace[run.entry_of(10)].update(values)


def first_reused(run: Run) -> dict[str, Any]:
    return next(one for one in run.trace if one.get("reused"))


def reuse_too_early(run: Run) -> None:
    first_reused(run)["group"] = max(one["group"] for one in run.trace if one.get("group") is not None)


def one_person_often(run: Run) -> None:
    """Publish all rows alike; most of them are one person's."""
    for row in run.release:
        row |= {"age": {"lo": 0, "hi": 100}, "tree": "*"}
    for at, record in enumerate(run.truth):
        record["id"] = record["id"] if at % 4 == 0 else "often"
    run.promised["anonymize"]["max_share"] = 0.5


def not_the_record(run: Run) -> None:
    run.trace[run.entry_of(10)]["row"] = 10_000


def wrong_counts(run: Run) -> None:
    for one in run.trace:
        for said in one.get("reference") or ():
            said["count"] += 1


def no_counts(run: Run) -> None:
    next(one for one in run.trace if one.get("reference"))["reference"] = None


def unknown_values(run: Run) -> None:
    run.promised["anonymize"]["l"] = 1
    for row in (*run.release, *run.truth):
        row["ill"] = None


def identifiers_in_a_column(run: Run) -> None:
    released = [one["row"] for one in run.trace if one["verdict"] == "released"]
    for at, row in enumerate(released):
        run.truth[row]["shop"] = run.release[at]["shop"] = run.truth[row]["id"]


def different_ills(run: Run) -> None:
    released = [one["row"] for one in run.trace if one["verdict"] == "released"]
    for at, row in enumerate(released):
        run.truth[row]["ill"] = run.release[at]["ill"] = f"ill {row}"


def hidden_for_nothing(run: Run) -> None:
    for row in run.release:
        row["tree"] = None


def a_clock_ahead(run: Run) -> None:
    for one in run.trace[20:40]:
        if one.get("delay") is not None:
            one["delay"] += SECOND


def one_row_less(run: Run) -> None:
    run.release.pop()


def moved_to_the_end(run: Run) -> None:
    run.trace.append(run.trace.pop(run.entry_of(3)))
    run.release.append(run.release.pop(3))


TABLE: list[tuple[str, dict[str, Any], Change]] = [
    ("above-max-share", {}, one_person_often),
    ("above-t", {"declared": {"cough": 0.25, "fever": 0.25, "gout": 0.25, "none": 0.25}}, promise(t=0.1)),
    ("bad-range", {}, shown(4, age={"lo": 50, "hi": 40})),
    ("below-entropy-l", {}, promise(entropy_l=3.5)),
    ("below-k-in-history", {}, promise(groups=True)),
    ("clock-unclear", TIMED, a_clock_ahead),
    ("few-carriers", {}, promise(min_carriers=4)),
    ("hidden-without-need", {}, hidden_for_nothing),
    ("identifier-in-column", {}, identifiers_in_a_column),
    ("identifying-sensitive", {}, different_ills),
    ("k-lowered", {}, promise(k=4)),
    ("late-by-event-time", TIMED, moved_to_the_end),
    ("no-known-value", {}, unknown_values),
    ("not-in-truth", {}, not_the_record),
    ("off-grid", {"grid": 10}, shown(4, age={"lo": 11, "hi": 47})),
    ("out-of-domain", {}, shown(4, age={"lo": -5, "hi": 100})),
    ("reuse-before-formation", {}, reuse_too_early),
    ("reused-in-groups", {}, promise(groups=True)),
    ("trace-delay", {}, entry(delay=None)),
    ("trace-event", {}, entry(event=None)),
    ("trace-group", {}, entry(group=None)),
    ("trace-row", {}, not_the_record),
    ("trace-verdict", {}, entry(verdict="perhaps")),
    ("unchecked-promise", {}, entry(reused=None)),
    ("unreadable-value", {}, shown(4, age={"lo": None, "hi": 40})),
    ("wrong-reference", REFERENCE, wrong_counts),
    ("wrong-reference", REFERENCE, no_counts),
    ("release-count", {}, one_row_less),
]
"""Code, how the sound release is made, and the change."""


def in_files(run: Run, folder: Path, *, without: tuple[str, ...] = (), files: int = 3) -> dict[str, Any]:
    """Write everything in parts; return the arguments of an audit."""
    parts = {"release": (run.release, RELEASE), "truth": (run.truth, TRUTH), "trace": (run.trace, TRACE)}
    for name, (rows, schema) in parts.items():
        (folder / name).mkdir(parents=True)
        whole = table(rows, schema)
        size = max(-(-len(whole) // files), 1)
        for number in range(files):
            pq.write_table(whole.slice(number * size, size), folder / name / f"part-{number}.parquet")
    return {**{name: None if name in without else str(folder / name) for name in parts}, "policy": run.promised}


def found_in(run: Run, folder: Path, **how: Any) -> set[str]:
    """The codes of an audit, which are the same at once and in parts."""
    paths = in_files(run, folder, **how)
    here = shoal.audit(**paths)
    same_report(here, audit_in_parts(**paths))
    return {finding.code for finding in here.findings}


@pytest.mark.parametrize(("code", "how", "change"), TABLE, ids=[f"{line[0]}-{at}" for at, line in enumerate(TABLE)])
def test_a_change_convicts(tmp_path: Path, code: str, how: dict[str, Any], change: Change) -> None:
    run = Run(records(120, missing=0.1), **how)
    assert found_in(run, tmp_path / "sound") == set()
    change(run)
    assert code in found_in(run, tmp_path / "changed")


def test_a_suppressed_row_that_shows_something(tmp_path: Path) -> None:
    run = Run(records(120, people=2), root=True)
    assert "root-row" not in found_in(run, tmp_path / "sound")
    run.release[3]["tree"] = "north"
    assert "root-row" in found_in(run, tmp_path / "changed")


def test_rows_more_often_than_in_the_truth(tmp_path: Path) -> None:
    run = Run(records(60))
    assert "more-often-than-truth" not in found_in(run, tmp_path / "sound", without=("trace",))
    for row in run.release:
        row |= {"ill": run.truth[0]["ill"], "shop": run.truth[0]["shop"]}
    assert "more-often-than-truth" in found_in(run, tmp_path / "changed", without=("trace",))


def test_moments_that_are_too_fine(tmp_path: Path) -> None:
    day = {"kind": "numeric", "low": "2026-01-01T00:00:00Z", "high": "2026-02-01T00:00:00Z"}
    promised = {"stream": {"person": "id"}, "anonymize": {"method": "fads", "k": 2, "quasi": {"seen": day}}}
    ends = pa.struct([("lo", pa.timestamp("ns", "UTC")), ("hi", pa.timestamp("ns", "UTC"))])
    for name, extra, expected in (("sound", 0, False), ("changed", 1, True)):
        (tmp_path / name).mkdir()
        low = 1_767_312_000_000_000_000 + extra
        for number in range(3):
            row = pa.table({"seen": pa.array([{"lo": low, "hi": low + 1000}], ends)})
            pq.write_table(row, tmp_path / name / f"part-{number}.parquet")
        paths: dict[str, Any] = {"release": str(tmp_path / name), "policy": promised}
        here = shoal.audit(**paths)
        same_report(here, audit_in_parts(**paths))
        assert ("too-fine" in {found.code for found in here.findings}) == expected


@pytest.mark.parametrize(
    ("code", "change"),
    [("spelling", lambda line: line.replace('"lo": 0', '"lo": 0.0')), ("unreadable-row", lambda _: "not a row")],
)
def test_lines_of_json(tmp_path: Path, code: str, change: Callable[[str], str]) -> None:
    row = json.dumps({"age": {"lo": 0, "hi": 9}, "tree": "ash", "ill": "gout", "shop": "s"})
    for name, lines in (("sound", [row] * 9), ("changed", [*[row] * 8, change(row)])):
        (tmp_path / name).mkdir()
        for number in range(3):
            text = "\n".join(lines[3 * number : 3 * number + 3]) + "\n"
            (tmp_path / name / f"part-{number}.jsonl").write_text(text)
        paths: dict[str, Any] = {"release": str(tmp_path / name), "policy": Run(records(9)).promised}
        here = shoal.audit(**paths)
        same_report(here, audit_in_parts(**paths))
        assert (code in {found.code for found in here.findings}) == (name == "changed")


def test_the_tables_have_every_code() -> None:
    own = {"root-row", "more-often-than-truth", "too-fine", "spelling", "unreadable-row"}
    listed = {line[0] for line in TABLE} | set().union(*BROKEN.values()) | own | ELSEWHERE
    assert {code for (code, _), one in CHECKS.items() if "tuples" in one.families} <= listed
