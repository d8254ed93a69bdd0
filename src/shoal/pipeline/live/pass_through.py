"""A method that publishes every message as it came: what `shoal repartition` runs instead of an anonymizer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import pyarrow as pa

from shoal.errors import InputError
from shoal.methods.base import Guarantee
from shoal.methods.release import DEAD, UNREADABLE, Refusal, Release
from shoal.methods.settings import Settings
from shoal.pipeline.live.wiring import WHOLE
from shoal.policy.method_base import KeyPath, MethodSection, Table
from shoal.policy.tables import StreamSection

_TRACE: Final = pa.schema([("row", pa.int64()), ("verdict", pa.string()), ("reason", pa.string())])


class PassThroughSection(MethodSection):
    """What takes the place of [anonymize]: the column that the topic is keyed by."""

    METHOD: ClassVar[str] = "repartition"
    SETTINGS: ClassVar[type[Settings]] = Settings
    ADVICE: ClassVar[str] = "look at the dead letters"
    COMPILES: ClassVar[bool] = False

    by: str
    partitions: int
    """Of the topic that is written: with another number, keys would be in other partitions."""
    keeps_keys: bool

    @classmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        return []

    @classmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        return {}

    @classmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        return []

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        return {}

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    @property
    def runs_on_time(self) -> bool:
        return False


class PassThrough:
    """The part of a stream method that a run uses; nothing is ever pending, and nothing protects anyone."""

    metrics: ClassVar[dict[str, Any]] = {}
    live_pairs = state_bytes = pending = 0
    trace_schema = _TRACE

    def __init__(self, by: str, time: str | None) -> None:
        self._by = by
        self.columns = tuple(dict.fromkeys(name for name in (by, time, WHOLE) if name is not None))
        self.guarantee = Guarantee("repartition", "none: raw messages, as they came", {}, None, None)
        self.counts = {"pushed": 0, "released": 0, "suppressed": 0, "dead": 0, UNREADABLE: 0}

    def bind(self, schema: pa.Schema) -> None:
        """Fix the types; InputError if the column is missing."""
        if self._by not in schema.names:
            raise InputError(f"there is no column {self._by!r}; name one that messages have, with --by")
        self.output_schema = pa.schema([schema.field(self._by), schema.field(WHOLE)])

    def push_batch(self, batch: pa.RecordBatch, *, refused: Sequence[int] = ()) -> Release:
        """Release every record of the batch; `refused` are the places of those that could not be decoded."""
        first = self.counts["pushed"]
        self.counts["pushed"] += batch.num_rows + len(refused)
        self.counts["released"] += batch.num_rows
        for name in ("dead", UNREADABLE):
            self.counts[name] += len(refused)
        trace = [{"row": first + row, "verdict": DEAD, "reason": UNREADABLE} for row in refused]
        rows = batch.select(self.output_schema.names)
        return Release(rows, lambda: pa.RecordBatch.from_pylist(trace, schema=_TRACE))

    def advance(self, now: object) -> Release:
        """Nothing waits for time."""
        return self.flush()

    def flush(self) -> Release:
        """Nothing is pending."""
        nothing = pa.RecordBatch.from_pylist([], schema=self.output_schema)
        return Release(nothing, pa.RecordBatch.from_pylist([], schema=_TRACE))

    def snapshot(self) -> bytes:
        """Counts only."""
        return json.dumps(self.counts).encode()

    def restore(self, state: bytes) -> None:
        """Load counts."""
        self.counts = json.loads(state)

    def explain(self, reason: str) -> Refusal:
        """The source has given the reason of every record that is refused."""
        return Refusal(None, "could not be decoded")

    def take_changes(self) -> list[Any]:
        """None: nothing changes by itself."""
        return []
