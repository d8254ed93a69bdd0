"""Ways to push one stream that must give the same output: at once, restored, in threads, record by record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import shoal
from shoal.methods.base import StreamMethod
from shoal.methods.release import Release
from shoal.methods.tuples.decider import lane_threads
from shoal.methods.z import helper_thread
from shoal.testing import driving
from tests.golden.fingerprints import agreed, plain
from tests.laws.cases import KEY

BATCH = 37
PIECE = 16
HELPERS = 2
Make = Callable[[], StreamMethod]


class NoHelpers:
    """A pool whose threads never begin, so that the caller does everything."""

    def submit(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


class InTheCaller:
    """A pool that does each job as soon as it is handed over, in the calling thread."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args))
        except Exception as error:
            done.set_exception(error)
        return done


@contextmanager
def no_threads() -> Iterator[None]:
    """All that shoal and Arrow do is done in the calling thread."""
    before = pa.cpu_count()
    with ExitStack() as stack:
        stack.enter_context(patch.object(helper_thread, "_pool", NoHelpers))
        stack.enter_context(patch.object(lane_threads, "_helpers", lambda threads: InTheCaller()))
        stack.enter_context(patch.object(os, "cpu_count", lambda: 1))
        pa.set_cpu_count(1)
        stack.callback(pa.set_cpu_count, before)
        yield


@contextmanager
def several_threads() -> Iterator[None]:
    """Threads share even small batches, as they share large ones, however many processors there are."""
    before = pa.cpu_count()
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(HELPERS))
        for name, value in {
            "_pool": lambda: pool,
            "helpers": lambda: HELPERS,
            "SMALLEST_PIECE": PIECE,
            "LARGEST_PIECE": 2 * PIECE,
        }.items():
            stack.enter_context(patch.object(helper_thread, name, value))
        stack.enter_context(patch.object(os, "cpu_count", lambda: HELPERS + 1))
        pa.set_cpu_count(HELPERS + 1)
        stack.callback(pa.set_cpu_count, before)
        yield


# ---- one output, several ways


def outcome(make: Make, stream: pa.Table) -> str:
    """The digest of all that is decided about a stream, whichever way it is pushed."""
    with several_threads():
        in_threads = at_once(make, stream)
    with no_threads():
        ways = {"uninterrupted": in_batches(make, stream), "restored": restored(make, stream), "in threads": in_threads}
    return agreed(ways)


def published(make: Make, stream: pa.Table) -> str:
    """The digest of the rows alone, which single records must give too."""
    with no_threads():
        rows = in_batches(make, stream)[0]
        return agreed({"in batches": rows, "record by record": record_by_record(make, stream)})


def in_batches(make: Make, stream: pa.Table) -> list[Any]:
    """Push batches, then flush."""
    anonymizer = make()
    return decided(anonymizer, [anonymizer.push_batch(batch) for batch in driving.batches_of(stream, BATCH)])


def at_once(make: Make, stream: pa.Table) -> list[Any]:
    """Push everything as one batch, then flush."""
    anonymizer = make()
    return decided(anonymizer, [anonymizer.push_batch(driving.one_batch(stream))])


def restored(make: Make, stream: pa.Table) -> list[Any]:
    """Continue twice from a snapshot alone: after a third of the stream, and after two."""
    anonymizer, releases = make(), []
    third = max(1, stream.num_rows // 3)
    for start in range(0, stream.num_rows, third):
        releases += [anonymizer.push_batch(batch) for batch in driving.batches_of(stream.slice(start, third), BATCH)]
        anonymizer = shoal.restore(anonymizer.snapshot(), key=KEY)
    return decided(anonymizer, releases)


def decided(anonymizer: StreamMethod, releases: list[Release]) -> list[Any]:
    """Rows, trace, counts and metrics after a flush, however they came in releases."""
    releases = [*releases, anonymizer.flush()]
    rows = [row for release in releases for row in release.rows.to_pylist()]
    trace = [row for release in releases for row in release.trace.to_pylist()]
    return [rows, trace, sorted(anonymizer.counts.items()), plain(anonymizer.metrics)]


def record_by_record(make: Make, stream: pa.Table) -> list[Any]:
    """The rows of single records."""
    anonymizer = make()
    anonymizer.bind(stream.schema)
    rows = [row for record in stream.to_pylist() for row in anonymizer.push(record)]
    return rows + anonymizer.flush().rows.to_pylist()
