"""What methods make of generated streams: rows, traces, refusals, snapshots, and what the auditor says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.crypto.keys import as_secret
from shoal.crypto.snapshots import open_state
from shoal.methods.base import StreamMethod
from shoal.methods.release import DEAD, Release
from shoal.testing import driving
from shoal.times import column_ns
from tests.golden import ways
from tests.golden.fingerprints import Digests, digest, plain, report, rounded, table
from tests.laws.cases import KEY, Case
from tests.laws.test_laws import CASES

BATCH = ways.BATCH
WEEK_NS = 7 * 86_400 * 10**9
STREAMS = {case.name: case for case in CASES}


def stream_digests(case: Case) -> Digests:
    """The output of a method, and the audit of it, as it is and forged."""
    anonymizer = case.make()
    batches = list(driving.batches_of(case.stream, BATCH))
    releases = [anonymizer.push_batch(batch) for batch in batches[: len(batches) // 2]]
    snapshot = state(anonymizer)
    releases += [anonymizer.push_batch(batch) for batch in batches[len(batches) // 2 :]]
    releases.append(anonymizer.flush())
    made = {
        **_parts(releases),
        **_refusals(anonymizer, releases),
        "schemas": digest([str(anonymizer.input_schema), anonymizer.columns]),
        "counts": digest(anonymizer.counts),
        "metrics": digest(plain(getattr(anonymizer, "metrics", {}))),
        "guarantee": digest(plain(asdict(anonymizer.guarantee))),
        "snapshot": digest(snapshot),
        "outcome": ways.outcome(case.make, case.stream),
        "published": ways.published(case.make, case.stream),
        **_audits(case, releases),
    }
    if case.time:
        made |= {f"{name} as time passes": value for name, value in _as_time_passes(case, case.time).items()}
    return made


def state(anonymizer: StreamMethod) -> list[Any]:
    """What a snapshot holds: its header and its arrays."""
    opened = open_state(as_secret(KEY), anonymizer.snapshot())
    arrays: dict[str, Any] = {
        name: [array.dtype.str, list(array.shape), array.tolist()]
        for name, array in opened.arrays.items()
        if name != "schema"
    }
    return rounded([opened.header, arrays])


def _audits(case: Case, releases: Iterable[Release]) -> Digests:
    kept = list(releases)
    rows = pa.Table.from_batches([release.rows for release in kept])
    trace = pa.Table.from_batches([release.trace for release in kept])
    judge = partial(shoal.audit, truth=case.stream, policy=case.policy)
    spoilt = rows.filter(pa.array(np.arange(rows.num_rows) % 5 != 2))
    return {
        "audit": digest(report(judge(rows, trace=trace).to_dict())),
        "audit of spoilt rows": digest(report(judge(spoilt, trace=trace).to_dict())),
        "audit without trace": digest(report(judge(rows).to_dict())),
    }


def _as_time_passes(case: Case, time: str) -> Digests:
    """Small batches; after each the clock moves on by half a minute, or by nothing where it is wrong."""
    anonymizer = case.make()
    times, usable = column_ns(case.stream.column(time).combine_chunks())
    first = int(np.median(times[usable])) - WEEK_NS
    releases = []
    for number, batch in enumerate(driving.batches_of(case.stream, 11)):
        releases.append(anonymizer.push_batch(batch))
        last = min((number + 1) * 11, len(times)) - 1
        if usable[last] and first < int(times[last]) < first + 2 * WEEK_NS:
            releases.append(anonymizer.advance(np.datetime64(int(times[last]) + 30 * 10**9, "ns")))
    releases.append(anonymizer.flush())
    return {**_parts(releases), "counts": digest(anonymizer.counts)}


def _parts(releases: Iterable[Release]) -> Digests:
    kept = list(releases)
    return {
        "rows": digest([table(release.rows) for release in kept]),
        "trace": digest([table(release.trace) for release in kept]),
    }


def _refusals(anonymizer: StreamMethod, releases: Iterable[Release]) -> Digests:
    """Which records are refused, for what reason and because of which column; and the sentences for the reasons."""
    trace = [row for release in releases for row in release.trace.to_pylist()]
    dead = [(row["row"], row["reason"]) for row in trace if row["verdict"] == DEAD]
    told = {reason: anonymizer.explain(reason) for reason in sorted({reason for _, reason in dead})}
    return {
        "dead letters": digest([(row, reason, told[reason].column) for row, reason in dead]),
        "dead letter reasons": digest({reason: refusal.sentence for reason, refusal in told.items()}),
    }
