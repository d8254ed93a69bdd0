"""What is lost of each column: the share of its domain, or of its values, that a published label covers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import is_interval
from shoal.methods.registry import METHODS
from shoal.policy import Policy
from shoal.schema import Categorical, Numeric
from shoal.serve.recent import Step


def column_losses(policy: Policy, rows: pa.Table, steps: list[Step]) -> list[dict[str, Any]]:
    """The average loss of every column among published rows, from 0 to 1.

    For z-anonymity it is the share of decided records whose value is not published.
    """
    if METHODS[policy.anonymize.METHOD].family == "z":
        method: Any = policy.anonymize
        decided = sum(pc.sum(pc.is_null(step.release.trace.column("reason"))).as_py() or 0 for step in steps)
        found = {name: 1 - _shown(rows, name) / decided for name in method.columns if decided}
    else:
        roles = [role for role in policy.parameters()["schema"].quasi if role.name in rows.column_names]
        found = {role.name: loss for role in roles if (loss := _loss(rows.column(role.name), role)) is not None}
    return [{"column": name, "loss": round(loss, 4)} for name, loss in found.items()]


def _shown(rows: pa.Table, name: str) -> int:
    return rows.num_rows - rows.column(name).null_count if name in rows.column_names else 0


def _loss(column: Any, role: Numeric | Categorical) -> float | None:
    whole = column.combine_chunks().drop_null()
    if isinstance(role, Numeric):
        return _of_ranges(whole, role) if is_interval(whole.type) else None
    tree: Any = role.hierarchy
    if tree is None or tree.is_open or not len(tree):
        return None
    leaves: dict[str, int] = dict(zip(tree.labels, tree.leaf_counts.tolist(), strict=True))
    total = leaves[tree.root]
    counted: list[dict[str, Any]] = pc.value_counts(whole).to_pylist()
    lost = sum((leaves.get(one["values"], total) - 1) * one["counts"] for one in counted)
    return float(lost / (max(total - 1, 1) * max(len(whole), 1)))


def _of_ranges(column: Any, role: Numeric) -> float:
    low, high = (pc.struct_field(column, end) for end in ("lo", "hi"))
    scale = 1.0
    if pa.types.is_timestamp(low.type):
        low, high = (end.cast(pa.timestamp("us", low.type.tz)).cast(pa.int64()) for end in (low, high))
        scale = 1e6
    width = pc.mean(pc.subtract(high, low)).as_py()
    return 0.0 if width is None else float(width) / (scale * (role.high - role.low))
