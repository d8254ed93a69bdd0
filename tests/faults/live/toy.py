"""A method for exhaustive searches: tiny and fast, and its output depends on everything that ever happened to it."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from shoal.methods.base import Guarantee
from shoal.methods.release import Refusal, Release

WAIT = 10
NOTHING = pa.RecordBatch.from_pylist(
    [], schema=pa.schema([("row", pa.int64()), ("verdict", pa.string()), ("reason", pa.string())])
)


class Toy:
    """Releases a record once another one is there, or once `WAIT` seconds have passed."""

    columns = ("ts", "user")
    output_schema = pa.schema([("mark", pa.string())])
    trace_schema = NOTHING.schema
    guarantee = Guarantee("toy", "nothing", {}, None, None)
    metrics: ClassVar[dict[str, Any]] = {}
    live_pairs = state_bytes = 0

    def __init__(self) -> None:
        self._history = ""
        self._waiting: list[int] = []
        self.counts = {"pushed": 0, "released": 0, "suppressed": 0, "dead": 0}

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def bind(self, schema: pa.Schema) -> None:
        pass

    def push_batch(self, batch: pa.RecordBatch, *, refused: list[int]) -> Release:
        rows: list[str] = []
        for record in batch.to_pylist():
            self.counts["pushed"] += 1
            self._note(record)
            rows += [self._release() for _ in self._waiting]
            self._waiting = [record["ts"]]
        return self._made(rows)

    def advance(self, now: np.datetime64) -> Release:
        self._note(str(now))
        is_due = bool(self._waiting) and self._waiting[0] + WAIT <= now.astype(int) // 10**9
        return self._made([self._release()] if is_due and self._waiting.pop() is not None else [])

    def flush(self) -> Release:
        waiting, self._waiting = self._waiting, []
        return self._made([self._release() for _ in waiting])

    def _note(self, what: Any) -> None:
        self._history = blake2b(f"{self._history}{what}".encode(), digest_size=4).hexdigest()

    def _release(self) -> str:
        self.counts["released"] += 1
        self._note("released")
        return self._history

    def _made(self, rows: list[str]) -> Release:
        return Release(pa.record_batch([pa.array(rows, pa.string())], schema=self.output_schema), NOTHING)

    def snapshot(self) -> bytes:
        return json.dumps([self._history, self._waiting, self.counts]).encode()

    def restore(self, state: bytes) -> None:
        self._history, self._waiting, self.counts = json.loads(state)

    def explain(self, reason: str) -> Refusal:
        raise NotImplementedError

    def take_changes(self) -> list[Any]:
        return []
