"""Steps 9 to 13: filter real records, keep them for a while under a key of the run, anonymize and publish them.

A batch is published in one transaction with the anonymizer's snapshot and the number of the batch, so that a crash
leaves both or neither. Before that, the verifier proves that every record is real.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.keys import Secret
from shoal.crypto.sealing import seal, unseal
from shoal.errors import StoreError, VaultError
from shoal.methods.base import StreamMethod
from shoal.methods.release import DEAD, Release
from shoal.pipeline.dead_letters import DeadLetters
from shoal.sanitize.intake import Intake, make_tags
from shoal.sanitize.keyring import make_run_key, read_run_key, run_key_path
from shoal.sanitize.pii import Hasher, as_names
from shoal.sanitize.stores.columns import blocks_column, column_blocks, from_plain, hex_column, to_plain
from shoal.sanitize.tags import SIZE, Blocks
from shoal.sanitize.workspace import BATCH, ID, PERSON, PII, PUBLISHED, RUNS, TAG, TEMPORARY, TRACES, Workspace

ARRIVAL: Final = "shoal_arrival"
_PURPOSE: Final = "temporary rows"


@dataclass
class Outgoing:
    """The progress of the external store; sealed, stored with its rows."""

    consumed: int = 0
    """Number of the last anonymized batch."""
    moved: int = 0
    """Real records given to the anonymizer."""
    flushed: int = 0
    """Number of the batch before the last flush."""
    releases: int = 0
    published: int = 0
    pending: int = 0
    suppressed: int = 0
    dead: int = 0
    letters: int | None = None
    audit: str = "never"


class Verifier:
    """Finds the real records, and raises if tags and hashes contradict each other."""

    def __init__(self, workspace: Workspace, hashes: Blocks) -> None:
        self._tags = make_tags(workspace)
        self._true = np.sort(as_names(Hasher(workspace.ring, "pii").references(hashes)))

    def real(self, ids: Blocks, tags: Blocks, pii: Blocks) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Return which records are real, and their arrival numbers."""
        is_real, arrivals = self._tags.read_real(ids, tags)
        is_decoy = self._tags.are_decoys(ids, tags)
        is_true = np.isin(as_names(pii), self._true)
        if not (np.array_equal(is_real, ~is_decoy) and np.array_equal(is_real, is_true)):
            raise VaultError(
                "internal store: tags and hashes of a record contradict each other: it was altered; "
                "nothing was published. Restore the store"
            )
        return is_real, arrivals

    def require_real(self, ids: Blocks, tags: Blocks, pii: Blocks) -> None:
        """Check once more, directly before records are published."""
        is_real, _ = self.real(ids, tags, pii)
        if not is_real.all():
            raise VaultError("a decoy was about to be published; nothing was. Please report this")

    def require_counts(self, counts: dict[str, int], moved: int, rows: int) -> None:
        """Check that no more rows are published than real records were pushed."""
        decided = counts["released"] + counts["suppressed"] + counts["dead"] + counts["pending"]
        if counts["pushed"] != moved or decided != moved or rows > counts["released"] + counts["suppressed"]:
            raise VaultError(
                "more rows would be published than real records came in; nothing was published. Please report this"
            )


class Publisher:
    """Moves batches from the internal store through the anonymizer into the external store."""

    def __init__(self, workspace: Workspace, anonymizer: StreamMethod, letters: DeadLetters, intake: Intake) -> None:
        self._workspace = workspace
        self._anonymizer = anonymizer
        self._letters = letters
        self._intake = intake
        self.state = Outgoing(**workspace.note(workspace.external, "state"))
        self._run: tuple[str, Secret] | None = None
        self._run_keys: dict[str, Secret] = {}

    def restore(self) -> None:
        """Restore the anonymizer to the state of the last transaction."""
        schema = self._workspace.schema_of(self._workspace.internal)
        if schema is not None:
            person = pa.field(str(self._workspace.policy.stream.person), pa.string())
            self._anonymizer.bind(pa.schema([person, *schema]))
        snapshot = self._workspace.external.get("snapshot")
        if snapshot is not None:
            self._anonymizer.restore(snapshot)

    def publish_all(self, now_ns: int) -> Iterator[int]:
        """Publish every pending batch; yield the number of rows published so far after each."""
        schema = self._workspace.schema_of(self._workspace.internal)
        if schema is None:
            return
        self._require_no_unknown_rows()
        self._verifier = Verifier(self._workspace, self._intake.hashes.hashes)
        for batch in range(self.state.consumed + 1, self._intake.progress.batch + 1):
            self._move(batch, schema, now_ns)
            self._publish_batch(batch)
            yield self.state.published
        if self.state.flushed < self.state.consumed:
            self._publish(self._anonymizer.flush(), flushed=True)
            yield self.state.published

    def _require_no_unknown_rows(self) -> None:
        """An older copy of the sealed part does not know the newest rows, and would publish their records again."""
        external = self._workspace.external
        if external.has(PUBLISHED) and external.count(PUBLISHED) > self.state.published:
            raise StoreError(
                f"{external.name}: has rows that its sealed part does not know: that is an older copy, or another "
                "program added rows; nothing was published. Restore the newer one, or remove those rows"
            )

    # ---- into the temporary store

    def _move(self, batch: int, schema: pa.Schema, now_ns: int) -> None:
        """Filter the real records of a batch and store them encrypted."""
        workspace = self._workspace
        if workspace.temporary.count(TEMPORARY, "batch = ?", (batch,)):
            return  # done by an interrupted run
        rows = self._real_rows(batch, schema)
        run, secret = self._own_run(now_ns)
        content = seal(secret, _as_bytes(rows), purpose=_PURPOSE)
        with workspace.temporary.transaction():
            workspace.temporary.upsert(TEMPORARY, [(batch, run, content)])
            workspace.reach("temporary-written")
        workspace.reach("temporary")

    def _real_rows(self, batch: int, schema: pa.Schema) -> pa.Table:
        rows, arrivals = real_records(self._workspace, self._verifier, schema, batch)
        marks = {ARRIVAL: pa.array(arrivals), **{name: rows.column(name) for name in (ID, TAG, PII)}}
        data = from_plain(rows, schema)
        person = hex_column(column_blocks(rows.column(PERSON)))
        columns = dict(zip(data.schema.names, data.columns, strict=True))
        return pa.table({**marks, str(self._workspace.policy.stream.person): person, **columns})

    def _own_run(self, now_ns: int) -> tuple[str, Secret]:
        """Return the key of this run, made with its first batch and written before it is used."""
        if self._run is None:
            run = secrets.token_hex(8)
            secret = make_run_key(self._key_path(run), self._workspace.ring)
            self._workspace.reach("run-key")
            with self._workspace.temporary.transaction():
                self._workspace.temporary.upsert(RUNS, [(run, now_ns)])
            self._run = run, secret
        return self._run

    def _key_path(self, run: str) -> Any:
        return run_key_path(self._workspace.sealed.parent, self._workspace.sealed.name, run)

    # ---- through the anonymizer into the external store

    def _publish_batch(self, batch: int) -> None:
        rows = self._temporary_rows(batch)
        self._verifier.require_real(*_marks(rows))
        arrivals = rows.column(ARRIVAL).to_numpy()
        first = self._anonymizer.counts["pushed"]
        data = rows.select(list(self._anonymizer.columns)).combine_chunks()
        empty = pa.RecordBatch.from_pylist([], schema=data.schema)
        release = self._anonymizer.push_batch(data.to_batches()[0] if len(data) else empty)
        self._workspace.reach("pushed")
        self.state.consumed = batch
        self.state.moved += len(rows)
        self._write_letters(release, arrivals, first)
        self._publish(release)

    def _temporary_rows(self, batch: int) -> pa.Table:
        (_, run, content) = next(iter(self._workspace.temporary.lookup(TEMPORARY, [batch])))
        if run not in self._run_keys:
            own = self._run
            is_own = own is not None and own[0] == run
            self._run_keys[run] = own[1] if own and is_own else read_run_key(self._key_path(run), self._workspace.ring)
        data = unseal(self._run_keys[run], bytes(content), purpose=_PURPOSE)
        return pa.ipc.open_stream(pa.py_buffer(data)).read_all()

    def _publish(self, release: Release, *, flushed: bool = False) -> None:
        workspace, state, counts = self._workspace, self.state, self._anonymizer.counts
        rows = pa.Table.from_batches([release.rows])
        state.published += len(rows)
        state.pending, state.suppressed, state.dead = self._anonymizer.pending, counts["suppressed"], counts["dead"]
        state.flushed = state.consumed if flushed else state.flushed
        state.letters = self._letters.commit()
        self._verifier.require_counts(counts, state.moved, state.published)
        ids = np.frombuffer(os.urandom(16 * len(rows)), dtype=np.uint8).reshape(-1, 16)
        layout = workspace.published(rows.schema)
        with workspace.external.transaction():
            if workspace.schema_of(workspace.external) is None:
                workspace.external.create([layout])
                workspace.external.put("schema", rows.schema.serialize().to_pybytes())
            self._insert(layout, rows, ids)
            self._keep_trace(release, ids)
            workspace.external.put("snapshot", self._anonymizer.snapshot())
            workspace.reach("published-written")
            workspace.write_note(workspace.external, "state", vars(state))
        workspace.reach("published")

    def _insert(self, layout: Any, rows: pa.Table, ids: Blocks) -> None:
        """Insert rows sorted by random id, so that their order does not reveal when they were decided."""
        if not len(rows):
            return
        plain = to_plain(rows)
        table = pa.table({ID: blocks_column(ids), **dict(zip(plain.schema.names, plain.columns, strict=True))})
        self._workspace.external.insert(layout, table.take(pa.array(np.argsort(as_names(ids)))))

    def _keep_trace(self, release: Release, ids: Blocks) -> None:
        trace = pa.Table.from_batches([release.trace])
        if not len(trace):
            return
        self.state.releases += 1
        ring, number = self._workspace.ring, self.state.releases
        sealed = [ring.seal(data, "trace") for data in (ids.tobytes(), _as_bytes(trace))]
        self._workspace.external.upsert(TRACES, [(number, *sealed)])

    def _write_letters(self, release: Release, arrivals: npt.NDArray[np.int64], first: int) -> None:
        """Write dead letters for refused records: where and why, never a value."""
        if self._anonymizer.counts["dead"] == self.state.dead:
            return
        trace = release.trace
        dead = trace.filter(pc.equal(trace.column("verdict").cast(pa.string()), DEAD))
        for row, reason in zip(dead.column("row").to_pylist(), dead.column("reason").to_pylist(), strict=True):
            refusal = self._anonymizer.explain(reason)
            at = row - first
            place = self._intake.progress.place(int(arrivals[at])) if at >= 0 else {"record": row + 1}
            self._letters.write({**place, "column": refusal.column, "reason": refusal.sentence})


def real_records(
    workspace: Workspace, verifier: Verifier, schema: pa.Schema, batch: int
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the real records of a batch of the internal store in order of arrival, and their arrival numbers.

    There are many decoys, so only the marks are read first, then the whole real records.
    """
    layout = workspace.records(schema)
    joined = workspace.internal.read_joined(layout, (ID, TAG, PII), f"{BATCH} = ?", (batch,))
    marks = np.frombuffer(joined, dtype=np.uint8).reshape(-1, 3, SIZE)
    is_real, _ = verifier.real(marks[:, 0], marks[:, 1], marks[:, 2])
    chosen = [row.tobytes() for row in marks[is_real, 0]]
    rows = workspace.internal.read_some(layout, layout.names, batch, chosen)
    _, arrivals = verifier.real(*_marks(rows))
    order = np.argsort(arrivals)
    return rows.take(pa.array(order)), arrivals[order]


def _marks(rows: pa.Table) -> tuple[Blocks, Blocks, Blocks]:
    ids, tags, pii = (column_blocks(rows.column(name)) for name in (ID, TAG, PII))
    return ids, tags, pii


def _as_bytes(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(out.getvalue())
