"""target in micro-batches: one task follows the stream, with the people behind the values that shards have counted.

It is one shard more: its state is what one machine keeps of the running epoch, and what earlier epochs taught. So z is
chosen, and values are withheld, with the code and in the order of one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.crypto.snapshots import open_state, seal_state
from shoal.methods.release import NO_REASON
from shoal.methods.z.epochs.values import joined_values
from shoal.methods.z.trace import Decisions
from shoal.spark.recipe import Recipe
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.epochs.close import attributes_of, batches_in, pieces_of
from shoal.spark.z.epochs.value_shard import ROWS, STRETCH, TRACE
from shoal.spark.z.output_ranges import NOTE, Pieces, Ranges

Ints = npt.NDArray[np.int64]
FOLLOWED: Final = "followed"
"""In the note of the task: the metrics of the target, and every z that was set."""


@dataclass(frozen=True, slots=True)
class FollowStream:
    """Decides about the rows of a micro-batch, which all come to one task."""

    recipe: Recipe
    types: pa.Schema
    admission: Any
    """Broadcast: what admission found out."""
    ranges: Ranges
    states: ShardStates
    number: int
    """That of its own shard, after those of values."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = [batch.slice(at, 1) for batch in batches for at in range(batch.num_rows)]
        if not messages:
            return
        clock, pieces = self.admission.value.clock, Pieces(self.ranges, waits=True)
        for text in (note for message in messages for note in message.column(NOTE).drop_null().to_pylist()):
            yield pieces.note(text)
        shard = self.states.open(self.number, partial(FollowShard, self.recipe, self.types), self._replay)
        values = [shard.joined(messages, stretch) for stretch in range(len(clock.restarts) + 1)]
        for closed in shard.method.follow_values(values):
            yield from pieces_of(closed, shard.method, pieces)
        found = {"shard": self.number, "live_pairs": 0, "state_bytes": 0, FOLLOWED: shard.outcome()}
        if not clock.is_end:
            given = [decisions for decisions, _ in values]
            found["chain"] = self.states.keep(self.number, shard, lambda: _log(self.recipe, given))
        yield pieces.note(orjson.dumps(found).decode())

    def _replay(self, shard: FollowShard, log: bytes) -> None:
        """Follow again what was judged; nothing of it is published."""
        state = open_state(self.recipe.secret(), log)
        shard.method.follow_values(
            shard.counted(state.arrays[f"times{number}"], state.arrays[f"details{number}"])
            for number in range(state.header["stretches"])
        )
        shard.method.take_changes()


class FollowShard:
    """The follower of a stream.

    Parameters
    ----------
    state
        From dump() after the micro-batch before.
    """

    def __init__(self, recipe: Recipe, types: pa.Schema, state: bytes | None = None) -> None:
        self.method: Any = recipe.make()
        if state is not None:
            self.method.restore(state)
        self.method.bind(types)
        self._attributes = attributes_of(self.method)
        self._nothing = pa.RecordBatch.from_pylist([], schema=self.method.output_schema)

    def joined(self, messages: Sequence[pa.RecordBatch], stretch: int) -> tuple[Decisions, pa.RecordBatch]:
        """What all shards say about the rows of a stretch of time."""
        own = [message for message in messages if message.column(STRETCH)[0].as_py() == stretch]
        traces, rows = batches_in(own, TRACE), batches_in(own, ROWS)
        if not traces:
            return self.counted(np.empty(0, np.int64), np.empty(0, np.int64))
        return joined_values(traces, rows, self._attributes)

    def counted(self, times: Ints, details: Ints) -> tuple[Decisions, pa.RecordBatch]:
        """Rows that were judged, of which only times and details are known."""
        zeros, no = np.zeros(len(times), np.int64), np.zeros(len(times), np.bool_)
        reasons = np.full(len(times), NO_REASON, dtype=np.int8)
        details = details.reshape(-1, 2 * len(self._attributes) + 1)
        return Decisions(zeros, times, zeros, no, reasons, zeros, details), self._nothing

    def outcome(self) -> dict[str, Any]:
        """The metrics of the target so far, and every z that was set now."""
        changes = [(change.moment, change.z) for change in self.method.take_changes()]
        return {"metrics": self.method.metrics, "changes": changes}

    def dump(self) -> bytes:
        """The state, sealed."""
        snapshot: bytes = self.method.snapshot()
        return snapshot


def _log(recipe: Recipe, stretches: Sequence[Decisions]) -> bytes:
    """What the follower was given, from which it can follow again."""
    arrays: dict[str, Any] = {}
    for number, found in enumerate(stretches):
        judged = found.reasons == NO_REASON
        arrays |= {f"times{number}": found.times[judged], f"details{number}": found.details[judged]}
    return seal_state(recipe.secret(), {"stretches": len(stretches)}, arrays)
