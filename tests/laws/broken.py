"""Anonymizers that break one law each."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa

from shoal.errors import InputError
from shoal.kernels.tuples import layout as t
from shoal.methods.registry import METHODS
from shoal.methods.release import Release
from shoal.methods.tuples.fads import Fads
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.testing.driving import OTHER_SEED
from tests.laws.cases import KEY, WINDOW_S
from tests.laws.tuple_cases import make_tuples


def backwards(batch):
    return batch.take(pa.array(np.arange(batch.num_rows)[::-1]))


class ReversesRows(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        return Release(backwards(release.rows), release.trace)


class ReversesTrace(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        return Release(release.rows, backwards(release.trace))


class CountsBatches(ZAnonymity):
    def push_batch(self, batch):
        self._engine.admission.clock[-1] += 1
        return super().push_batch(batch)


class PushReleasesLess(ZAnonymity):
    def push(self, record):
        return super().push(record)[:0]


class PushCountsMore(ZAnonymity):
    def push(self, record):
        self._engine.counts.released += 1
        return super().push(record)


class LosesVerdicts(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        return Release(release.rows, release.trace.slice(1))


class LosesRows(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        return Release(release.rows.slice(1), release.trace)


class DecidesTwice(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        first = pa.array(np.maximum(np.arange(release.trace.num_rows) - 1, 0))
        return Release(release.rows, release.trace.take(first))


class HidesPending(ZAnonymity):
    @property
    def pending(self):
        return 0


class ForgetsCrowds(ZAnonymity):
    def _load(self, state):
        super()._load(state)
        for column in self._engine.attributes:
            column.clear()


class SnapshotsDiffer(ZAnonymity):
    def snapshot(self):
        self._engine.admission.clock[-1] += 1
        return super().snapshot()


class SnapshotsExpire(ZAnonymity):
    def snapshot(self):
        for column in self._engine.attributes:
            column.clear()
        return super().snapshot()


class CountsRefused(ZAnonymity):
    def push_batch(self, batch):
        self._engine.counts.pushed += 1
        release = super().push_batch(batch)
        self._engine.counts.pushed -= 1
        return release


class AcceptsAnything(ZAnonymity):
    def push_batch(self, batch):
        try:
            return super().push_batch(batch)
        except InputError:
            return self.flush()


class DependsOnTheProcess(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        is_elsewhere = os.environ.get("PYTHONHASHSEED") == OTHER_SEED
        return Release(release.rows.slice(0, 0) if is_elsewhere else release.rows, release.trace)


class KeepsPending(ZAnonymity):
    def flush(self):
        return self.advance(0)


class FlushMovesTime(ZAnonymity):
    def flush(self):
        release = super().flush()
        self._engine.admission.clock[1] += 1
        return release


class FlushesAgain(ZAnonymity):
    def flush(self):
        release = super().flush()
        last = getattr(self, "last", release)
        self.last = release
        return last if last.trace.num_rows else release


class IgnoresTime(ZAnonymity):
    def advance(self, now):
        return super().advance(0)


class PromisesTooMuch(ZAnonymity):
    @property
    def guarantee(self):
        return replace(super().guarantee, max_delay_ns=1_000_000_000, max_pending=1)


class NeverForgets(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        self.all_rows = getattr(self, "all_rows", 0) + release.trace.num_rows
        return release

    @property
    def state_bytes(self):
        return super().state_bytes + 100 * getattr(self, "all_rows", 0)


class NeverForgetsSingles(ZAnonymity):
    def push(self, record):
        self.all_rows = getattr(self, "all_rows", 0) + 1
        return super().push(record)

    @property
    def state_bytes(self):
        return super().state_bytes + 100 * getattr(self, "all_rows", 0)


class KeepsInput(ZAnonymity):
    """Looks at the batch before when the next one comes."""

    def push_batch(self, batch):
        before, self.before = getattr(self, "before", None), batch
        release = super().push_batch(batch)
        kept = 0 if before is None else sum(len(user or "") for user in before["user"].to_pylist())
        return Release(release.rows.slice(0, release.rows.num_rows - kept % 2), release.trace)


class WritesToInput(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        buffer = batch.column("ts").buffers()[1]
        if buffer.is_mutable:
            np.frombuffer(buffer, dtype=np.uint8)[0] ^= 1
        return release


class AddsColumn(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        return Release(release.rows.append_column("more", pa.nulls(release.rows.num_rows)), release.trace)


class ForgetsSchemaWhenEmpty(ZAnonymity):
    def flush(self):
        release = super().flush()
        return release if release.rows.num_rows else Release(pa.record_batch({}), release.trace)


class NamesPeople(ZAnonymity):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        rows = release.rows
        if rows.num_rows == 0:
            return release
        real = next((user for user in pa.table(batch)["user"].to_pylist() if user), "nobody")
        shown = pa.array([f"user {real}"] * rows.num_rows)
        return Release(rows.set_column(1, "user", shown), release.trace)


class QuotesValues(ZAnonymity):
    def push_batch(self, batch):
        try:
            return super().push_batch(batch)
        except InputError as error:
            users = pa.table(batch)["user"].to_pylist() if "user" in getattr(batch, "column_names", ()) else []
            raise InputError(f"cannot use the row of {users}") from error


class QuotesInTheChain(ZAnonymity):
    def push(self, record):
        try:
            raise ValueError(f"odd: {record.get('user')}")
        except ValueError as error:
            raise InputError("odd") from error


class FailsInItsOwnWay(ZAnonymity):
    def push_batch(self, batch):
        try:
            return super().push_batch(batch)
        except InputError:
            raise KeyError("no such column") from None


class LowersZ(ZAnonymity):
    def _start(self, settings, secret):
        super()._start(settings, secret)
        self._engine.attributes[0].z -= 1


class HoldsBackMore(ZAnonymity):
    def _start(self, settings, secret):
        super()._start(settings, secret)
        self._engine.attributes[0].z += 1


def make_broken(kind, settings):
    given = {"z": 2, "window": WINDOW_S, "person": "user", "time": "ts", "attribute": "site", **settings}
    return kind(**given, key=KEY)


def broken(kind, **settings):
    return partial(make_broken, kind, settings)


class LeavesLate(Fads):
    """Keeps everything for one arrival more than it promises."""

    @property
    def guarantee(self):
        promised = super().guarantee
        return replace(promised, max_delay_arrivals=promised.max_delay_arrivals - 1)


class CountsDelaysWrong(Fads):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        at = release.trace.schema.get_field_index("delay")
        delays = pa.array([delay + 1 for delay in release.trace["delay"].to_pylist()], pa.int64())
        return Release(release.rows, release.trace.set_column(at, "delay", delays))


class HidesPendingTuples(Fads):
    @property
    def pending(self):
        return 0


class HoldsTuplesTooLong(Fads):
    """Promises the deadline of a policy and keeps another one."""

    def _make_engine(self, settings, secret):
        engine = super()._make_engine(settings, secret)
        engine.decider.plan[t.DEADLINE] += 2
        return engine


class PromisesFewerTuples(Fads):
    @property
    def guarantee(self):
        return replace(super().guarantee, max_pending=3)


class HidesSuppressedRows(Fads):
    def push_batch(self, batch):
        release = super().push_batch(batch)
        shown = [row["verdict"] == "released" for row in release.trace.to_pylist() if row["verdict"] != "dead"]
        return Release(release.rows.filter(pa.array(shown, pa.bool_())), release.trace)


class LowersK(Fads):
    def _make_engine(self, settings, secret):
        engine = super()._make_engine(settings, secret)
        engine.decider.plan[t.K] -= 1
        return engine


class ShowsFewCarriers(Fads):
    def _make_engine(self, settings, secret):
        engine = super()._make_engine(settings, secret)
        engine.decider.plan[t.MIN_CARRIERS] = 1
        return engine


class ReusesForever(Fads):
    def _make_engine(self, settings, secret):
        engine = super()._make_engine(settings, secret)
        engine.decider.plan[t.REUSE] = 10**6
        return engine


def make_broken_tuples(kind, settings):
    with mock.patch.dict(METHODS, {"broken": mock.Mock(load=lambda: kind)}):
        return make_tuples("broken", {"k": 3, "deadline": 12, "reuse": 8, **settings}, timed=False)


def broken_tuples(kind, **settings):
    return partial(make_broken_tuples, kind, settings)
