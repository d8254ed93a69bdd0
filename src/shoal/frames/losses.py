"""What was lost of each quasi-identifier: the share of its domain, or of its values, that a published label covers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import is_interval


def losses_of(rows: pa.Table, policy: Any) -> dict[str, float]:
    """The average loss of every column of quasi-identifiers; nothing where the policy is a file."""
    rules = policy.get("anonymize", {}).get("quasi", {}) if isinstance(policy, Mapping) else {}
    found = {}
    for name, rule in rules.items():
        if name not in rows.column_names or not rows.num_rows:
            continue
        column = rows.column(name).combine_chunks()
        if is_interval(column.type):
            found[name] = _of_ranges(column, rule)
        elif isinstance(rule.get("hierarchy"), Mapping) and rule["hierarchy"].get("kind") == "nested":
            found[name] = _of_labels(column, rule["hierarchy"]["tree"])
    return found


def _of_ranges(column: Any, rule: Mapping[str, Any]) -> float:
    low, high = (pc.struct_field(column.drop_null(), end) for end in ("lo", "hi"))
    if pa.types.is_timestamp(low.type):
        low, high = (end.cast(pa.timestamp("us", low.type.tz)).cast(pa.int64()) for end in (low, high))
        whole = (_seconds(rule["high"]) - _seconds(rule["low"])) * 1_000_000
    else:
        whole = float(rule["high"]) - float(rule["low"])
    width = pc.mean(pc.subtract(high, low)).as_py()
    return 0.0 if width is None else float(width) / whole


def _seconds(bound: Any) -> float:
    if isinstance(bound, int | float):
        return float(bound)
    moment = datetime.fromisoformat(bound) if isinstance(bound, str) else bound
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _of_labels(column: Any, tree: Mapping[str, Any]) -> float:
    leaves: dict[str, int] = {}
    (root,) = tree
    total = _count(root, tree[root], leaves)
    counted = pc.value_counts(column.drop_null()).to_pylist()
    rows = sum(one["counts"] for one in counted)
    lost = sum((leaves.get(one["values"], total) - 1) * one["counts"] for one in counted)
    return float(lost / (max(total - 1, 1) * max(rows, 1)))


def _count(label: str, below: Any, leaves: dict[str, int]) -> int:
    """Count the values under every label."""
    if isinstance(below, Mapping) and below:
        count = sum(_count(child, inner, leaves) for child, inner in below.items())
    elif isinstance(below, list | tuple) and below:
        count = sum(_count(child, None, leaves) for child in below)
    else:
        count = 1
    leaves[label] = count
    return count
