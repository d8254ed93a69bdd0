"""Short fingerprints of outputs, the same on every machine: plain values, no sentence, no path, no duration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

Digests = dict[str, str]
TOLD_IN_WORDS = {"guarantee", "statement", "warnings", "failure", "outcome", "sentence", "not_checked"}
TOLD_IN_WORDS |= {"about", "advice", "counted_in_classes", "remarks", "verdict", "words"}
"""Fields of summaries and reports that hold sentences, or follow from the others."""
OF_THIS_RUN = {"seconds", "compiling_seconds", "rows_per_second", "state_bytes", "released_to", "dead_letters", "trace"}
OF_THIS_RUN |= {"certificate_file", "blocks_file", "written"}
"""Fields that differ between machines and folders."""
BUT = "but"
"""In place of a digest: two ways to the same output disagree."""


def digest(content: Any) -> str:
    """A short fingerprint of plain values."""
    data = content if isinstance(content, bytes) else json.dumps(content, default=str).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def agreed(ways: Mapping[str, Any]) -> str:
    """One digest for an output that several ways must give; the first way counts, others are listed if they differ."""
    found = {way: digest(content) for way, content in ways.items()}
    first, *others = found
    differing = [f"{way} {found[way]}" for way in others if found[way] != found[first]]
    return f"{found[first]} {BUT} {', '.join(differing)}" if differing else found[first]


def rounded(value: Any) -> Any:
    """Plain values; fractions to twelve digits, as sums may be taken in another order."""
    if isinstance(value, Mapping):
        return {str(name): rounded(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(below) for below in value]
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.12g}") if isinstance(value, float) else value


def plain(value: Any) -> Any:
    """Numbers, codes and names alone, without the fields that hold sentences or depend on the machine."""
    if isinstance(value, Mapping):
        left_out = TOLD_IN_WORDS | OF_THIS_RUN
        return {str(name): plain(below) for name, below in value.items() if name not in left_out}
    return [plain(below) for below in value] if isinstance(value, list | tuple) else rounded(value)


def table(rows: pa.Table | pa.RecordBatch) -> list[Any]:
    """A table as its columns and rows."""
    return [rows.schema.to_string(show_field_metadata=False, show_schema_metadata=False), rows.to_pylist()]


def report(found: Mapping[str, Any]) -> list[Any]:
    """An audit's report without its sentences; findings and figures in an order of their own."""
    facts = plain(found)
    findings = sorted(json.dumps(one, sort_keys=True, default=str) for one in facts.pop("findings"))
    return [json.dumps(facts, sort_keys=True, default=str), findings, len(found["not_checked"])]
