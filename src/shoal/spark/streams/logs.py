"""Logs of shards: the rows that a shard was given with a micro-batch, sealed, from which it can be decided again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.crypto.snapshots import open_state, seal_state
from shoal.methods.arrow_input import as_bytes
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import packed


def sealed_rows(recipe: Recipe, given: Sequence[pa.RecordBatch], **header: Any) -> bytes:
    """Seal rows, of which there may be none, together with values that fit in JSON."""
    rows = as_bytes(packed(pa.concat_batches(given)).buffers()[2]) if given else np.empty(0, dtype=np.uint8)
    return seal_state(recipe.secret(), header, {"rows": rows})


def opened_rows(recipe: Recipe, log: bytes) -> tuple[pa.RecordBatch | None, Mapping[str, Any]]:
    """What sealed_rows() sealed; None if there are no rows."""
    found = open_state(recipe.secret(), log)
    rows = found.arrays["rows"]
    return pa.ipc.open_stream(pa.py_buffer(rows)).read_next_batch() if len(rows) else None, found.header
