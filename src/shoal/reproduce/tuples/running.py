"""Run one method over one stream: loss, time, decisions read from the trace, and class sizes by the auditor."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.auditor import audit
from shoal.hierarchies import Hierarchy
from shoal.methods.registry import METHODS
from shoal.reproduce.data.streams import Stream
from shoal.schema import Categorical, Numeric

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    method: str
    settings: Mapping[str, Any]
    stream: Stream
    seconds: float
    """Time to decide; building the published rows is not included."""
    metrics: Mapping[str, float]
    rows: pa.Table
    trace: pa.Table


def run_method(method: str, stream: Stream, settings: Mapping[str, Any]) -> Outcome:
    """Push the whole stream through a method, then flush it."""
    anonymizer = METHODS[method].load()(stream.schema, **settings)
    begun = time.perf_counter()
    releases = (anonymizer.push_batch(stream.table), anonymizer.flush())
    seconds = time.perf_counter() - begun
    return Outcome(
        method,
        settings,
        stream,
        seconds,
        anonymizer.metrics,
        pa.Table.from_batches([release.rows for release in releases]),
        pa.Table.from_batches([release.trace for release in releases]),
    )


def warm_up(method: str, stream: Stream, settings: Mapping[str, Any]) -> None:
    """Run the first rows, so that no later time includes compiling kernels."""
    enough = (
        settings["deadline"] + 2 * settings["k"]
    )  # so that rows are published both at their deadline and by the flush
    run_method(method, stream.head(min(len(stream), enough)), settings)


def time_method(method: str, stream: Stream, settings: Mapping[str, Any], *, times: int) -> float:
    """Return the shortest of several runs in seconds."""
    warm_up(method, stream, settings)
    return min(run_method(method, stream, settings).seconds for _ in range(times))


@dataclass(frozen=True, slots=True)
class Crowds:
    """Class sizes of a release, counted by the auditor."""

    smallest: int | None
    """People in the smallest class; None when nothing was released."""
    below_k_share: float
    alone_share: float
    """Share of released rows that no other row equals."""
    is_kept: bool
    """Whether the auditor found no violation."""


def judge(outcome: Outcome) -> Crowds:
    """Audit a run."""
    report = audit(
        outcome.rows,
        truth=outcome.stream.table,
        trace=outcome.trace,
        policy=outcome.stream.policy(outcome.method, outcome.settings),
    )
    found = report.metrics
    rows = max(1, found["released_rows"])
    return Crowds(found["smallest_k"], found["rows_below_k_share"] or 0.0, found["unique_rows"] / rows, report.ok)


def loss_if_imputed_is_lost(outcome: Outcome) -> float:
    """The average loss over the attributes a row carries or is given, when a value that was filled in counts as lost.

    Equals the method's own loss where nothing is filled in. A suppressed row has loss 1.
    """
    chosen = outcome.trace.filter(pc.equal(outcome.trace.column("verdict"), "released"))
    origin = outcome.stream.table.take(chosen.column("row"))
    total, cells = np.zeros(len(origin)), np.zeros(len(origin))
    for role in outcome.stream.schema.quasi:
        published = outcome.rows.column(role.name).combine_chunks()
        is_carried, is_shown = (np.asarray(column.is_valid()) for column in (origin.column(role.name), published))
        total += np.where(is_carried, _cell_losses(role, published), is_shown)
        cells += is_carried | is_shown
    lost = (total / cells).sum() + (len(outcome.trace) - len(chosen))
    return float(lost / len(outcome.trace))


def _cell_losses(role: Numeric | Categorical, published: pa.Array) -> NDArray[np.float64]:
    """The loss of every cell; 1 for a missing one."""
    if isinstance(role, Numeric):
        ends = (pc.struct_field(published, name).cast(pa.float64()) for name in ("lo", "hi"))
        low, high = (end.fill_null(np.nan).to_numpy(zero_copy_only=False) for end in ends)
        losses = (high - low) / (role.high - role.low)
    else:
        tree = cast("Hierarchy", role.hierarchy)
        by_label = dict(zip(tree.labels, (tree.leaf_counts - 1) / (tree.leaf_counts[0] - 1), strict=True))
        losses = np.array([by_label.get(label, np.nan) for label in published.to_pylist()])
    return np.where(np.isnan(losses), 1.0, losses)


@dataclass(frozen=True, slots=True)
class Decisions:
    """A trace as a sequence of rounds: in each, one expiring tuple is decided, alone or with a new cluster."""

    round_of_row: Ints
    """Round in which each row was decided, in order of decision."""
    arrived: Ints
    left: Ints
    """Number of the arrival after which each row was decided."""
    is_first: NDArray[np.bool_]
    """Whether a row is the first of a newly formed cluster."""

    @property
    def formed(self) -> Ints:
        """Arrival after which each cluster was formed."""
        return self.left[self.is_first]


def read_decisions(trace: pa.Table) -> Decisions:
    """Read the rounds of a run whose deadline counts arrivals: a new cluster, or a row decided without one."""
    arrived = trace.column("row").to_numpy()
    left = arrived + trace.column("delay").to_numpy()
    group = trace.column("group").fill_null(-1).to_numpy()
    is_reused = trace.column("reused").fill_null(False).to_numpy()  # noqa: FBT003 - Arrow takes it by place
    in_new = (group >= 0) & ~is_reused
    order = _decided_order(arrived, left, group, in_new)
    arrived, left, group, in_new = arrived[order], left[order], group[order], in_new[order]
    is_next_of_same = np.zeros(len(group), dtype=np.bool_)
    is_next_of_same[1:] = in_new[1:] & in_new[:-1] & (group[1:] == group[:-1])
    rounds = np.cumsum(~is_next_of_same) - 1
    return Decisions(rounds, arrived, left, in_new & ~is_next_of_same)


def _decided_order(arrived: Ints, left: Ints, group: Ints, in_new: NDArray[np.bool_]) -> Ints:
    """Return the order of decisions. Rows of one event are published in random order, but the oldest expires first."""
    expiring = arrived.copy()
    oldest = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(oldest, group[in_new], arrived[in_new])
    expiring[in_new] = oldest[group[in_new]]
    return np.lexsort((arrived, expiring, left))


def pool_sizes(decisions: Decisions, at: Ints, *, reuse: int) -> Ints:
    """Return the number of published clusters ready for reuse just before each of these arrivals is decided."""
    formed = np.sort(decisions.formed)
    return np.searchsorted(formed, at, side="left") - np.searchsorted(formed, at - reuse, side="left")


def rounds_taken(decisions: Decisions) -> Ints:
    """Return the number of rounds each row took part in, including its own."""
    starts = np.flatnonzero(np.diff(decisions.round_of_row, prepend=-1))
    begun = decisions.left[starts]  # sorted: decisions are made in time order
    return decisions.round_of_row - np.searchsorted(begun, decisions.arrived, side="left") + 1
