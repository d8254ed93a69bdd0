"""The two contracts of methods, StreamMethod and BatchMethod; shoal.testing checks them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from shoal.crypto.keys import Secret, as_secret
from shoal.crypto.snapshots import State, open_state, seal_state
from shoal.errors import CheckpointError
from shoal.methods.arrow_input import (
    fitted,
    plain_type,
    record_batches,
    require_record,
    require_same,
    select,
    with_gaps,
    without_null_types,
)
from shoal.methods.release import Refusal, Release
from shoal.methods.renamed_keys import renamed
from shoal.methods.settings import signature_of
from shoal.methods.shortcuts import Shortcuts
from shoal.times import now_ns

if TYPE_CHECKING:
    from shoal.methods.engine import Engine
    from shoal.schema import Schema

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a method promises, in words and numbers."""

    method: str
    statement: str
    parameters: Mapping[str, object]
    max_delay_ns: int | None
    """Longest event time a record may be pending; None if the method declares none."""
    max_pending: int | None
    """Most records pending at once; None if only time bounds them."""
    max_delay_arrivals: int | None = None
    """Most arrivals a record may be pending for; None if arrivals do not bound it."""
    keeps_pending: bool = False
    """Whether records may stay pending after a flush, because they may neither be published nor suppressed."""


def statement_for_rows(statement: str) -> str:
    """The statement of a guarantee where nothing says whose a row is: it holds for rows, not for people.

    >>> statement_for_rows("each value is shared by at least 5 different people")
    'rows, not people, are counted: each value is shared by at least 5 different rows'
    """
    return f"rows, not people, are counted: {statement.replace('different people', 'different rows')}"


class StreamMethod(Shortcuts):
    """A stream method: records in arrival order go in, publishable rows come out.

    The output does not depend on batch boundaries. A method uses no clock, file, environment or logger: time is the
    records' own, and :meth:`advance` moves it while no record arrives. A subclass names its settings and builds its
    engine; everything else is shared.
    """

    method: ClassVar[str]
    """The name a policy uses."""
    settings_class: ClassVar[Any]
    """The parameters; see :mod:`shoal.methods.settings`."""
    kernel: ClassVar[Any] = None
    """The compiled function that every stream needs: if it is not cached, the first batch takes a while."""

    _engine: Engine

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "given" in cls.__init__.__annotations__:  # help() shows the parameters by name
            cls.__signature__ = signature_of(cls.settings_class, "schema")  # type: ignore[attr-defined]

    def _start_for(self, schema: Schema, *, key: Any = None, **given: Any) -> None:
        """Begin an empty stream with parameters that are checked together with a schema."""
        unknown = sorted(set(given) - set(self.settings_class.model_fields))
        for name in unknown:
            if (sentence := renamed(name, given[name], self.settings_class.model_fields)) is not None:
                raise TypeError(f"{type(self).__name__}: {name} {sentence}")
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {', '.join(unknown)}")
        self._start(self.settings_class.for_schema(schema, given), as_secret(key))

    def _start(self, settings: Any, secret: Secret) -> None:
        """Begin an empty stream with checked settings."""
        self._settings: Any = settings
        self._secret = secret
        self._engine = self._make_engine(settings, secret)
        self._input_schema: pa.Schema | None = None
        self._output_schema = self._engine.set_types(self._engine.assumed_schema(), is_bound=False)

    def _make_engine(self, settings: Any, secret: Secret) -> Engine:
        """Build the engine of this method."""
        raise NotImplementedError

    # ---- what it is

    @property
    def settings(self) -> Any:
        """The checked parameters."""
        return self._settings

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the input columns this method reads."""
        return self._engine.columns

    @property
    def input_schema(self) -> pa.Schema:
        """Columns read, with their types (assumed before the first input)."""
        return self._input_schema or self._engine.assumed_schema()

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of every Release.rows."""
        return self._output_schema

    @property
    def trace_schema(self) -> pa.Schema:
        """Columns of every Release.trace."""
        return self._engine.trace_schema

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of every published row."""
        return self._engine.guarantee

    @property
    def pending(self) -> int:
        """Records accepted and not decided yet."""
        return self._engine.pending

    @property
    def counts(self) -> dict[str, int]:
        """Records so far: pushed, released, suppressed, dead, pending, and dead by reason."""
        return self._engine.counts.shown(self.pending)

    @property
    def metrics(self) -> dict[str, Any]:
        """Measurements of the stream so far, as numbers; may be empty."""
        return self._engine.metrics

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return self._engine.state_bytes

    @property
    def live_pairs(self) -> int:
        """(person, value) pairs inside the windows now; 0 for methods that have no windows."""
        return 0

    def explain(self, reason: str) -> Refusal:
        """Explain why a record with this reason in the trace is dead."""
        return self._engine.explain(reason)

    def take_changes(self) -> list[Any]:
        """Changes of the method's own parameters since the last call; empty for most methods."""
        return self._engine.take_changes()

    # ---- records in, rows out

    def bind(self, schema: pa.Schema) -> None:
        """Fix the input types; raise InputError when a column is missing or of a type that cannot be used."""
        fields = select(schema, self.columns)
        if self._input_schema is None:
            fields = without_null_types(fields, self._engine.assumed_schema())
        else:
            require_same(self._input_schema, fields)
        self._engine.check_types(fields)
        if self._input_schema is None:
            self._input_schema = pa.schema([(field.name, plain_type(field.type)) for field in fields])
            self._output_schema = self._engine.set_types(self._input_schema, is_bound=True)

    def push(self, record: Record) -> list[dict[str, Any]]:
        """Accept one record; return the rows that may be published now."""
        if type(record) is not dict:
            require_record(record)
        prepared, types = self._engine.read_record(record, self._input_schema)
        if types is None or self._input_schema is not None:
            return self._engine.push_record(prepared)
        self.bind(types)
        rows = self._engine.push_record(prepared)
        self._unbind_if_refused(is_assumed=any(record.get(name) is None for name in self.columns))
        return rows

    def push_batch(self, batch: Any, *, refused: Sequence[int] = ()) -> Release:
        """Accept a batch (or anything with the Arrow interface) in arrival order.

        `refused` are the places, among all records that arrived, of those that the source could not decode and that
        are not in the batch. Each gets a row number and a trace row, and is counted as unreadable. In the trace it is a
        record without a person: an auditor who reads the same input sees the same.
        """
        with self._bound_batches(batch, refused) as batches:
            return self._joined(self._engine.push_batches(batches))

    @contextmanager
    def _bound_batches(self, batch: Any, refused: Sequence[int]) -> Iterator[list[pa.RecordBatch]]:
        """The batches of an Arrow object that have rows, in the bound types; binds them if nothing is bound."""
        schema, pieces = record_batches(batch)
        if len(refused):
            pieces = [with_gaps(pa.concat_batches(pieces), refused)]
        fields = select(schema, self.columns)
        batches = [piece.select(fields.names) for piece in pieces]
        has_rows = any(piece.num_rows for piece in batches)
        is_first, is_assumed = self._input_schema is None, any(pa.types.is_null(kind) for kind in fields.types)
        has_types = has_rows or not is_assumed
        if has_types and fields != self._input_schema:  # an empty table has types too, unless a column is all null
            self.bind(fields)
            batches = [fitted(piece, self._input_schema) for piece in batches]
        yield [piece for piece in batches if piece.num_rows]
        self._engine.counts.note_unreadable(len(refused))
        if is_first and has_types:
            self._unbind_if_refused(is_assumed=is_assumed)

    def _unbind_if_refused(self, *, is_assumed: bool) -> None:
        """Forget types of which some are only assumed, where nothing was accepted: later input may have others."""
        if is_assumed and self.counts["pushed"] == self.counts["dead"]:
            self._input_schema = None
            self._output_schema = self._engine.set_types(self._engine.assumed_schema(), is_bound=False)

    def advance(self, now: object) -> Release:
        """Let time pass without a record."""
        return self._engine.advance(now_ns(now, name="now"))

    def flush(self) -> Release:
        """Decide everything pending: release or suppress, never weaken."""
        return self._engine.flush()

    def _joined(self, parts: list[Release]) -> Release:
        if len(parts) == 1:
            return parts[0].made()
        rows = [pa.RecordBatch.from_pylist([], schema=self.output_schema), *(part.rows for part in parts)]
        return Release(pa.concat_batches(rows), partial(self._joined_trace, parts))

    def _joined_trace(self, parts: list[Release]) -> pa.RecordBatch:
        nothing = pa.RecordBatch.from_pylist([], schema=self.trace_schema)
        return pa.concat_batches([nothing, *(part.trace for part in parts)])

    # ---- state

    def snapshot(self) -> bytes:
        """All of the state, sealed: a versioned header and named arrays."""
        header, arrays = self._engine.dump()
        envelope = {
            "method": self.method, "settings": self._settings.to_header(), "counts": self._engine.counts.dump(),
            "is_bound": self._input_schema is not None, "engine": header,
        }  # fmt: skip
        schema = np.frombuffer(self.input_schema.serialize(), dtype=np.uint8)
        self._is_kept = True
        return seal_state(self._secret, envelope, {"schema": schema, **arrays})

    def restore(self, state: bytes) -> Self:
        """Load a snapshot of the same method and parameters; return self."""
        opened = open_state(self._secret, state)
        if opened.header["method"] != self.method or not self._has_settings(opened.header["settings"]):
            raise CheckpointError("the snapshot is of another method or of other parameters")
        self._load(opened)
        return self

    @classmethod
    def from_header(cls, header: Mapping[str, Any], secret: Secret) -> Self:
        """An empty stream with the settings of a header, as to_header() of the settings returns it."""
        made = cls.__new__(cls)
        made._start(cls.settings_class.from_header(header), secret)  # noqa: SLF001 - the same class
        return made

    @classmethod
    def from_state(cls, state: State, secret: Secret) -> Self:
        """The method of an opened snapshot."""
        made = cls.from_header(state.header["settings"], secret)
        made._load(state)  # noqa: SLF001
        return made

    def _has_settings(self, header: Mapping[str, Any]) -> bool:
        """Whether a snapshot's settings are equivalent, however they are written."""
        return bool(self.settings_class.from_header(header).describe() == self._settings.describe())

    def _load(self, state: State) -> None:
        header = state.header
        schema = pa.ipc.read_schema(pa.py_buffer(state.arrays["schema"]))
        self._engine = self._make_engine(self._settings, self._secret)
        self._input_schema = schema if header["is_bound"] else None
        self._output_schema = self._engine.set_types(schema, is_bound=header["is_bound"])
        self._engine.counts.load(header["counts"])
        self._engine.load(header["engine"], state.arrays)


class BatchMethod(ABC):
    """A batch method: all records go in at once, one result comes out."""

    method: ClassVar[str]
    """The name a policy uses."""
    settings: Any
    """The checked parameters."""
    settings_class: ClassVar[Any]
    """The parameters; see :mod:`shoal.methods.settings`."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} = {value}" for name, value in self.settings.to_header().items())
        return f"<{type(self).__name__}: {shown}>"

    @abstractmethod
    def anonymize(self, records: Any, *, progress: Callable[[str, int, int], None] | None = None) -> Any:
        """Decide about all records; the result has records, blocks, error and certificate.

        `progress` is called with the current activity, the size of itemsets, and the number of blocks left.
        """

    @property
    @abstractmethod
    def policy(self) -> dict[str, Any]:
        """The promise as the content of a policy, which :func:`shoal.audit` reads."""

    def audit(self, truth: Any, release: Any) -> Any:
        """Check a release of this method with :func:`shoal.audit`.

        `truth` is what was given to :meth:`anonymize`; `release` is its result, or what was published of it.
        """
        # By name: the auditor and the methods share no code, and neither imports the other.
        return import_module("shoal.auditor").audit(release, truth=truth, policy=self._policy_for(truth))

    def _policy_for(self, truth: Any) -> dict[str, Any]:
        """The policy, with the names of person and item if the truth has a row for each."""
        names = list(getattr(truth, "column_names", getattr(truth, "columns", ())))
        if isinstance(truth, list | tuple) and truth and isinstance(truth[0], tuple):
            names = ["person", "items"]
        if len(names) != 2:
            return self.policy
        return {"stream": {"person": names[0]}, "anonymize": {**self.policy["anonymize"], "item": names[1]}}
