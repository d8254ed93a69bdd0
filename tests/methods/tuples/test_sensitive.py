"""Publisher and auditor agree on which sensitive values count as one."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Fads, Numeric, Schema
from shoal.auditor import audit
from shoal.auditor.tuples.diversity.distances import away, gather, refer
from shoal.auditor.tuples.diversity.sensitive import meaning as audited_meaning
from shoal.errors import InputError
from shoal.methods.tuples.sensitive import SensitiveCodes
from shoal.methods.tuples.sensitive import meaning as published_meaning
from tests.reference.effort import tries
from tests.reference.meanings import NOTHING, SAME

SIDES = pytest.mark.parametrize("meaning", [published_meaning, audited_meaning])


@SIDES
def test_the_table(meaning):
    meant = [{meaning(text) for text in line} for line in SAME]
    assert [len(line) for line in meant] == [1] * len(SAME)
    assert len(set.union(*meant)) == len(SAME)
    assert None not in set.union(*meant)
    assert {meaning(text) for text in NOTHING} == {None}


def thousandths(number):
    return f"{'-' if number < 0 else '+'}{abs(number) // 1000}.{abs(number) % 1000:03}"


@given(st.integers(-(10**30), 10**30), st.integers(0, 4), st.sampled_from(["", "0", "00"]))
@tries(100)
def test_numbers_however_they_are_written(number, zeros, before):
    text = thousandths(number)
    other = f"{text[0]}{before}{text[1:]}{'0' * zeros}"
    for meaning in (published_meaning, audited_meaning):
        assert meaning(other) == meaning(text) == meaning(f"{number}e-3")
        assert meaning(other) != meaning(thousandths(number + 1))


@given(st.text(max_size=12), st.text(max_size=12))
@tries(100)
def test_both_sides_agree(one, other):
    assert (published_meaning(one) == published_meaning(other)) == (audited_meaning(one) == audited_meaning(other))


def test_typed_values():
    assert (
        published_meaning(True) != published_meaning(1) == published_meaning(1.0) == published_meaning(Decimal("1.00"))
    )
    assert published_meaning(float("nan")) is None is published_meaning(None)
    assert published_meaning(0.0) == published_meaning(-0.0)
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert published_meaning(moment) == published_meaning(datetime.fromisoformat("2024-01-01T02:00:00+02:00"))


@pytest.mark.parametrize(
    ("kind", "same", "different"),
    [
        ("bool", ["1", "true", "TRUE"], ["0", "false"]),
        ("float64", ["0.1", "0.1000000000000000055"], ["0.2"]),
        ("float64", ["1e400", "1e400"], ["1e401"]),
        ("int64", ["9007199254740993"], ["9007199254740992"]),
        ("timestamp", ["2024-01-01", "2024-01-01T00:00:00Z"], ["2024-01-02"]),
        ("string", ["1", "1.0"], ["one"]),
    ],
)
def test_declared_types(kind, same, different):
    assert len({audited_meaning(text, kind) for text in same}) == 1
    assert {audited_meaning(text, kind) for text in same}.isdisjoint(audited_meaning(text, kind) for text in different)


def test_spellings_have_one_number_and_shares_add_up():
    codes = SensitiveCodes("ill", {"1": 0.25, "1.0": 0.25, "flu": 0.5})
    assert codes.code_all(["01", "flu ", "gout", " gout", "", None]).tolist() == [0, 1, 2, 2, 3, 3]
    assert (codes.share(0), codes.share(1), codes.share(2)) == (0.5, 0.5, 0.0)
    assert codes.seen == ["gout", None]
    codes.set_type(pa.string(), is_bound=True)
    assert codes.share(0) == 0.5
    numbers = SensitiveCodes("score", {"1": 0.25, "1.0": 0.75})
    numbers.set_type(pa.float64(), is_bound=True)
    assert (len(numbers), numbers.share(0)) == (1, 1.0)


SPELLINGS = ["1", "1.0", "01", " 1", "1e0", "+1"]
POLICY = {
    "stream": {"person": "id"},
    "anonymize": {
        "method": "fads", "k": 3, "deadline": 20, "reuse": 0, "l": 2, "sensitive": ["ill"],
        "quasi": {"age": {"kind": "numeric", "low": 0, "high": 100}},
    },
}  # fmt: skip


def stream(ills):
    rows = len(ills)
    return pa.table({"id": [f"p{n}" for n in range(rows)], "age": np.arange(rows) % 7, "ill": ills})


def test_a_stream_of_one_value_in_many_spellings_is_not_diverse():
    table = stream([SPELLINGS[n % len(SPELLINGS)] for n in range(60)])
    schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100)], sensitive=["ill"])
    made = Fads(schema, k=3, deadline=20, reuse=0, l=2, key=b"sixteen bytes or more")
    releases = [made.push_batch(table), made.flush()]
    assert sum(release.rows.num_rows for release in releases) == 0
    assert made.counts["suppressed"] == 60


@pytest.mark.parametrize(
    ("ills", "is_diverse"),
    [(["1", "1.0", "01"], False), (["True", "true", "TRUE"], False), (["2024-01-01", "2024-01-01T00:00Z", " "], False),
     ([" ", "", None], True), (["a", "b", None], True), (["a", "a ", "a"], False), (["a", "b", "a"], True)],
)  # fmt: skip
def test_the_auditor_convicts_a_class_of_one_meaning(ills, is_diverse):
    truth = stream(ills)
    ends = pa.array([{"lo": 0, "hi": 6}] * 3)
    release = pa.table({"age": ends, "ill": ills})
    report = audit(release, truth, policy=POLICY)
    assert ("below-l" not in {found.code for found in report.violations}) == is_diverse


TYPED = {
    "decimals that no float tells apart": pa.array(
        [Decimal("0.10000000000000000001"), Decimal("0.10000000000000000002"), Decimal("1.50")], pa.decimal128(38, 20)
    ),
    "whole numbers that no float tells apart": pa.array([2**63 - 1, 2**63 - 2, 2**63 - 3]),
    "endless": pa.array([float("inf"), float("-inf"), 1.0]),
    "times of day": pa.array([time(1), time(2, 30), time(3)]),
    "durations": pa.array([timedelta(seconds=1), timedelta(hours=2), None]),
}


@pytest.mark.parametrize("asked", [{"l": 2}, {"t": 0.45, "reference": 20}], ids=["l", "t"])
@pytest.mark.parametrize("values", TYPED.values(), ids=TYPED)
def test_both_sides_count_typed_values_alike(values, asked):
    rows = 60
    draw = np.random.default_rng(2)
    table = stream(values.take(pa.array(draw.integers(0, 3, rows))))
    schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100)], sensitive=["ill"])
    made = Fads(schema, k=3, deadline=20, reuse=0, **asked, key=b"sixteen bytes or more")
    releases = [made.push_batch(table), made.flush()]
    assert made.counts["released"] > 50
    rules = {name: rule for name, rule in POLICY["anonymize"].items() if name != "l"}
    report = audit(releases, truth=table, trace=releases, policy={**POLICY, "anonymize": {**rules, **asked}})
    assert report.ok, report.text()


@pytest.mark.parametrize("values", [pa.array([2**62, 1], pa.timestamp("s")), pa.array([1, 2], pa.time64("ns"))])
def test_times_that_python_does_not_have_are_refused(values):
    table = stream(values)
    schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100)], sensitive=["ill"])
    made = Fads(schema, k=2, deadline=20, reuse=0, l=2, key=b"sixteen bytes or more")
    with pytest.raises(InputError, match="round them to microseconds"):
        made.push_batch(table)
    assert made.counts["pushed"] == 0


@pytest.mark.parametrize(
    ("asked", "ills", "code"),
    [
        ({"l": 2}, ["a", None, None], "below-l"),
        ({"l": 2}, [None, None, None], None),
        ({"entropy_l": 1.5}, ["a", "a", None], "below-entropy-l"),
        ({"entropy_l": 1.5}, ["a", "b", None], None),
        ({"t": 0.4, "reference": {"ill": {"a": 0.5, "b": 0.5}}}, ["a", "a", "b"], None),
        ({"t": 0.4, "reference": {"ill": {"a": 0.5, "b": 0.5}}}, ["a", "b", None], None),
        ({"t": 0.6, "reference": {"ill": {"a": 0.3, "b": 0.7}}}, ["a", "b", "b"], None),
        ({"t": 0.6, "reference": {"ill": {"a": 0.3, "b": 0.7}}}, ["a", "a", None], "above-t"),
        ({"t": 0.6, "reference": {"ill": {"a": 0.3, "b": 0.7}}}, [None, None, None], "above-t"),
    ],
    ids=str,
)
def test_the_auditor_counts_known_values(asked, ills, code):
    truth = stream(pa.array(ills, pa.string()))
    release = pa.table({"age": pa.array([{"lo": 0, "hi": 6}] * 3), "ill": pa.array(ills, pa.string())})
    rules = {name: rule for name, rule in POLICY["anonymize"].items() if name != "l"}
    report = audit(release, truth, policy={**POLICY, "anonymize": {**rules, **asked}})
    assert {found.code for found in report.violations} == ({code} if code else set())
    noted = {found.code: found.count for found in report.findings if found.code == "no-known-value"}
    assert noted == ({"no-known-value": 3} if set(ills) == {None} else {})


@pytest.mark.parametrize("is_ordered", [False, True])
def test_the_auditor_measures_t_on_known_values_too(is_ordered):
    one, weights = np.zeros(3, np.int64), np.array([4.0, 1.0, 3.0])  # how often: missing, "a", "b"
    table = refer(one, np.arange(3), weights, count=1, width=3)
    far = {"all": (0.5 + 7 / 24) / 2, "none": (0.5 + 3 / 8) / 2} if is_ordered else {"all": 0.5, "none": 0.5}
    for values, expected in (([1, 0, 0], 0.75), ([1, 2, 2], far["all"]), ([0, 0], far["none"])):
        sets = gather(np.zeros(len(values), np.int64), np.array(values), 1)
        found = away(sets, table, np.zeros(1, np.int64), is_ordered=is_ordered)
        assert found == pytest.approx(expected), (values, found)
    missing = refer(one[:1], np.zeros(1, np.int64), np.ones(1), count=1, width=3)
    sets = gather(one, np.array([1, 2, 2]), 1)
    assert away(sets, missing, np.zeros(1, np.int64), is_ordered=is_ordered) == 1.0
