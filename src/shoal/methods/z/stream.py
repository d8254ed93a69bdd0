"""What a z-anonymizer is and holds: its parameters, columns, counts and state."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.pseudonyms import Pseudonyms
from shoal.crypto.snapshots import State, open_state, seal_state
from shoal.errors import CheckpointError, InputError
from shoal.kernels import clock as clock_kernel
from shoal.methods.arrow_input import (
    as_bytes,
    is_carriable,
    plain_type,
    require_same,
    select,
)  # fmt: skip
from shoal.methods.base import DEAD, RELEASED, SUPPRESSED, Guarantee, Refusal, StreamMethod
from shoal.methods.text_keys import is_text_like, key_words
from shoal.methods.trace import Tracer
from shoal.methods.z.reasons import (
    explain,
    reasons_for,
)
from shoal.methods.z.reorder_buffer import HeldRows, Waiting
from shoal.methods.z.settings import ZSettings
from shoal.schema import format_duration
from shoal.times import EARLIEST, is_time_type


class ZStream(StreamMethod):
    """The state of a z-anonymizer and the questions about it; deciding is added by the classes on top."""

    method: ClassVar[str] = "z-anonymity"
    _settings: ZSettings
    kernel: ClassVar[Any] = staticmethod(clock_kernel.admit)

    def _begin(self, settings: ZSettings, secret: Secret) -> None:
        self._settings = settings
        self._secret = secret
        self._attributes = settings.attributes
        self._person_key = key_words(secret.subkey("table of people"))
        for column in self._attributes:
            column.rekey(key_words(secret.subkey("table of values", column.name.encode())))
        self._pseudonyms = Pseudonyms(secret, rotation_ns=settings.rotation_ns)
        self._reasons = reasons_for(column.name for column in self._attributes)
        self._tracer = Tracer(self._reasons, self._thresholds(), follows=settings.target is not None)
        self._clock = np.zeros(clock_kernel.CLOCK, dtype=np.int64)
        self._clock[clock_kernel.NEWEST] = EARLIEST  # time only ever moves forward, from the first event on too
        self._held = HeldRows()
        self._seen = 0
        self._counts = dict.fromkeys((RELEASED, SUPPRESSED, *self._reasons), 0)
        self._scratch = np.zeros((1, 2), dtype=np.int64)
        self._input_schema: pa.Schema | None = None
        self._output_schema = self._outgoing(self._assumed_schema())

    def _thresholds(self) -> dict[str, int]:
        if not self._settings.is_table:
            return {"z": self._attributes[0].z}
        return {f"z.{column.name}": column.z for column in self._attributes}

    @property
    def _is_kept_blank(self) -> bool:
        return not self._settings.is_table and self._attributes[0].on_private == "blank"

    # ---- what it is

    @property
    def columns(self) -> tuple[str, ...]:
        return self._settings.columns

    @property
    def input_schema(self) -> pa.Schema:
        return self._input_schema or self._assumed_schema()

    @property
    def output_schema(self) -> pa.Schema:
        return self._output_schema

    @property
    def trace_schema(self) -> pa.Schema:
        return self._tracer.schema

    @property
    def guarantee(self) -> Guarantee:
        promises = [
            f"every {column.name!r} that leaves was exposed by at least {column.z} different people "
            f"within the {format_duration(column.window_ns)} up to it"
            for column in self._attributes
        ]
        return Guarantee(
            method=self.method,
            statement="; ".join(promises),
            parameters=self._settings.describe(),
            max_delay_ns=self._settings.lateness_ns,
            max_pending=0 if self._settings.lateness_ns == 0 else None,
        )

    @property
    def pending(self) -> int:
        return len(self._held)

    @property
    def counts(self) -> dict[str, int]:
        """Records pushed so far by what became of them: released, suppressed, dead (and dead by reason)."""
        dead = {reason: self._counts[reason] for reason in self._reasons if self._counts[reason]}
        return {
            "pushed": self._seen,
            RELEASED: self._counts[RELEASED],
            SUPPRESSED: self._counts[SUPPRESSED],
            DEAD: sum(dead.values()),
            "pending": self.pending,
            **dead,
        }

    @property
    def live_pairs(self) -> int:
        """(person, value) pairs inside the windows now: what the memory is for."""
        return sum(column.crowd.live_pairs for column in self._attributes)

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return sum(column.crowd.nbytes for column in self._attributes)

    def explain(self, reason: str) -> Refusal:
        return explain(reason, person=self._settings.person, time=self._settings.time)

    # ---- types

    def bind(self, schema: pa.Schema) -> None:
        fields = select(schema, self.columns)
        self._check_types(fields)
        if self._input_schema is None:
            self._input_schema = pa.schema([(field.name, plain_type(field.type)) for field in fields])
            self._output_schema = self._outgoing(self._input_schema)

    def _check_types(self, fields: pa.Schema) -> None:
        if self._input_schema is not None:
            require_same(self._input_schema, fields)
        settings = self._settings
        if not is_time_type(fields.field(settings.time).type):
            raise InputError(
                f"column {settings.time!r}: {fields.field(settings.time).type} is no time; "
                "give timestamps, numbers of seconds, or ISO 8601 text"
            )
        for name in (settings.person, *(column.name for column in self._attributes)):
            if not is_text_like(fields.field(name).type):
                raise InputError(
                    f"column {name!r}: {fields.field(name).type} cannot be counted; give text or whole numbers"
                )

        for name in settings.carry:
            if not is_carriable(fields.field(name).type):
                raise InputError(
                    f"column {name!r}: {fields.field(name).type} cannot be carried; give plain values, or lists and "
                    "structs of them"
                )

    def _assumed_schema(self) -> pa.Schema:
        types = {self._settings.time: pa.timestamp("ns", tz="UTC")}
        return pa.schema([(name, types.get(name, pa.string())) for name in self.columns])

    def _outgoing(self, schema: pa.Schema) -> pa.Schema:
        settings = self._settings
        return pa.schema(
            [
                (settings.time, schema.field(settings.time).type),
                (settings.person, pa.string()),
                *((column.name, column.output_type(schema.field(column.name).type)) for column in self._attributes),
                *((name, schema.field(name).type) for name in settings.carry),
            ]
        )

    # ---- state

    def snapshot(self) -> bytes:
        waiting = self._held.dump(self.input_schema)
        header = {
            "method": self.method,
            "settings": self._settings.describe(),
            "seen": self._seen,
            "counts": self._counts,
            "is_bound": self._input_schema is not None,
        }
        arrays: dict[str, Any] = {
            "clock": self._clock,
            "schema": as_bytes(self.input_schema.serialize()),
            "held.rows": as_bytes(waiting.batch.serialize()),
            "held.seqs": waiting.seqs,
            "held.times": waiting.times,
            "held.persons": waiting.persons,
        }
        for number, column in enumerate(self._attributes):
            arrays[f"crowd{number}.pool"], arrays[f"crowd{number}.attrs"] = column.crowd.dump()
        arrays |= self._further_state()
        return seal_state(self._secret, header, arrays)

    def _further_state(self) -> dict[str, Any]:
        """What classes on top keep besides."""
        return {}

    def restore(self, state: bytes) -> Self:
        opened = open_state(self._secret, state)
        if opened.header["method"] != self.method or opened.header["settings"] != self._settings.describe():
            raise CheckpointError("the snapshot is of another method or of other parameters")
        self._load(opened)
        return self

    def _load(self, state: State) -> None:
        arrays = state.arrays
        schema = pa.ipc.read_schema(pa.py_buffer(arrays["schema"]))
        self._input_schema = schema if state.header["is_bound"] else None
        self._output_schema = self._outgoing(schema)
        self._clock = arrays["clock"].copy()
        self._seen, self._counts = state.header["seen"], dict(state.header["counts"])
        self._held = HeldRows()
        rows = pa.ipc.read_record_batch(pa.py_buffer(arrays["held.rows"]), schema)
        self._held.add(Waiting(arrays["held.seqs"], arrays["held.times"], arrays["held.persons"], rows))
        for number, column in enumerate(self._attributes):
            column.crowd.load(arrays[f"crowd{number}.pool"], arrays[f"crowd{number}.attrs"])
