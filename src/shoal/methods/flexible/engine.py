"""The engine of the flexible method: a reader, a decider and a publisher, connected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.kernels.flexible.layout import SCALE
from shoal.methods.base import Guarantee, Record
from shoal.methods.flexible.calibration import Calibration
from shoal.methods.flexible.decider import Decider
from shoal.methods.flexible.publisher import TRACE, Publisher
from shoal.methods.flexible.reader import FlexibleReader
from shoal.methods.flexible.settings import FlexibleSettings
from shoal.methods.release import NO_REASON, Refusal, Release
from shoal.methods.schema_reader import explain

METHOD: Final = "flexible-k"


class FlexibleEngine:
    """See :class:`shoal.methods.engine.Engine`."""

    trace_schema = TRACE

    def __init__(self, settings: FlexibleSettings, secret: Secret) -> None:
        self._settings = settings
        self._reader = FlexibleReader(settings, secret)
        self._decider = Decider(settings, secret, self._reader)
        self.counts = self._decider.counts
        self._publisher = Publisher(self.counts.reasons)
        self.columns = settings.schema.columns

    @property
    def calibration(self) -> Calibration | None:
        """Which columns are sparse and how many people a label needs; None until that is known."""
        return self._decider.calibration

    def set_calibration(self, calibration: Calibration) -> None:
        """Use a calibration that was made elsewhere, before any record and after the types are known."""
        self._decider.set_calibration(calibration)

    @property
    def guarantee(self) -> Guarantee:
        """The promise in words and numbers; it gets more precise after the calibration."""
        found = self.calibration
        return Guarantee(
            method=METHOD,
            statement=self._statement(),
            parameters={**self._settings.describe(), "frozen": found.describe() if found else {}},
            max_delay_ns=None,
            max_pending=None,
            keeps_pending=True,
        )

    def _statement(self) -> str:
        k, found = self._settings.k, self.calibration
        crowd = f"at least {k} different people"
        if self._settings.density or self._settings.density_from_data:
            crowd += " (or what its density class requires)"
        whole = f"every published combination of normal quasi-identifiers is shared by {crowd}"
        if found is not None and not found.sparse:
            return whole
        fewer = "fewer, as sparse as the values are" if found is None else str(found.k_s[k])
        return f"{whole}, and together with the label of the sparse ones by at least {fewer}; nothing is suppressed"

    @property
    def pending(self) -> int:
        return self._decider.pending

    @property
    def metrics(self) -> dict[str, Any]:
        """How the stream went so far.

        ``loss`` is the average over released rows of the share of the leaves (or of the domain) that a label covers
        besides the value itself, weighted over the columns, and 1 for the label of unknown values; ``loss_<column>`` is
        that of one column; ``pending`` is
        the number of pending rows; ``unknown_<column>`` counts accepted records with an unlisted value.
        """
        decider, released = self._decider, self.counts.released
        weights = np.array([role.weight for role in self._settings.schema.quasi])
        lost = decider.lost / (SCALE * max(released, 1))
        found = {"loss": float(lost.sum()), "pending": float(self.pending), "clamped": float(self.counts.clamped)}
        columns = zip(self._settings.schema.quasi, lost * weights.sum() / weights, strict=True)
        found |= {f"loss_{role.name}": float(loss) for role, loss in columns}
        found |= {f"unknown_{name}": float(count) for name, count in decider.unknown.items() if count}
        if self.calibration is not None:
            found["k_s"] = float(self.calibration.k_s[self._settings.k])
            found |= {f"sparse_share_{name}": self.calibration.shares[name] for name in self.calibration.sparse}
        return found

    @property
    def state_bytes(self) -> int:
        return self._decider.state_bytes

    def take_changes(self) -> list[Any]:
        """Nothing: the parameters never change."""
        return []

    def explain(self, reason: str) -> Refusal:
        found = explain(reason, self._settings.schema)
        if reason.partition(":")[2] in self._settings.concepts:
            return Refusal(found.column, "not in the ontology; `shoal ontology check` proposes the nearest values")
        return found

    # ---- types

    def assumed_schema(self) -> pa.Schema:
        return self._reader.columns.assumed_schema()

    def check_types(self, fields: pa.Schema) -> None:
        self._reader.columns.check_types(fields)

    def set_types(self, schema: pa.Schema, *, is_bound: bool) -> pa.Schema:
        self._publisher.schema, carried = self._reader.set_types(schema)
        self._decider.set_types(schema, carried)
        return self._publisher.schema

    # ---- records in, rows out

    def read_record(self, record: Record, known: pa.Schema | None) -> tuple[Record, pa.Schema]:
        """Check one record; the types are needed before it can be read."""
        return record, self._reader.columns.check_record(record, known)

    def push_record(self, record: Record) -> list[dict[str, Any]]:
        read = self._reader.read_one(record)
        if isinstance(read, int):
            self._decider.refuse(read)
            return []
        decided = self._decider.accept_one(*read)
        if not decided:
            return []
        rows: list[dict[str, Any]] = self._publisher.rows(decided, self._decider.grouping).to_pylist()
        self._decider.forget_released()
        return rows

    def push_batches(self, batches: list[pa.RecordBatch]) -> list[Release]:
        """Decide about batches as if they were one."""
        if not batches:
            return []
        first = self.counts.pushed
        read, carried = self._reader.read(pa.concat_batches(batches) if len(batches) > 1 else batches[0])
        decided = self._decider.accept(read, carried)
        self._decider.forget_released()
        dead = np.flatnonzero(read.reasons != NO_REASON)
        return [self._publisher.release(decided, self._decider.grouping, first + dead, read.reasons[dead])]

    def advance(self, now_ns: int) -> Release:
        """Nothing: no decision depends on time."""
        return self._publisher.release([], self._decider.grouping)

    def flush(self) -> Release:
        """Release everything that can be released; the rest stays pending."""
        decided = self._decider.flush()
        self._decider.forget_released()
        return self._publisher.release(decided, self._decider.grouping)

    # ---- state

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return self._decider.dump()

    def load(self, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._decider.load(header, arrays)
