"""Steps 1 to 8: records are read, what names a person is sealed away, decoys join, the internal store takes all.

A batch is one transaction: its records, its decoys, what decoys remember and how far the source was read. What names a
person is hashed in memory and never reaches a disk.
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
from shoal.sanitize.decoys.decoys import DecoyMaker, Decoys
from shoal.sanitize.decoys.memory import StoredMemory
from shoal.sanitize.decoys.normals import normals_of
from shoal.sanitize.new_files import Seen, Sources, WholeLines, mark_read
from shoal.sanitize.pii import Hasher, SealedHashes
from shoal.sanitize.stores.columns import blocks_column, to_plain
from shoal.sanitize.tags import Blocks, Tags, as_blocks
from shoal.sanitize.workspace import BATCH, GROUPS, ID, PERSON, PII, TAG, House
from shoal.sources.compression import detect
from shoal.sources.input_file import InputFile

_NO_PERSON = "says not who; fill in the columns that name the person"


@dataclass
class Progress:
    """How far the source was read; sealed, since it tells how many records are real."""

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
        """Where a record stands: its file and its number in it, from 1."""
        for first, name, record in reversed(self.segments):
            if arrival >= first:
                return {"file": name, "row": arrival - first + record + 1}
        return {}


class Intake:
    """Reads what is new into the internal store."""

    def __init__(self, house: House, anonymizer: StreamMethod, letters: DeadLetters) -> None:
        self._house = house
        self._policy = house.policy
        self._letters = letters
        self._whole_lines = False
        self._person = house.policy.stream.person
        self._who = house.section.maid or (str(self._person),)
        self._data = tuple(name for name in anonymizer.columns if name != self._person)
        self._columns = tuple(dict.fromkeys((*self._data, *self._who, *house.section.pii)))
        self.progress = Progress(**house.note(house.internal, "progress"))
        self._sources = Sources.of(self.progress.sources)
        self._pii_hasher = Hasher(house.ring, "pii")
        self._person_hasher = Hasher(house.ring, "person")
        self.hashes = SealedHashes(house.sealed, house.ring)
        if len(self.hashes) < self.progress.hashes:
            raise VaultError(f"{house.sealed}: hashes are missing that the internal store counts on; restore the file")
        self._tags = make_tags(house)
        self._groups: npt.NDArray[np.int64] | None = None
        self._maker: DecoyMaker | None = None

    def read(self, tell: Callable[[int], None], *, whole_lines: bool = False) -> int:
        """Read everything that is new; give the number of records."""
        before = self.progress.arrived
        kind = self._policy.source.kind
        for file, seen in self._sources.unread(self.files(whole_lines=whole_lines), kind):
            self._read_file(file, seen, tell)
        return self.progress.arrived - before

    def files(self, *, whole_lines: bool = False) -> list[InputFile]:
        """What there is; while files are waited for, a pattern or folder may have none yet."""
        self._whole_lines = whole_lines
        try:
            return make_files(self._policy)
        except InputError:
            places = self._policy.source.path
            if self._whole_lines and all(place.is_pattern or place.is_folder for place in places):
                return []
            raise

    def _read_file(self, file: InputFile, seen: Seen, tell: Callable[[int], None]) -> None:
        is_partial = self._whole_lines and self._policy.source.kind in ("csv", "jsonl") and not _is_compressed(file)
        shown = WholeLines(file) if is_partial else file
        size = shown.size or 0
        if is_partial and size <= (seen.position or {}).get("byte", 0):
            return  # nothing but the beginning of a line was added
        with self._decoder(shown) as decoder:
            for decoded in self._batches(decoder, seen):
                self._take(file, seen, decoded)
                tell(self.progress.arrived)
        if self._policy.source.kind in ("csv", "jsonl") and not _is_compressed(file):
            size = max(size, (seen.position or {}).get("byte", 0))  # it may have grown while it was read
        if size != seen.size:
            mark_read(file, seen, size)
            with self._house.internal.transaction():
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
        self._house.reach("read")
        first = self.progress.arrived
        if not self.progress.segments or self.progress.place(first) != {"file": file.name, "row": seen.records + 1}:
            self.progress.segments.append([first, file.name, seen.records])
        usable = self._usable(decoded, first)
        self.progress.arrived += decoded.rows
        seen.records += decoded.rows
        seen.position = dict(decoded.position)
        self._store(decoded.batch.filter(pa.array(usable)), first + decoded.kept[usable])

    def _usable(self, decoded: Decoded, first: int) -> npt.NDArray[np.bool_]:
        """Which decoded records can be used; the others get a letter that says where and why, never what."""
        found = np.zeros(decoded.batch.num_rows, dtype=bool)
        for name in self._who:
            found |= decoded.batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        nobody = [Refused(int(row), self._who[0], _NO_PERSON) for row in decoded.kept[~found]]
        for one in sorted((*decoded.refused, *nobody), key=lambda refused: refused.row):
            letter = self.progress.place(first + one.row)
            if decoded.lines is not None:
                letter["line"] = int(decoded.lines[one.row])
            self._letters.write({**letter, "column": one.column, "reason": one.reason})
            self.progress.dead += 1
        return found

    def _store(self, batch: pa.RecordBatch, arrivals: npt.NDArray[np.int64]) -> None:
        house = self._house
        pii = self._hashed(batch, self._pii_hasher, house.section.pii, keep=True)
        persons = self._hashed(batch, self._person_hasher, self._who, keep=False)
        house.reach("sealed")
        data = pa.Table.from_batches([batch.select(self._data)])
        memory = StoredMemory(house.internal, house.ring, data.schema)
        decoys = self._decoys(persons, pii, data, memory) if len(data) else None
        self.progress.letters = self._letters.commit()
        with house.internal.transaction():
            if decoys is not None:
                self.progress.batch += 1
                self._insert(persons, pii, data, arrivals, decoys)
                memory.save()
            house.reach("internal-written")
            self._write_progress()
        house.reach("internal")

    def _write_progress(self) -> None:
        self.progress.hashes = len(self.hashes)
        self.progress.sources = self._sources.to_dict()
        self._house.write_note(self._house.internal, "progress", vars(self.progress))

    def _hashed(self, batch: pa.RecordBatch, hasher: Hasher, names: tuple[str, ...], *, keep: bool) -> Blocks:
        """References for what names a person; the hashes behind them are sealed away first."""
        numbers, hashes = hasher.hashes([batch.column(name) for name in names])
        if keep:
            self.hashes.add(hashes)
        return hasher.references(hashes)[numbers]

    def _decoys(self, persons: Blocks, pii: Blocks, data: pa.Table, memory: StoredMemory) -> Decoys:
        if self._maker is None:
            section, ring = self._house.section, self._house.ring
            draw = np.random.default_rng(secrets.randbits(128))
            normals = normals_of(self._policy, data.schema)
            k = int(getattr(self._policy.anonymize, "k", 2))
            self._maker = DecoyMaker(normals, k=k, key=ring.key, draw=draw, blend=section.blend)
        return self._maker.make(persons, pii, data, memory, self._are_large)

    def _are_large(self, names: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if self._groups is None:
            found = self._house.internal.read(GROUPS, ("name",))
            self._groups = np.sort(found.column("name").to_numpy())
        return np.isin(names, self._groups)

    def _insert(
        self, persons: Blocks, pii: Blocks, data: pa.Table, arrivals: npt.NDArray[np.int64], decoys: Decoys
    ) -> None:
        """Real records and decoys under random ids, in the order of these."""
        house, real, made = self._house, len(data), len(decoys.persons)
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
        layout = house.records(data.schema)
        if house.schema_of(house.internal) is None:
            house.internal.create([layout])
            house.internal.put("schema", data.schema.serialize().to_pybytes())
        house.internal.insert(layout, table.take(pa.array(np.argsort(ids.view("S16").reshape(-1)))))
        self._note_groups(decoys.groups)
        self.progress.twins += decoys.twins

    def _note_groups(self, names: npt.NDArray[np.int64]) -> None:
        if self._house.section.blend:
            return  # shadows come along everywhere; nobody asks which groups are large
        fresh = np.unique(names[~self._are_large(names)])
        self._house.internal.insert(GROUPS, pa.table({"name": pa.array(fresh)}))
        assert self._groups is not None, "it was asked for above"
        self._groups = np.sort(np.concatenate([self._groups, fresh]))


def make_tags(house: House) -> Tags:
    """Tags under the working keys."""
    return Tags(house.ring.key("decoy tag"), house.ring.key("real tag"))


def _is_compressed(file: InputFile) -> bool:
    assert file.path is not None, "standard input is refused by the policy"
    try:
        with file.path.open("rb") as raw:
            return detect(raw.read(4)) != "none"
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read ({error.strerror}); check the file") from None
