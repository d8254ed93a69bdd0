"""Every check of a plain table convicts its violation and acquits the honest case, however the rows are divided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor.checks import CHECKS
from shoal.auditor.findings import AuditReport
from shoal.auditor.policy import Policy, read_policy
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.paths import Format
from shoal.auditor.tables.audit import POPULATION, TABLE, audit_tables, open_tables, reader_of_tables
from tests.auditor.divided import Divided

Frame = list[dict[str, Any]]


def frame(*rows: tuple[Any, ...]) -> Frame:
    """Rows of an age, a town, an illness and a person; a number before them says how often the row is there."""
    return [dict(zip(("age", "town", "ill", "who"), row[1:], strict=True)) for row in rows for _ in range(row[0])]


HONEST = frame((2, 1, "x", "flu", "a"), (2, 1, "x", "cold", "b"), (2, 2, "y", "flu", "c"), (2, 2, "y", "cold", "d"))
TABLE_OF: dict[str, tuple[dict[str, Any], Frame]] = {
    "below-k": ({"k": 4}, frame((1, 3, "x", "flu", "a"))),
    "below-k-knowing-m": ({"k": 4, "m": 1}, frame((3, 3, "x", "flu", "a"))),
    "below-l": ({"l": 2}, frame((4, 3, "x", "flu", "a"))),
    "below-entropy-l": ({"entropy_l": 1.9}, frame((4, 3, "x", "flu", "a"), (1, 3, "x", "cold", "b"))),
    "below-recursive-l": ({"recursive_l": [2.0, 2]}, frame((4, 3, "x", "flu", "a"), (2, 3, "x", "cold", "b"))),
    "above-alpha": ({"alpha": 0.5}, frame((2, 3, "x", "flu", "a"), (1, 3, "x", "cold", "b"))),
    "above-t": ({"t": 0.25}, frame((3, 3, "x", "flu", "a"))),
    "above-beta": ({"beta": 0.4}, frame((3, 3, "x", "flu", "a"))),
    "not-in-population": ({}, frame((1, 9, "z", "flu", "a"))),
    "outside-presence": ({"presence": [0.0, 0.9]}, frame((4, 3, "x", "flu", "a"))),
}
"""By code: what is promised, and rows that break it if they are added to the honest ones."""


def policy(promised: dict[str, Any], population: Frame | None = None, **columns: Any) -> Policy:
    section = {"quasi": ["age", "town"], "sensitive": ["ill"], **columns, **promised}
    return read_policy({"table": section if population is None else {**section, "population": made(population)}})


def made(rows: Frame) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([("age", pa.int64()), *((name, pa.string()) for name in
                                                                       ("town", "ill", "who"))]))  # fmt: skip


def audits(rows: Frame, asked: Policy, population: Frame | None = None) -> list[AuditReport]:
    """The report of one machine, of one whose memory is too small, and of many."""
    inputs = {TABLE: pieces(rows)} | ({} if population is None else {POPULATION: pieces(population)})
    readers = {role: reader_of_tables(asked, role) for role in inputs}
    files = {
        role: [readers[role](piece, name=role, expected=Format()) for piece in what] for role, what in inputs.items()
    }
    reports = [audit_tables(Divided(files, 1), asked), audit_tables(Divided(files, 3), asked)]
    with limited(None), open_tables(asked, inputs) as place:
        reports.append(audit_tables(place, asked))
    with limited(None), open_tables(asked, inputs) as place:
        reports.append(audit_tables(replace(place, allowed=20), asked))
    return reports


def pieces(rows: Frame) -> list[pa.Table]:
    step = max(len(rows) // 3, 1)
    return [made(rows[at : at + step]) for at in range(0, max(len(rows), 1), step)]


def same(reports: list[AuditReport]) -> AuditReport:
    """The one report that all give, but for the last digits of figures."""

    def plain(report: AuditReport) -> Any:
        found = report.to_dict()
        return {**found, "findings": sorted(map(str, found["findings"])), "metrics": rounded(found["metrics"])}

    first = plain(reports[0])
    for report in reports[1:]:
        assert plain(report) == first
    return reports[0]


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def test_every_check_is_here() -> None:
    declared = {code for (code, _), one in CHECKS.items() if one.families == ("table",)}
    assert declared == {*TABLE_OF, "no-rows"}
    assert all(one.advice for (code, _), one in CHECKS.items() if code in declared)


@pytest.mark.parametrize("code", TABLE_OF)
def test_a_violation_is_convicted(code: str) -> None:
    promised, added = TABLE_OF[code]
    needs_population = code in ("not-in-population", "outside-presence")
    everyone = [*HONEST, *HONEST, *(added if code == "outside-presence" else [])] if needs_population else None
    asked = policy(promised, everyone)
    report = same(audits([*HONEST, *added], asked, everyone))
    assert {found.code for found in report.violations} == {code, *(["below-k"] if code == "below-k-knowing-m" else [])}
    finding = report.violations[-1]
    assert finding.count == (len(added) if code != "below-k-knowing-m" else 1)
    bounds = [str(one).replace("[", "(").replace("]", ")") for one in promised.values()]
    assert all(one in finding.sentence for one in bounds)
    assert "k rows" not in finding.sentence


@pytest.mark.parametrize("code", TABLE_OF)
def test_the_honest_case_is_acquitted(code: str) -> None:
    everyone = [*HONEST, *HONEST] if "presence" in code or "population" in code else None
    asked = policy(TABLE_OF[code][0], everyone)
    assert same(audits(HONEST, asked, everyone)).ok


def test_no_rows() -> None:
    report = same(audits([], policy({"k": 2, "m": 1, "l": 2})))
    assert [found.code for found in report.findings] == ["no-rows"]
    assert report.metrics["smallest_k"] is None


@pytest.mark.parametrize("seed", range(12))
def test_random_tables(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows: Frame = [
        {
            "age": [None, 1, 2, 3][draw.integers(4)],
            "town": ["*", "x", "y", None][draw.integers(4)],
            "ill": [None, "", "flu", "flu ", "1", "1.0"][draw.integers(6)] if seed % 3 else str(draw.integers(5)),
            "who": [None, " a", *map(str, range(9))][draw.integers(11)],
        }
        for _ in range(60)
    ]
    promised: dict[str, Any] = {"k": 3, "m": 1, "l": 2, "entropy_l": 1.5, "recursive_l": [1.5, 2], "t": 0.4}
    promised |= {"alpha": 0.6, "beta": 1.0, "presence": [0.2, 0.7]} | ({"person": "who"} if seed % 2 else {})
    promised |= {"suppressed": "*"} if seed % 4 > 1 else {}
    population = [*rows[10:], *rows[20:], {"age": 7, "town": "q", "ill": "", "who": ""}]
    report = same(audits(rows, policy(promised, population), population))
    assert not report.ok
    assert report.metrics["released_rows"] == 60


def test_a_row_that_breaks_both_comparisons_of_t_counts_once() -> None:
    rows = frame((4, 1, "x", "flu", "a"), (4, 2, "y", "cold", "b"), (2, 2, "y", None, "c"))
    (finding,) = same(audits(rows, policy({"t": 0.3}))).violations
    assert (finding.code, finding.count) == ("above-t", 10)
