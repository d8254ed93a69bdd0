"""Steps 1 to 8: read records, seal personal data, add decoys, write everything to the internal store.

A batch is one transaction: its records, its decoys, the memory of decoys and the position in the source. Personal data
is hashed in memory and never written to disk.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.base import Decoded, Decoder, Refused
from shoal.errors import InputError, VaultError
from shoal.methods.base import StreamMethod
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.wiring import make_decoder, make_files
from shoal.sanitize.decoys.cells import normals_of
from shoal.sanitize.decoys.decoys import DecoyMaker, Decoys
from shoal.sanitize.decoys.memory import StoredMemory
from shoal.sanitize.new_files import Seen, Sources, WholeLines, mark_read
from shoal.sanitize.pii import Hasher, SealedHashes
from shoal.sanitize.stores.columns import blocks_column, cut_to_microseconds, to_plain
from shoal.sanitize.tags import Blocks, Tags, as_blocks
from shoal.sanitize.workspace import BATCH, GROUPS, ID, PERSON, PII, TAG, Workspace
from shoal.sources.compression import detect
from shoal.sources.input_file import InputFile

_NO_PERSON = "missing person identifier; fill in the columns that name the person"


@dataclass
class Progress:
    """The position in the source; sealed, since it reveals how many records are real."""

    arrived: int = 0
    batch: int = 0
    """Number of the last batch in the internal store."""
    dead: int = 0
    letters: int | None = None
    hashes: int = 0
    twins: int = 0
    segments: list[Any] = field(default_factory=list)
    """[first arrival number, file, number of its first record], for dead letters."""
    types: str = ""
    sources: dict[str, Any] = field(default_factory=dict)

    def place(self, arrival: int) -> dict[str, Any]:
        """Return a record's file and its number in it, from 1."""
        for first, name, record in reversed(self.segments):
            if arrival >= first:
                return {"file": name, "row": arrival - first + record + 1}
        return {}


class Intake:
    """Reads new records into the internal store."""

    def __init__(self, workspace: Workspace, anonymizer: StreamMethod, letters: DeadLetters) -> None:
        self._workspace = workspace
        self._policy = workspace.policy
        self._letters = letters
        self._whole_lines = False
        self._person = workspace.policy.stream.person
        self._who = workspace.section.maid or (str(self._person),)
        self._data = tuple(name for name in anonymizer.columns if name != self._person)
        self._columns = tuple(dict.fromkeys((*self._data, *self._who, *workspace.section.pii)))
        self.progress = Progress(**workspace.note(workspace.internal, "progress"))
        self._sources = Sources.of(self.progress.sources)
        self._pii_hasher = Hasher(workspace.ring, "pii")
        self._person_hasher = Hasher(workspace.ring, "person")
        self.hashes = SealedHashes(workspace.sealed, workspace.ring)
        if len(self.hashes) < self.progress.hashes:
            raise VaultError(f"{workspace.sealed}: hashes of the internal store are missing; restore the file")
        self._tags = make_tags(workspace)
        self._groups: npt.NDArray[np.int64] | None = None
        self._maker: DecoyMaker | None = None

    def read(self, report: Callable[[int], None], *, whole_lines: bool = False) -> int:
        """Read all new records; return how many."""
        before = self.progress.arrived
        kind = self._policy.source.kind
        for file, seen in self._sources.unread(self.files(whole_lines=whole_lines), kind):
            self._read_file(file, seen, report)
        return self.progress.arrived - before

    def files(self, *, whole_lines: bool = False) -> list[InputFile]:
        """Return the source's files; while waiting for files, a pattern or folder may have none yet."""
        self._whole_lines = whole_lines
        try:
            return make_files(self._policy)
        except InputError:
            places = self._policy.file_source.path
            if self._whole_lines and all(place.is_pattern or place.is_folder for place in places):
                return []
            raise

    def _read_file(self, file: InputFile, seen: Seen, report: Callable[[int], None]) -> None:
        is_partial = self._whole_lines and self._policy.source.kind in ("csv", "jsonl") and not _is_compressed(file)
        shown = WholeLines(file) if is_partial else file
        size = shown.size or 0
        if is_partial and size <= (seen.position or {}).get("byte", 0):
            return  # only an unfinished line was added
        with self._decoder(shown) as decoder:
            for decoded in self._batches(decoder, seen):
                self._take(file, seen, decoded)
                report(self.progress.arrived)
        if self._policy.source.kind in ("csv", "jsonl") and not _is_compressed(file):
            size = max(size, (seen.position or {}).get("byte", 0))  # the file may have grown while it was read
        if size != seen.size:
            mark_read(file, seen, size)
            with self._workspace.internal.transaction():
                self._write_progress()

    def _batches(self, decoder: Decoder, seen: Seen) -> Iterator[Decoded]:
        schema = decoder.schema
        if not self.progress.types:
            self.progress.types = base64.b64encode(schema.serialize().to_pybytes()).decode()
        return decoder.batches(seen.position)

    def _decoder(self, file: Any) -> Decoder:
        types = None
        if self.progress.types:
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.progress.types)))
            types = {field.name: field.type for field in schema}
        return make_decoder(self._policy, file, self._columns, types)

    # ---- one batch

    def _take(self, file: InputFile, seen: Seen, decoded: Decoded) -> None:
        self._workspace.reach("read")
        first = self.progress.arrived
        if not self.progress.segments or self.progress.place(first) != {"file": file.name, "row": seen.records + 1}:
            self.progress.segments.append([first, file.name, seen.records])
        usable = self._usable(decoded, first)
        self.progress.arrived += decoded.rows
        seen.records += decoded.rows
        seen.position = dict(decoded.position)
        self._store(decoded.batch.filter(pa.array(usable)), first + decoded.kept[usable])

    def _usable(self, decoded: Decoded, first: int) -> npt.NDArray[np.bool_]:
        """Return which decoded records are usable; write a dead letter for the others: where and why, never a value."""
        found = np.zeros(decoded.batch.num_rows, dtype=bool)
        for name in self._who:
            found |= decoded.batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        unnamed = [Refused(int(row), self._who[0], _NO_PERSON) for row in decoded.kept[~found]]
        for one in sorted((*decoded.refused, *unnamed), key=lambda refused: refused.row):
            letter = self.progress.place(first + one.row)
            if decoded.lines is not None:
                letter["line"] = int(decoded.lines[one.row])
            self._letters.write({**letter, "column": one.column, "reason": one.reason})
            self.progress.dead += 1
        return found

    def _store(self, batch: pa.RecordBatch, arrivals: npt.NDArray[np.int64]) -> None:
        workspace = self._workspace
        pii = self._hashed(batch, self._pii_hasher, workspace.section.pii, keep=True)
        persons = self._hashed(batch, self._person_hasher, self._who, keep=False)
        workspace.reach("sealed")
        data = cut_to_microseconds(pa.Table.from_batches([batch.select(self._data)]))
        memory = StoredMemory(workspace.internal, workspace.ring, data.schema)
        decoys = self._decoys(persons, pii, data, memory) if len(data) else None
        self.progress.letters = self._letters.commit()
        with workspace.internal.transaction():
            if decoys is not None:
                self.progress.batch += 1
                self._insert(persons, pii, data, arrivals, decoys)
                memory.save()
            workspace.reach("internal-written")
            self._write_progress()
        workspace.reach("internal")

    def _write_progress(self) -> None:
        self.progress.hashes = len(self.hashes)
        self.progress.sources = self._sources.to_dict()
        self._workspace.write_note(self._workspace.internal, "progress", vars(self.progress))

    def _hashed(self, batch: pa.RecordBatch, hasher: Hasher, names: tuple[str, ...], *, keep: bool) -> Blocks:
        """Return references to personal data; their hashes are sealed first."""
        numbers, hashes = hasher.hashes([batch.column(name) for name in names])
        if keep:
            self.hashes.add(hashes)
        return hasher.references(hashes)[numbers]

    def _decoys(self, persons: Blocks, pii: Blocks, data: pa.Table, memory: StoredMemory) -> Decoys:
        if self._maker is None:
            section, ring = self._workspace.section, self._workspace.ring
            draw = np.random.default_rng(secrets.randbits(128))
            normals = normals_of(self._policy, data.schema)
            k = int(getattr(self._policy.anonymize, "k", 2))
            self._maker = DecoyMaker(normals, k=k, key=ring.key, draw=draw, blend=section.blend)
        return self._maker.make(persons, pii, data, memory, self._are_large)

    def _are_large(self, names: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if self._groups is None:
            found = self._workspace.internal.read(GROUPS, ("name",))
            self._groups = np.sort(found.column("name").to_numpy())
        return np.isin(names, self._groups)

    def _insert(
        self, persons: Blocks, pii: Blocks, data: pa.Table, arrivals: npt.NDArray[np.int64], decoys: Decoys
    ) -> None:
        """Write real records and decoys under random ids, sorted by id."""
        workspace, real, made = self._workspace, len(data), len(decoys.persons)
        ids = as_blocks(os.urandom(16 * (real + made)))
        tags = np.concatenate([self._tags.of_real(ids[:real], arrivals), self._tags.of_decoys(ids[real:])])
        rows = to_plain(pa.concat_tables([data, decoys.data]))
        own = {
            BATCH: pa.array(np.full(real + made, self.progress.batch)),
            ID: blocks_column(ids),
            TAG: blocks_column(tags),
            PERSON: blocks_column(np.concatenate([persons, decoys.persons])),
            PII: blocks_column(np.concatenate([pii, decoys.pii])),
        }
        table = pa.table({**own, **dict(zip(rows.schema.names, rows.columns, strict=True))})
        layout = workspace.records(data.schema)
        if workspace.schema_of(workspace.internal) is None:
            workspace.internal.create([layout])
            workspace.internal.put("schema", data.schema.serialize().to_pybytes())
        workspace.internal.insert(layout, table.take(pa.array(np.argsort(ids.view("S16").reshape(-1)))))
        self._note_groups(decoys.groups)
        self.progress.twins += decoys.twins

    def _note_groups(self, names: npt.NDArray[np.int64]) -> None:
        if self._workspace.section.blend:
            return  # shadows are in every group, so large groups are not tracked
        fresh = np.unique(names[~self._are_large(names)])
        self._workspace.internal.insert(GROUPS, pa.table({"name": pa.array(fresh)}))
        assert self._groups is not None, "loaded by _are_large"
        self._groups = np.sort(np.concatenate([self._groups, fresh]))


def make_tags(workspace: Workspace) -> Tags:
    """Return tags under the working keys."""
    return Tags(workspace.ring.key("decoy tag"), workspace.ring.key("real tag"))


def _is_compressed(file: InputFile) -> bool:
    assert file.path is not None, "standard input is refused by the policy"
    try:
        with file.path.open("rb") as raw:
            return detect(raw.read(4)) != "none"
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read ({error.strerror}); check the file") from None
