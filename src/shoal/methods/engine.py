"""The part of a stream method that its family provides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from shoal.methods.base import Guarantee, Record
    from shoal.methods.release import Counts, Refusal, Release


class Engine(Protocol):
    """It reads, decides and publishes.

    An engine is composed of a reader (Arrow to arrays), a decider (state and kernels, the only place where state
    changes) and a publisher (decisions to Arrow). It never checks batches against the bound schema, joins releases of
    several batches or builds the snapshot envelope: :class:`StreamMethod` does that once for all families.
    """

    counts: Counts
    columns: tuple[str, ...]
    """Names of the input columns that are read."""
    trace_schema: pa.Schema

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of every published row."""

    @property
    def pending(self) -> int:
        """Records accepted and not decided yet."""

    @property
    def metrics(self) -> dict[str, Any]:
        """Measurements of the stream so far, as numbers; may be empty."""

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""

    def assumed_schema(self) -> pa.Schema:
        """The input types assumed before the first input."""

    def check_types(self, fields: pa.Schema) -> None:
        """Raise InputError if a column has an unusable type."""

    def set_types(self, schema: pa.Schema, *, is_bound: bool) -> pa.Schema:
        """Prepare for input of these types; return the output schema."""

    def read_record(self, record: Record, known: pa.Schema | None) -> tuple[Any, pa.Schema | None]:
        """Check one record (raise InputError, change nothing); return it in the form that push_record() accepts.

        Also return the types to bind the stream to, None if nothing needs them yet. `known` are the bound types.
        """

    def push_record(self, record: Any) -> list[dict[str, Any]]:
        """Decide about one record that read_record() prepared; return the rows that may be published now."""

    def push_batches(self, batches: list[pa.RecordBatch]) -> list[Release]:
        """Decide about batches of the bound types, in arrival order; one release for each part decided together."""

    def advance(self, now_ns: int) -> Release:
        """Let time pass without a record."""

    def flush(self) -> Release:
        """Decide everything pending."""

    def take_changes(self) -> list[Any]:
        """Changes of the method's own parameters since the last call; empty for most methods."""

    def explain(self, reason: str) -> Refusal:
        """Why a record with this reason is refused, in words."""

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The state as plain values and named arrays."""

    def load(self, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Load a state from dump(), after set_types() with the same schema."""
