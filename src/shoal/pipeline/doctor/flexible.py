"""The doctor's remarks for flexible k-anonymity: people, values the ontology lacks, sparsity, and loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.tree import nested_tree
from shoal.hierarchies.unknown import tree_with_unknown, unknown_label
from shoal.methods.base import StreamMethod
from shoal.methods.flexible.axes import GridAxis, is_moment_type, tree_losses
from shoal.methods.flexible.density import cells_by_k
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.methods.flexible.settings import Density, FlexibleSettings
from shoal.methods.schema_arrays import Leaves
from shoal.methods.tuples.least_loss import LeastLoss
from shoal.pipeline.doctor.remarks import Remark, Sample
from shoal.policy import Policy
from shoal.policy.flexible import FlexibleSection
from shoal.schema import Categorical, Numeric, Quasi, Schema, grid_units

Floats = npt.NDArray[np.float64]
_LONGEST: Final = 10_000
"""The longest deadline: the search for neighbours takes time in proportion to it."""


def flexible_remarks(policy: Policy, method: FlexibleSection, sample: Sample) -> Iterator[Remark]:
    """Remarks about a sample before the method is tried."""
    people, words = sample.counted(policy.stream.person)
    seen = f"{words}, k = {method.k:,}"
    if people >= method.k:
        yield Remark("good", "people", seen)
    else:
        yield Remark("look", "people", f"{seen}: all rows wait until there are more; choose a smaller k, or wait")
    if policy.stream.time is not None and policy.stream.time in policy.stream.carry:
        yield Remark("look", "time", f"column {policy.stream.time!r} is carried: an exact time can single people out")


def flexible_outcome(anonymizer: StreamMethod, method: FlexibleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    """What the method measured on the sample."""
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
    yield from density_remarks(anonymizer.settings, frozen.density, anonymizer.counts["pushed"])
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


def density_remarks(settings: FlexibleSettings, density: Density, rows: int) -> Iterator[Remark]:
    """How many cells need which k by the people counted in the sample."""
    counted = f"counted in the first {min(rows, settings.window):,} rows"
    for column, classes in density.items():
        cells = cells_by_k(settings, column, classes)
        shares = ", ".join(f"{count:,} with k = {k:,}" for k, count in cells.items())
        words = f"column {column!r}, cells by the people {counted}: {shares}"
        if settings.k in cells:
            yield Remark("good", "density", words)
        else:
            yield Remark(
                "look", "density",
                f"{words}; none has enough people for k = {settings.k:,}: choose a longer window, a smaller "
                f"fewer_than, or a level nearer to the root",
            )  # fmt: skip


def loss_words(metrics: dict[str, Any]) -> str:
    """What it costs."""
    return (
        f"average loss {metrics['loss']:.3f} (0 exact, 1 fully generalized), {int(metrics['pending']):,} rows pending"
    )


def _compared_words(found: Baseline) -> str:
    """The result of least-loss, with the settings that differ."""
    return (
        f"least-loss on the same rows, with k = {found.k:,} for all columns together and a deadline of "
        f"{found.deadline:,} arrivals: average loss {found.loss:.3f}, {found.suppressed:,} rows suppressed, "
        f"{found.at_root:.1%} of the rows with a label or range that covers everything"
    )


# ---- compared with least-loss


@dataclass(frozen=True, slots=True)
class Baseline:
    """What least-loss did with the same rows."""

    k: int
    deadline: int
    released: int
    suppressed: int
    loss: float
    """The average over all decided rows; a suppressed row has loss 1."""
    at_root: float
    """The share of released rows that show a root label, a whole domain, or null for a value they had."""


def least_loss_baseline(settings: FlexibleSettings, table: pa.Table) -> Baseline:
    """Run least-loss, the strongest alternative here, over records that the flexible method was tried on.

    It has the same quasi-identifiers, grids and domains, the largest k for all of them together, and one tree for each
    ontology. Its loss is measured as the flexible method measures its own.
    """
    k = max(settings.crowds)
    deadline = max(min(settings.window, _LONGEST), k)
    columns = [_column(settings, role, table.schema.field(role.name).type) for role in settings.schema.quasi]
    schema = Schema(person=settings.schema.person, quasi=[column.role for column in columns])
    least = LeastLoss(schema, k=k, deadline=deadline, reuse=deadline // 10, missing="covered")
    own = {column.role.name: column.read(table.column(column.role.name)) for column in columns}
    releases = [least.push_batch(pa.table({schema.person: table.column(schema.person), **own})), least.flush()]
    rows = pa.Table.from_batches([release.rows for release in releases])
    numbers = pa.chunked_array([_released(release.trace) for release in releases])
    weights = np.array([column.role.weight for column in columns])
    losses = np.zeros((len(columns), len(rows)))
    for a, column in enumerate(columns):
        name = column.role.name
        shown, was_missing = rows.column(name), own[name].take(numbers).is_null().to_numpy()
        losses[a] = np.where(was_missing, 0.0, column.losses(shown))
    suppressed = least.counts["suppressed"]
    lost = float((weights @ losses).sum()) / float(weights.sum()) + suppressed
    return Baseline(
        k=k, deadline=deadline, released=len(rows), suppressed=suppressed,
        loss=lost / max(len(rows) + suppressed, 1), at_root=float((losses >= 1).any(axis=0).mean()) if len(rows) else 0,
    )  # fmt: skip


def _released(trace: pa.RecordBatch) -> pa.Array:
    """Numbers of the records that were released, in the order of the released rows."""
    return trace.column("row").filter(pc.equal(trace.column("verdict").cast(pa.string()), "released"))


class _Column(Protocol):
    """One quasi-identifier for least-loss."""

    @property
    def role(self) -> Quasi:
        """The quasi-identifier."""

    def read(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values that least-loss reads."""

    def losses(self, shown: pa.ChunkedArray) -> Floats:
        """The loss of published values; null has one too."""


def _column(settings: FlexibleSettings, role: Quasi, kind: pa.DataType) -> _Column:
    if isinstance(role, Numeric):
        return _Ranges(role, is_moment=is_moment_type(kind))
    concepts = settings.concepts.get(role.name)
    tree = settings.listed_tree(role.name) if concepts is None else nested_tree(concepts)
    return _Labels(role.name, tree, role.weight)


class _Ranges:
    """Numbers and moments, on the grid of the flexible method."""

    def __init__(self, role: Numeric, *, is_moment: bool) -> None:
        width = GridAxis(role, is_moment=is_moment, with_root=True).grid
        # A 1,024th of a domain may have more digits than a grid can have; fewer will do to compare.
        widths = (width, float(f"{width:.6g}"), float(f"{width:.2g}"))
        fitting = (grid for grid in widths if grid_units(role.low, role.high, grid) is not None)
        self.role = replace(role, grid=next(fitting, None))

    def read(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column

    def losses(self, shown: pa.ChunkedArray) -> Floats:
        low, high = (_seconds(pc.struct_field(shown, name)) for name in ("lo", "hi"))
        found: Floats = (high - low) / (self.role.high - self.role.low)
        return np.where(np.isnan(found), 1.0, found)


class _Labels:
    """Labels of a tree; unlisted values have their own leaf."""

    def __init__(self, name: str, tree: Hierarchy, weight: float) -> None:
        has_room = len(tree) > 1  # else unlisted values are refused by both methods
        self._unknown = unknown_label(tree) if has_room else None
        whole = tree_with_unknown(tree) if has_room else tree
        self.role = Categorical(name, whole, weight=weight)
        self._leaves = pa.array(list(Leaves(whole).ranks), pa.string())
        self._labels = pa.array(whole.labels, pa.string())
        self._losses = np.append(tree_losses(whole, self._unknown), 1.0)

    def read(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        texts = column.cast(pa.string())
        if self._unknown is None:
            return texts
        is_known = pc.or_(pc.is_null(texts), pc.is_in(texts, value_set=self._leaves))
        return pc.if_else(is_known, texts, self._unknown)

    def losses(self, shown: pa.ChunkedArray) -> Floats:
        nodes = pc.fill_null(pc.index_in(shown, self._labels), len(self._labels))
        found: Floats = self._losses[nodes.to_numpy()]
        return found


def _seconds(column: pa.ChunkedArray) -> Floats:
    """Ends of ranges as numbers, moments in seconds, NaN for null."""
    is_moment = pa.types.is_timestamp(column.type)
    numbers = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()) if is_moment else column
    found: Floats = pc.fill_null(numbers.cast(pa.float64()), np.nan).to_numpy()
    return found / (1e6 if is_moment else 1.0)
