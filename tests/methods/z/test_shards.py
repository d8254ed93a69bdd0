"""Admitted once, judged in shards and joined: the same as one method, for any number of shards."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.methods.release import Release
from shoal.methods.z.shards import numbers_of, owners_of
from shoal.testing.strategies import SECOND, cuts
from tests.laws.cases import Z_CASES, make_z, stream
from tests.methods.z import driving
from tests.methods.z.driving import LATENESS, as_batch, configurations
from tests.methods.z.test_twin import streams
from tests.reference.effort import tries

SHARDED = [case for case in Z_CASES if "combine" not in case.name and "target" not in case.name]
CONFIGURATIONS = configurations()
MOST_SHARDS = 5


class Sharded:
    """One method that admits and several that judge; each is restored from its snapshot after every call."""

    def __init__(self, make, shards, *, ships):
        self.make, self.ships = make, ships
        self.admitting, self.judging = make(), [make() for _ in range(shards)]

    def push_batch(self, batch):
        return self._judged(self.admitting.admit(batch))

    def advance(self, now):
        return self._judged(self.admitting.admit_time(now))

    def flush(self):
        return self._judged(self.admitting.admit_end())

    def _judged(self, admitted):
        parts = self.admitting.split(admitted, len(self.judging))
        releases = []
        for method, part in zip(self.judging, parts, strict=True):
            releases.append(method.judge(self._shipped(method, part) if self.ships else part))
        joined = self.admitting.join(releases)
        if self.ships:  # refused records are not shipped; their trace comes from admission
            trace = pa.concat_batches([self.admitting.refused(admitted), joined.trace])
            joined = Release(joined.rows, trace)
        self.admitting = self.make().restore(self.admitting.snapshot())
        self.judging = [self.make().restore(method.snapshot()) for method in self.judging]
        return by_number(joined)

    def _shipped(self, method, part):
        """A part as it arrives in another process: accepted records in any order, numbers, and the clock."""
        kept = np.random.default_rng(len(part)).permutation(np.flatnonzero(part.accepted))
        batch = part.batch.take(pa.array(kept))
        return method.read_admitted(batch, part.numbers[kept], pickle.loads(pickle.dumps(part.clock)))


def by_number(release):
    rows = release.rows.take(pa.array(np.argsort(numbers_of(release))))
    trace = release.trace
    return rows.to_pylist(), trace.take(pa.array(np.argsort(np.asarray(trace.column("row"))))).to_pylist()


def same(make, batches, shards, *, ships, idle=None):
    """One method and the sharded one decide alike in every call."""
    alone, sharded = make(), Sharded(make, shards, ships=ships)
    for batch in batches:
        assert by_number(alone.push_batch(batch)) == sharded.push_batch(batch)
    if idle is not None:
        assert by_number(alone.advance(idle)) == sharded.advance(idle)
    assert by_number(alone.flush()) == sharded.flush()
    if len(batches) > 1:  # what the flush decided cannot be joined by older records any more
        assert by_number(alone.push_batch(batches[-1])) == sharded.push_batch(batches[-1])
    assert alone.counts["pushed"] == sharded.admitting.counts["pushed"]


@pytest.mark.parametrize("case", SHARDED, ids=lambda case: case.name)
@pytest.mark.parametrize("shards", [2, MOST_SHARDS])
def test_every_configuration(case, shards):
    batches = [case.stream.slice(start, 40) for start in range(0, len(case.stream), 40)]
    same(case.make, batches, shards, ships=shards == 2)


@pytest.mark.parametrize("lateness", [0, LATENESS], ids=["at once", "late"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
@given(streams(), st.integers(1, MOST_SHARDS), st.booleans(), st.none() | st.integers(0, 50), st.data())
@tries(8)
def test_random_streams(name, lateness, records, shards, ships, idle, data):
    places = data.draw(cuts(len(records)))
    batches = [as_batch(records[start:stop]) for start, stop in pairwise(places)]

    def make():
        return driving.make_z(CONFIGURATIONS[name][0], lateness=lateness)

    same(make, batches, shards, ships=ships, idle=None if idle is None else np.datetime64(idle * SECOND, "ns"))


def test_plain_columns_are_dealt_by_value_and_trees_by_column():
    method = make_z({"attribute": {"site": {"on_private": "generalize"}, "device": {"z": 2}}}, {"site": "suffix"})
    parts = method.split(method.admit(stream()), 3)
    holding = {
        name: [set(part.batch.column(name).to_pylist()) - {None} for part in parts] for name in ("site", "device")
    }
    assert [len(held) > 0 for held in holding["site"]] == [True, False, False]
    assert sorted(value for held in holding["device"] for value in held) == ["laptop", "phone"]


def test_shards_are_even():
    keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, size=(10_000, 2))
    assert np.bincount(owners_of(keys, 4), minlength=4).min() > 2_300


def test_counts_of_the_steps_add_up():
    alone, admitting, judging = (make_z({"carry": ["device"]}, {}) for _ in range(3))
    alone.push_batch(stream())
    judging.judge(admitting.admit(stream()))
    steps = [method.counts for method in (admitting, judging)]
    assert {name: sum(step.get(name, 0) for step in steps) for name in alone.counts} == alone.counts


def test_a_shard_without_records_decides_what_waits_and_frees_memory():
    method = make_z({"lateness": "3s", "z": 1}, {})
    method.push_batch(stream().slice(0, 20))
    other = make_z({"lateness": "3s", "z": 1}, {})
    other.push_batch(stream().slice(0, 20))
    assert method.pending
    release = method.judge(other.admit_time(np.datetime64("2030-01-01", "ns")))
    assert release.rows.num_rows > 0
    assert method.pending == method.live_pairs == 0


@pytest.mark.parametrize(
    ("settings", "named"), [({"combine": "k", "k": 2}, "combine"), ({"target": {"k": 2, "p": 0.9}}, "target")]
)
def test_what_is_decided_for_a_whole_epoch_is_refused(settings, named):
    method = make_z(settings, {})
    admitted = method.admit(stream())
    with pytest.raises(PolicyError, match=f"{named}: decides about all people of an epoch together"):
        method.split(admitted, 2)
    with pytest.raises(PolicyError, match=r"judge values with apart\(\), or run in one process"):
        method.read_admitted(stream(), range(len(stream())), admitted.clock)


def test_bad_calls_are_refused():
    method = make_z({}, {})
    admitted = method.admit(stream())
    with pytest.raises(InputError, match="0 shards; give at least 1"):
        method.split(admitted, 0)
    with pytest.raises(InputError, match="3 numbers; give one for each record"):
        method.read_admitted(stream(), [1, 2, 3], admitted.clock)
    with pytest.raises(InputError, match="no release to join"):
        method.join([])
