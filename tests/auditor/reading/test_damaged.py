"""Damaged evidence never acquits and never ends in a traceback, for every column and every kind of damage."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.errors import ShoalError
from tests.auditor.cases import NAMES, Case
from tests.auditor.flexible import naive as flexible_naive
from tests.auditor.sets.naive import image, policy
from tests.auditor.tuples import naive as tuples_naive
from tests.auditor.z import naive
from tests.reference.effort import some_by_default

MINUTE = 60 * tuples_naive.SECOND
OPTIONAL = {
    "z": {"trace.z"},
    "tuples": {"trace.k", "trace.carriers", "truth.unused"},
    "timed": {"trace.k", "trace.carriers", "trace.reference"},
    "flexible": {"trace.k", "trace.k_s"},
    "sets": set(),
}
"""Columns that no promise needs: what they say is recounted."""


def z_case(_):
    case = Case()
    case.truth.append({**case.truth[-1], "user": None})
    case.trace.append({"row": len(case.truth) - 1, "verdict": "dead", "reason": "null-person"})
    release = naive.table(case.release, case.columns)
    return release, naive.table(case.truth, NAMES), naive.trace_table(case.trace), case.promised


def tuple_run(truth, **how):
    run = tuples_naive.Run(truth, **how)
    release = tuples_naive.table(run.release, tuples_naive.RELEASE)
    truth_table, trace = (
        tuples_naive.table(run.truth, tuples_naive.TRUTH),
        tuples_naive.table(run.trace, tuples_naive.TRACE),
    )
    return release, truth_table, trace, run.promised


def tuple_case(_):
    truth = tuples_naive.records(120, people=50, missing=0.2)
    truth[20]["age"] = 101
    release, truth, trace, promised = tuple_run(truth, t=0.6, reference=40, l=2)
    return release, truth.rename_columns({"ts": "unused"}), trace, promised


def timed_case(_):
    truth = tuples_naive.records(120, people=50)
    truth[20]["age"] = 101
    return tuple_run(truth, is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)


def flexible_case(folder):
    truth = flexible_naive.records(400)
    truth[20]["maid"] = None
    run = flexible_naive.Run(folder, truth)
    tables = (
        flexible_naive.table(rows, kind)
        for rows, kind in (
            (run.release, flexible_naive.RELEASE), (run.truth, flexible_naive.TRUTH), (run.trace, flexible_naive.TRACE)
        )
    )  # fmt: skip
    return *tables, run.promised


def sets_case(_):
    truth = [{"la", "sf"}, {"la", "ny"}, {"ny", "boston"}, {"la", "sf", "ny"}] * 3
    label_of = dict.fromkeys(["la", "sf", "seattle"], "west") | dict.fromkeys(["ny", "boston", "miami"], "east")
    released = image(truth, label_of)
    order = list(reversed(range(len(truth))))
    release = pa.table({"items": [sorted(released[row]) for row in order]})
    trace = pa.table({"row": order, "position": list(range(len(order)))})
    return release, pa.table({"items": [sorted(record) for record in truth]}), trace, policy(2, 2)


CASES = {"z": z_case, "tuples": tuple_case, "timed": timed_case, "flexible": flexible_case, "sets": sets_case}


def dropped(table, place):
    return table.remove_column(place)


def nulls(table, place):
    return table.set_column(place, table.column_names[place], pa.nulls(len(table)))


def typed_nulls(table, place):
    return table.set_column(place, table.column_names[place], pa.nulls(len(table), table.schema.field(place).type))


def as_list(table, place):
    return with_kind(table, place, [[value] for value in table.column(place).to_pylist()])


def as_struct(table, place):
    return with_kind(table, place, [{"x": value} for value in table.column(place).to_pylist()])


def as_bytes(table, place):
    return with_kind(table, place, [b"\xff\xfe"] * len(table))


def as_floats(table, place):
    return with_kind(table, place, [float("nan"), float("inf"), *[1e300] * (len(table) - 2)])


def as_large(table, place):
    return with_kind(table, place, [2**63 - 1, -(2**63), *[2**62] * (len(table) - 2)])


def as_text(table, place):
    return with_kind(table, place, ["", "\x00", *["x" * 40] * (len(table) - 2)])


def cut(table, place):
    return table.slice(0, len(table) // 2) if place == 0 else table.slice(0, 0)


def with_kind(table, place, values):
    return table.set_column(place, table.column_names[place], pa.array(values))


WAYS = [dropped, nulls, typed_nulls, as_list, as_struct, as_bytes, as_floats, as_large, as_text, cut]


@pytest.mark.parametrize("family", CASES)
def test_the_cases_are_acquitted(family, tmp_path):
    release, truth, trace, promised = CASES[family](tmp_path)
    report = audit(release, truth, trace, promised)
    assert report.ok, report.text()


OFTEN = [dropped, typed_nulls, as_struct, as_floats, as_text, cut]


@pytest.mark.parametrize("way", some_by_default(WAYS, OFTEN), ids=lambda way: way.__name__)
@pytest.mark.parametrize("family", CASES)
def test_a_damaged_column(family, way, tmp_path):
    *given, promised = CASES[family](tmp_path)
    for side, name in enumerate(("release", "truth", "trace")):
        for place in range(given[side].num_columns):
            damaged = list(given)
            damaged[side] = way(given[side], place)
            column = f"{name}.{given[side].column_names[place]}"
            is_gone = name == "trace" and way in (dropped, nulls, typed_nulls)
            acquits, text = verdict(damaged, promised, with_warnings=is_gone)
            is_needed = column not in OPTIONAL[family] and not damaged[side].equals(given[side])
            assert not (acquits and is_needed) or (column, way) in SAME, f"{column}\n{text}"


def verdict(given, promised, *, with_warnings=True):
    """Audit; refusing the evidence with a sentence is no acquittal, and neither need a warning be."""
    try:
        report = audit(*given, promised)
    except ShoalError as error:
        return False, str(error)
    return report.ok and (with_warnings or not report.warnings), report.text()


SAME = {(f"truth.{name}", way) for name in ("user", "id", "maid") for way in (as_list, as_struct)}
"""People are still distinguished."""
SAME |= {("trace.reason", way) for way in (as_list, as_struct, as_floats, as_large, as_text)}
"""A record that cannot be used may be refused for any reason."""
SAME |= {("trace.event", dropped)}
"""Events follow from the delays."""
