"""Whole streams through z-anonymity and its twin: the same verdicts, in the same order."""

from __future__ import annotations

from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.methods.z.crowds import crowd as tables
from shoal.testing.strategies import SECOND, cuts, event_records
from tests.methods.z.driving import (
    GAP,
    LATENESS,
    SITES,
    WINDOW,
    as_batch,
    configurations,
    expected_in,
    for_twin,
    found_in,
    make_twin,
    make_z,
)  # fmt: skip
from tests.reference.effort import tries

CONFIGURATIONS = configurations()
SIZES = st.sampled_from([1, 1, 4, 64])


def tables_of(smallest):
    """Tables with hardly any room to begin with, so that every path meets a full one."""
    return mock.patch.object(tables, "_SMALLEST", smallest)


@st.composite
def streams(draw):
    records = draw(event_records(window_ns=WINDOW, lateness_ns=LATENESS, sites=(*SITES, None), most=30))
    for record in records:
        record["device"] = draw(st.sampled_from(["a", "b", "c", None]))
    jumps = draw(
        st.lists(st.tuples(st.integers(0, 29), st.sampled_from([GAP, GAP + 1, -GAP - 1, 3 * GAP])), max_size=4)
    )
    for at, jump in jumps:
        if at < len(records) and records[at]["ts"] is not None:
            records[at]["ts"] += jump
    return records


@pytest.mark.parametrize("lateness", [0, LATENESS], ids=["at once", "late"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
@given(streams(), st.data())
@tries(40)
def test_batches_decide_as_the_twin(name, lateness, records, data):
    with tables_of(data.draw(SIZES)):
        decide_in_batches(name, lateness, records, data)


def decide_in_batches(name, lateness, records, data):
    settings, columns, keeps_blank = CONFIGURATIONS[name]
    z, twin = make_z(settings, lateness=lateness), make_twin(columns, keeps_blank=keeps_blank, lateness=lateness)
    places = data.draw(cuts(len(records)))
    for start, stop in pairwise(places):
        expected = [verdict for record in records[start:stop] for verdict in twin.push(for_twin(record))]
        release = z.push_batch(as_batch(records[start:stop]))
        assert list(found_in(release, columns)) == expected_in(expected)
        assert z.pending == len(twin.held)
    assert list(found_in(z.flush(), columns)) == expected_in(twin.flush())


@pytest.mark.parametrize("lateness", [0, LATENESS], ids=["at once", "late"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
@given(streams(), SIZES)
@tries(25)
def test_single_records_leave_as_the_twin_says(name, lateness, records, smallest):
    with tables_of(smallest):
        push_singly(name, lateness, records)


def push_singly(name, lateness, records):
    settings, columns, keeps_blank = CONFIGURATIONS[name]
    z, twin = make_z(settings, lateness=lateness), make_twin(columns, keeps_blank=keeps_blank, lateness=lateness)
    for record in records:
        time = None if record["ts"] is None else np.datetime64(record["ts"], "ns")
        rows = z.push({**record, "ts": time})
        released = [one for one in twin.push(for_twin(record)) if one.verdict == "released"]
        assert [tuple(row[column.name] for column in columns) for row in rows] == [one.labels for one in released]
        assert [row["ts"] for row in rows] == [np.datetime64(records[one.row]["ts"], "ns") for one in released]
    assert z.pending == len(twin.held)


@given(event_records(window_ns=WINDOW, wide=True, broken=False, most=60), st.integers(1, 4))
@tries(40)
def test_the_promise_holds_of_every_row(records, threshold):
    """Recount each row that leaves from the input alone."""
    z = make_z({"attribute": "site", "z": threshold, "window": WINDOW / SECOND}, lateness=0)
    release = z.push_batch(as_batch(records))
    accepted = []
    for row in release.trace.to_pylist():
        record = records[row["row"]]
        if row["verdict"] == "dead":
            continue
        accepted.append(record)
        crowd = {
            other["user"] for other in accepted
            if other["site"] == record["site"] and record["ts"] - WINDOW <= other["ts"] <= record["ts"]
        }  # fmt: skip
        assert (row["verdict"] == "released") == (len(crowd) >= threshold)
