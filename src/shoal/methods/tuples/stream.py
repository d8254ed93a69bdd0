"""What a tuple anonymizer is and holds: its parameters, columns, counts and state."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.snapshots import State, open_state, seal_state
from shoal.errors import CheckpointError, InputError
from shoal.kernels import clock as clock_kernel
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.run import run_tuples
from shoal.methods.arrow_input import as_bytes, is_carriable, plain_type, require_same, select
from shoal.methods.base import DEAD, RELEASED, SUPPRESSED, Guarantee, Refusal, StreamMethod
from shoal.methods.carried_columns import KeptColumns
from shoal.methods.quasi_readers import NumericReader, Reader, reader_of
from shoal.methods.refusals import explain, tuple_reasons
from shoal.methods.schema_arrays import Shape, compile_shape
from shoal.methods.text_keys import is_text_like, key_words
from shoal.methods.tuples.sensitive import SensitiveCodes, is_ordered
from shoal.methods.tuples.settings import TupleSettings
from shoal.methods.tuples.state import Run, TupleState
from shoal.times import EARLIEST, is_time_type

_VERDICT: Final = pa.dictionary(pa.int8(), pa.string())
_REASON: Final = pa.dictionary(pa.int16(), pa.string())
_REFERENCE: Final = pa.list_(pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())]))


class TupleStream(StreamMethod):
    """The state of a tuple anonymizer and the questions about it; deciding is added by the classes on top."""

    method: ClassVar[str]
    settings_class: ClassVar[type[TupleSettings]]
    _settings: TupleSettings
    number: ClassVar[int]
    """The method's number in the kernels."""
    run: ClassVar[Run] = staticmethod(run_tuples)
    kernel: ClassVar[Any] = staticmethod(run_tuples)

    def _begin(self, settings: TupleSettings, secret: Secret) -> None:
        self._settings = settings
        self._secret = secret
        self._person_key = key_words(secret.subkey("table of people"))
        self._order_key = key_words(secret.subkey("order of published tuples"))
        schema = settings.schema
        self._readers: list[Reader] = [reader_of(role) for role in schema.quasi]
        self._reasons = tuple_reasons(schema)
        self._reason_names = pa.array(self._reasons, type=pa.string())
        self._counts = dict.fromkeys((*self._reasons, "clamped"), 0)
        self._seen = 0
        self._clock = np.zeros(clock_kernel.CLOCK, dtype=np.int64)
        self._clock[clock_kernel.NEWEST] = EARLIEST
        columns = schema.sensitive if settings.is_diverse else ()
        self._codes = [SensitiveCodes(name, (settings.declared or {}).get(name)) for name in columns]
        shape = compile_shape(schema.quasi, [reader.leaves for reader in self._readers])
        self._state = self._make_state(shape)
        self._input_schema: pa.Schema | None = None
        self._take_types(self._assumed_schema())

    def _make_state(self, shape: Shape) -> TupleState:
        return TupleState(
            shape, self._plan(), self._ratios(), run=type(self).run, columns=len(self._codes),
            recent=self._settings.remembers,
        )  # fmt: skip

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = self._settings.plan()
        plan[t.METHOD] = self.number
        return plan

    def _ratios(self) -> npt.NDArray[np.float64]:
        return self._settings.ratios()

    # ---- what it is

    @property
    def columns(self) -> tuple[str, ...]:
        return self._settings.schema.columns

    @property
    def input_schema(self) -> pa.Schema:
        return self._input_schema or self._assumed_schema()

    @property
    def output_schema(self) -> pa.Schema:
        return self._output_schema

    @property
    def trace_schema(self) -> pa.Schema:
        fields = [
            ("row", pa.int64()), ("verdict", _VERDICT), ("reason", _REASON), ("group", pa.int64()),
            ("delay", pa.int64()), ("k", pa.int64()), ("reused", pa.bool_()), ("carriers", pa.list_(pa.int32())),
            ("event", pa.int64()),
        ]  # fmt: skip
        return pa.schema([*fields, *([("reference", _REFERENCE)] if self._settings.remembers else [])])

    @property
    def guarantee(self) -> Guarantee:
        settings = self._settings
        return Guarantee(
            method=self.method,
            statement=self._promise(),
            parameters=settings.describe(),
            max_delay_ns=settings.deadline if settings.is_timed else None,
            max_pending=None if settings.is_timed else settings.deadline,
            max_delay_arrivals=None if settings.is_timed else settings.deadline,
        )

    def _promise(self) -> str:
        settings = self._settings
        each = "each cluster, but not each class of equal rows," if settings.nulls == "paper" else "each"
        parts = [_PROMISES[settings.nulls].format(k=settings.k, carriers=settings.carriers)]
        if settings.distinct_l > 1:
            parts.append(f"{each} with at least {settings.distinct_l} different sensitive values")
        if settings.entropy > 1.0:
            parts.append(f"{each} with an entropy of sensitive values of at least log {settings.entropy:g}")
        if settings.t is not None:
            parts.append(f"{each} with sensitive values within {settings.t:g} of the reference")
        if settings.max_share is not None:
            parts.append(f"no person has more than {settings.max_share:g} of the rows of one")
        return "; ".join(parts)

    @property
    def pending(self) -> int:
        return self._state.held

    @property
    def counts(self) -> dict[str, int]:
        """Records pushed so far by what became of them: released, suppressed, dead (and dead by reason)."""
        dead = {reason: self._counts[reason] for reason in self._reasons if self._counts[reason]}
        tally = self._state.tally
        return {
            "pushed": self._seen,
            RELEASED: int(tally[t.RELEASED]),
            SUPPRESSED: int(tally[t.SUPPRESSED]),
            DEAD: sum(dead.values()),
            "pending": self.pending,
            **dead,
        }

    @property
    def metrics(self) -> dict[str, float]:
        """How the stream went so far.

        ``loss`` is the average over decided rows of what a row lost of the attributes it carries (a suppressed row
        lost all), ``loss_all`` the same over all attributes, ``cost`` the loss grown by ``1 + alpha`` for every
        arrival (or second) of delay. ``delay`` and ``max_delay`` are in arrivals or seconds.
        """
        tally, sums = self._state.tally, self._state.sums
        decided = max(int(tally[t.RELEASED] + tally[t.SUPPRESSED]), 1)
        unit = 1e9 if self._settings.is_timed else 1
        return {
            "loss": float(sums[t.LOSS]) / decided,
            "loss_all": float(sums[t.LOSS_ALL]) / decided,
            "cost": float(sums[t.COST]) / decided,
            "delay": int(tally[t.DELAYS]) / decided / unit,
            "max_delay": int(tally[t.LONGEST]) / unit,
            "formed": int(tally[t.FORMED]),
            "merged": int(tally[t.MERGED]),
            "reused": int(tally[t.REUSED]),
            "suppressed": int(tally[t.SUPPRESSED]),
            "clamped": self._counts["clamped"],
        }

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return self._state.nbytes

    def take_changes(self) -> list[Any]:
        return []

    def explain(self, reason: str) -> Refusal:
        return explain(reason, self._settings.schema)

    # ---- types

    def bind(self, schema: pa.Schema) -> None:
        fields = select(schema, self.columns)
        self._check_types(fields)
        for column in self._codes if self._input_schema is None else ():
            column.fitted(fields.field(column.name).type)
        if self._input_schema is None:
            self._input_schema = pa.schema([(field.name, plain_type(field.type)) for field in fields])
            self._take_types(self._input_schema)

    def _check_types(self, fields: pa.Schema) -> None:
        if self._input_schema is not None:
            require_same(self._input_schema, fields)
        schema = self._settings.schema
        if not is_text_like(fields.field(schema.person).type):
            raise InputError(f"column {schema.person!r}: cannot name people; give text or whole numbers")
        if self._settings.is_timed and not is_time_type(fields.field(schema.time).type):
            raise InputError(f"column {schema.time!r}: no time; give timestamps, numbers of seconds, or ISO 8601 text")
        for reader in self._readers:
            reader.check_type(plain_type(fields.field(reader.name).type))
        for name in (*schema.sensitive, *schema.carry):
            if not is_carriable(fields.field(name).type):
                raise InputError(f"column {name!r}: {fields.field(name).type} cannot be passed on; give a plain type")
        for column in self._codes:
            if pa.types.is_nested(plain_type(fields.field(column.name).type)):
                raise InputError(f"column {column.name!r}: lists and structs have no diversity; give plain values")

    def _assumed_schema(self) -> pa.Schema:
        types = {reader.name: pa.float64() for reader in self._readers if isinstance(reader, NumericReader)}
        if self._settings.is_timed:
            types = {str(self._settings.schema.time): pa.timestamp("ns", tz="UTC"), **types}
        return pa.schema([(name, types.get(name, pa.string())) for name in self.columns])

    def _take_types(self, schema: pa.Schema) -> None:
        roles = self._settings.schema
        kept = pa.schema([(name, schema.field(name).type) for name in (*roles.sensitive, *roles.carry)])
        shown = [(reader.name, reader.output_type(schema.field(reader.name).type)) for reader in self._readers]
        self._output_schema = pa.schema([*shown, *kept])
        self._kept = KeptColumns(kept)
        self._is_ordered = [is_ordered(schema.field(column.name).type) for column in self._codes]
        if self._input_schema is not None:
            for column in self._codes:
                column.fit_to(schema.field(column.name).type)
        self._state.know_values(self._codes, self._is_ordered)

    # ---- state

    def snapshot(self) -> bytes:
        arrays = {f"state.{name}": array for name, array in self._state.dump().items()}
        header = {
            "method": self.method,
            "settings": self._settings.to_header(),
            "seen": self._seen,
            "counts": self._counts,
            "is_bound": self._input_schema is not None,
        }
        kept = self._kept.forget_all_but(self._state.held_rows())
        arrays |= {
            "clock": self._clock,
            "schema": as_bytes(self.input_schema.serialize()),
            "kept": as_bytes(kept.serialize()),
        }
        for number, column in enumerate(self._codes):
            values = pa.array(column.seen, type=self.input_schema.field(column.name).type)
            batch = pa.RecordBatch.from_arrays([values], names=["value"])
            arrays[f"sensitive{number}"] = as_bytes(batch.serialize())
        return seal_state(self._secret, header, arrays)

    def restore(self, state: bytes) -> Self:
        opened = open_state(self._secret, state)
        if opened.header["method"] != self.method or opened.header["settings"] != self._settings.to_header():
            raise CheckpointError("the snapshot is of another method or of other parameters")
        self._load(opened)
        return self

    @classmethod
    def from_state(cls, state: State, secret: Secret) -> Self:
        """The anonymizer whose opened snapshot this is."""
        made = cls.__new__(cls)
        made._begin(cls.settings_class.from_header(state.header["settings"]), secret)  # noqa: SLF001 - it is one of us
        made._load(state)  # noqa: SLF001
        return made

    def _load(self, state: State) -> None:
        arrays = state.arrays
        schema = pa.ipc.read_schema(pa.py_buffer(arrays["schema"]))
        self._input_schema = schema if state.header["is_bound"] else None
        self._clock = arrays["clock"].copy()
        self._seen, self._counts = state.header["seen"], dict(state.header["counts"])
        declared = self._settings.declared or {}
        self._codes = [SensitiveCodes(column.name, declared.get(column.name)) for column in self._codes]
        self._take_types(schema)
        for number, column in enumerate(self._codes):
            kind = pa.schema([("value", schema.field(column.name).type)])
            batch = pa.ipc.read_record_batch(pa.py_buffer(arrays[f"sensitive{number}"]), kind)
            column.code_all(batch.column(0).to_pylist())
        self._state.know_values(self._codes, self._is_ordered)
        prefix = "state."
        self._state.load({name.removeprefix(prefix): array for name, array in arrays.items() if prefix in name})
        kept = pa.ipc.read_record_batch(pa.py_buffer(arrays["kept"]), self._kept.schema)
        self._kept.add(self._state.held_rows(), kept)


_PROMISES: Final = {
    "strict": (
        "every published combination of quasi-identifiers, missing values included, is shared by at least {k} "
        "different people, and each attribute shown was carried by at least {carriers} of them"
    ),
    "common": (
        "every published combination of quasi-identifiers, missing values included, is shared by at least {k} "
        "different people, all of whom carried what is shown"
    ),
    "paper": (
        "every row was generalized together with rows of at least {k} different people; which attributes are missing "
        "still tells rows apart, so this is not k-anonymity"
    ),
}
