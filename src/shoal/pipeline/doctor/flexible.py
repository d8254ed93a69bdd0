"""What the doctor looks at for flexible k-anonymity: people, values the ontology lacks, sparsity, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.base import StreamMethod
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.pipeline.doctor.flexible_baseline import Baseline, least_loss_baseline
from shoal.pipeline.doctor.remarks import Remark, Sample
from shoal.policy import Policy
from shoal.policy.flexible import FlexibleSection


def flexible_remarks(policy: Policy, method: FlexibleSection, sample: Sample) -> Iterator[Remark]:
    """Everything worth saying about a sample before the method is tried."""
    people = pc.count_distinct(sample.batch.column(policy.stream.person)).as_py()
    seen = f"{people:,} different people, k = {method.k:,}"
    if people >= method.k:
        yield Remark("good", "people", seen)
    else:
        yield Remark("look", "people", f"{seen}: all rows wait until there are more; choose a smaller k, or wait")
    if policy.stream.time is not None and policy.stream.time in policy.stream.carry:
        yield Remark("look", "time", f"column {policy.stream.time!r} is carried: an exact time can single people out")


def flexible_outcome(anonymizer: StreamMethod, method: FlexibleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    """What the method found out and cost on the sample."""
    assert isinstance(anonymizer, FlexibleK)
    frozen, metrics = anonymizer.frozen, anonymizer.metrics
    yield from _unknown_remarks(method, metrics, anonymizer.counts["pushed"])
    if frozen is None:
        return
    for name in frozen.sparse:
        share = frozen.shares[name]
        yield Remark(
            "good", "sparse",
            f"column {name!r}: in {share:.1%} of the rows a value that fewer than k people have; anyone who knows it "
            f"finds one of {frozen.k_s[method.k]:,} people, others one of {method.k:,}",
        )  # fmt: skip
    if not frozen.sparse:
        yield Remark("look", "sparse", f"no column is sparse: every label needs k = {method.k:,} people")
    yield Remark("good", "outcome", loss_words(metrics))
    if method.compare and anonymizer.counts["released"] and max(anonymizer.settings.crowds) <= len(batch):
        found = least_loss_baseline(anonymizer.settings, pa.Table.from_batches([batch]))
        yield Remark("good", "compared", _compared_words(found))


def _unknown_remarks(method: FlexibleSection, metrics: dict[str, float], rows: int) -> Iterator[Remark]:
    for name, own in method.quasi.items():
        count = int(metrics.get(f"unknown_{name}", 0))
        if not count:
            continue
        place, check = "hierarchy", ""
        if own.kind == "ontology":
            place, check = "ontology", f" (`shoal ontology check` with --values and --column {name} finds them)"
        yield Remark(
            "look", "values",
            f"column {name!r}: {count:,} rows ({count / rows:.1%}) have a value that the {place} does not list; they "
            f'are published as "unknown", or wait until enough people have that label; add their values to the '
            f"{place}{check}",
        )  # fmt: skip


def loss_words(metrics: dict[str, Any]) -> str:
    """What it costs."""
    return (
        f"average loss {metrics['loss']:.3f} (0 exact, 1 fully generalized), {int(metrics['pending']):,} rows pending"
    )


def _compared_words(found: Baseline) -> str:
    """What least-loss would do, with what sets the two apart."""
    return (
        f"least-loss on the same rows, with k = {found.k:,} for all columns together and a deadline of "
        f"{found.deadline:,} arrivals: average loss {found.loss:.3f}, {found.suppressed:,} rows suppressed, "
        f"{found.at_root:.1%} of the rows with a label or range that covers everything"
    )
