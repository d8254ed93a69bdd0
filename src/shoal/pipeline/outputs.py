"""Everything a run writes: published rows, the private trace and dead letters."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.keys import secret_from_environment
from shoal.crypto.safe_open import create_file, open_to_read
from shoal.methods.base import StreamMethod
from shoal.methods.release import DEAD, Release
from shoal.pipeline.dead_letters import DeadLetters, LetterMessages, make_letters
from shoal.pipeline.live.parts import Sinks
from shoal.pipeline.wiring import make_sinks, make_trace_sink
from shoal.policy import Policy
from shoal.sinks.base import Receipt, Sink
from shoal.sinks.durable import output_error

Receipts = dict[str, Receipt | None]
"""By output."""


class Outputs:
    """The sinks of one run, committed together."""

    def __init__(self, policy: Policy, *, resumable: bool, sinks: Sinks | None = None) -> None:
        key = secret_from_environment()
        sinks = sinks or make_sinks(policy, resumable=resumable)
        self._rows = sinks.rows
        self._trace: Sink | None = None
        if policy.trace is not None:
            self._trace = make_trace_sink(policy.trace.path.path, resumable=resumable, secret=key)
        self.letters: DeadLetters | LetterMessages = make_letters(policy, sinks.letters, key, resumable=resumable)
        self._sinks = {"rows": self._rows, **({"trace": self._trace} if self._trace else {})}

    @property
    def decides(self) -> bool:
        """Whether the sink of the rows records which checkpoint counts."""
        return self._rows.decides

    def published(self) -> tuple[str, ...]:
        """The checkpoints that sink names, newest first."""
        return self._rows.published()

    def open(self, method: StreamMethod, receipts: Receipts) -> None:
        """Start, or go back to the commits of these receipts."""
        _open(self._rows, method.output_schema, receipts.get("rows"))
        self.letters.open(receipts.get("letters"))
        if self._trace is not None:
            _open(self._trace, method.trace_schema, receipts.get("trace"))

    def write(self, release: Release) -> None:
        """Write a release; its trace is built only if it is written."""
        self._rows.write(release.rows)
        if self._trace is not None:
            self._trace.write(release.trace)

    def commit(self, epoch: int) -> Receipts:
        """Make everything durable."""
        self.letters.commit(epoch)
        return {"letters": self.letters.receipt, **{name: sink.commit(epoch) for name, sink in self._sinks.items()}}

    def publish(self, checkpoint: str) -> None:
        """The checkpoint is durable: make everything committed visible."""
        self.letters.publish(checkpoint)
        for sink in self._sinks.values():
            sink.publish(checkpoint)

    def finish(self) -> Receipts:
        """Publish everything under its name; receipts may have changed."""
        self.letters.finish()
        return {"letters": self.letters.receipt, **{name: sink.finish() for name, sink in self._sinks.items()}}

    def verify(self, receipts: Receipts) -> None:
        """Raise CheckpointError if the rows of a finished run are missing or altered."""
        self._rows.verify(receipts["rows"] or {})

    def clean(self) -> None:
        """Remove what only a repeated `finish` needs."""
        self.letters.clean()
        for sink in self._sinks.values():
            sink.clean()

    def close(self) -> None:
        """Close everything."""
        self.letters.close()
        for sink in self._sinks.values():
            sink.close()


def _open(sink: Sink, schema: pa.Schema, receipt: Receipt | None) -> None:
    if receipt is None:
        sink.open(schema)
    else:
        sink.recover(schema, receipt)


def dead_trace(release: Release) -> pa.RecordBatch:
    """The rows of a trace that are about refused records."""
    return release.trace.filter(pc.equal(release.trace.column("verdict").cast(pa.string()), DEAD))


def detach_files(policy: Policy) -> None:
    """Replace unfinished files by copies, so that a process that still has them open writes to the old ones."""
    places = [policy.sink.place, policy.trace.path if policy.trace else None]
    paths = [place.working for place in places if place is not None and not place.is_standard]
    paths += [policy.dead_letters.path.path] if policy.dead_letters.file else []
    for path in paths:
        if path.is_file() and not path.is_symlink():
            copy = path.with_name(path.name + ".copy")
            with output_error(path), open_to_read(path) as source, create_file(copy, private=True) as target:
                shutil.copyfileobj(source, target)
                shutil.copymode(path, copy)
                os.replace(copy, path)
