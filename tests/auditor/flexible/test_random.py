"""Arbitrary releases, right or wrong: the auditor must convict exactly the rows that counting one by one convicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auditor.flexible.naive import DENSITY, DEVICES, PATHS, Run, broken, candidates
from tests.reference.effort import tries

ALL = ("device", "place", "hour")
CELLS = (4, 8, 16, 32)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["G 1", "G 2", "S 9", "o 1", None]),
        st.sampled_from(["a", "b", "c", "d", None]),
        st.sampled_from([0, 3, 4, 8, 40, 64, None]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=14,
)


def published(device, place, hour, of_device, of_place, of_hour):
    """Some label above each value: the few devices there are meet often."""
    labels = None if device is None else [device, *sorted(DEVICES[device] & {"Samsung", "Asia"})]
    begin = None if hour is None else min(hour, 63) // CELLS[of_hour] * CELLS[of_hour]
    return {
        "device": labels and labels[min(of_device, len(labels) - 1)],
        "place": place and PATHS[place][of_place],
        "hour": None if begin is None else {"lo": begin, "hi": begin + CELLS[of_hour]},
    }


def made(folder, rows, **how):
    """A release of most of the records, each row with labels of its own."""
    rest = {"net": "lte", "mbps": 1.0}
    truth = [{"maid": f"m{who}", "device": d, "place": p, "hour": h, **rest} for who, d, p, h, *_ in rows]
    run = Run(folder, truth, publishes=False, **how)
    vectors: dict[str, int] = {}
    for number, (_, device, place, hour, of_device, of_place, of_hour, fate) in enumerate(rows):
        if not fate:
            continue  # pending
        run.release.append({**published(device, place, hour, of_device, of_place, of_hour), **rest})
        group = vectors.setdefault(run.vector(len(run.release) - 1), len(vectors))
        entry = {"row": number, "verdict": "released", "group": group, "delay": len(rows) - 1 - number}
        run.trace.append({**entry, "k": 99, "k_s": 99})
    return run


HOWS = st.sampled_from(
    [
        {"k": 2},
        {"k": 3, "window": 5},
        {"k": 3, "p_sparse": 0.5},
        {"k": 4, "p_sparse": 0.04},
        {"k": 4, "p_sparse": 0.51},
        {"k": 3, "density": DENSITY},
        {"k": 2, "cells": (0, {2: 4, 3: 3})},
        {"k": 2, "cells": (2, {3: 5}), "window": 6},
        {"k": 2, "density": {"a": 3, "city": 2, "land": 5}, "p_sparse": 0.4},
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("flexible")


@tries(150)
@given(rows=ROWS, how=HOWS)
def test_convicted_rows_are_the_right_ones(folder, rows, how):
    run = made(folder, rows, **how)
    report = run.audit()
    found = {finding.code: (finding.count, finding.rows) for finding in report.violations}
    few, few_sparse = (sorted(rows) for rows in broken(run))
    expected = {"below-k": few, "below-k-s": few_sparse}
    assert found == {code: (len(rows), tuple(rows[:10])) for code, rows in expected.items() if rows}


@tries(100)
@given(rows=ROWS, how=HOWS)
def test_candidates_are_the_right_ones(folder, rows, how):
    run = made(folder, rows, **how)
    metrics = run.audit().metrics
    for name, columns in (("all", ALL), ("normal", ("place", "hour"))):
        found, counts = metrics[f"candidates_knowing_{name}"], sorted(candidates(run, columns))
        if not counts:
            assert found == {}
            continue
        assert (found["least"], found["median"]) == (counts[0], counts[(len(counts) - 1) // 2])
        assert found["90%"] == counts[int(0.9 * (len(counts) - 1))]
