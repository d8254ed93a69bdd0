"""Loss against delay: what a longer deadline gains, method by method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from shoal.figures.lines import Panel, Record, draw_panels, lines_by, values_of
from shoal.methods.registry import METHODS
from shoal.schema import Schema


def frontier(
    table: pa.Table, schema: Schema, methods: Sequence[str], deadlines: Sequence[int], **settings: Any
) -> Iterator[dict[str, Any]]:
    """Run every method with every deadline (a count of arrivals); yield one record per run.

    `settings` are those of all runs, such as ``k`` and ``reuse``. A record has the method, the deadline, the average
    loss (a suppressed row loses 1), the average delay in arrivals, and the number of suppressed rows.
    """
    for method in methods:
        for deadline in deadlines:
            made = METHODS[method].load()(schema, deadline=deadline, **settings)
            made.push_batch(table)
            made.flush()
            yield {
                "method": method, "deadline": deadline, "loss": float(made.metrics["loss"]),
                "delay": float(made.metrics["delay"]), "suppressed": int(made.counts["suppressed"]),
            }  # fmt: skip


def draw_frontier(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Draw the loss of each method against its average delay, as a PNG."""
    lines = lines_by(records, "method", x="delay", y="loss")
    panel = Panel("", "average delay (arrivals)", "average loss", lines, is_log_x=True)
    draw_panels(path, [panel], title=title, names=values_of(records, "method"))
