"""The state of shards between micro-batches: sealed files on a path that all executors share.

After a micro-batch a shard keeps either a snapshot of all it knows, or only the log of what it was given. It writes a
snapshot when the logs since the last one have become as large as that, or many: so the cost of a micro-batch follows
what changed. A worker that judged the shard in the micro-batch before still has it in memory and reads nothing.

Every attempt of a micro-batch has a name of its own. The driver writes the name that counts into a commit, after all
shards are done; files of other attempts are never read.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import orjson
import pyarrow as pa

from shoal.crypto.private_files import replace_private, sync_folder
from shoal.crypto.safe_open import create_file
from shoal.errors import CheckpointError
from shoal.sinks.durable import output_error

_SNAPSHOT, _LOG = "snapshot", "log"
_COMMIT: Final = re.compile(r"batch-(\d+)\.json")
_KEPT: Final = 2
"""Commits that are kept."""
_MOST_LOGS: Final = 8
"""Logs after a snapshot. A worker that does not have the shard in memory replays all of them."""
_IN_MEMORY: dict[tuple[str, int], tuple[str, Any]] = {}
"""Shards of this worker after the last micro-batch, by folder and shard: the name of the attempt, and the shard."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed micro-batch."""

    batch: int
    attempt: str
    end: int
    """The number of the next record."""
    chains: Mapping[str, list[str]]
    """For each shard the files that lead to its state: a snapshot and the logs after it."""
    more: Mapping[str, Any]


def next_batch(last: Commit | None) -> int:
    """The number of the micro-batch after a commit."""
    return 0 if last is None else last.batch + 1


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder of a stream's state, as the driver sees it."""

    path: Path

    def last(self) -> Commit | None:
        """The newest commit."""
        found = self._commits()
        return self.read(max(found)) if found else None

    def last_before(self, batch: int) -> Commit | None:
        """The newest commit before a micro-batch."""
        found = [number for number in self._commits() if number < batch]
        return self.read(max(found)) if found else None

    def read(self, batch: int) -> Commit | None:
        """The commit of a micro-batch; None if there is none."""
        path = self._commit(batch)
        try:
            return Commit(**orjson.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError):
            raise CheckpointError(
                f"{path}: is damaged; restore the folder from a backup, or start with a new one"
            ) from None

    def require(self, chains: Mapping[str, list[str]]) -> None:
        """Raise CheckpointError if the driver does not see a file that the state of a shard needs."""
        for name in {name for chain in chains.values() for name in chain}:
            if not (self.path / name).is_file():
                raise CheckpointError(
                    f"{self.path / name}: an executor wrote it, but it is not there; mount the folder under the same "
                    "path on every machine and start again"
                )

    def write(self, commit: Commit) -> None:
        """Commit a micro-batch; delete files that no commit refers to."""
        known = {name: getattr(commit, name) for name in Commit.__slots__}
        replace_private(self._commit(commit.batch), orjson.dumps(known))
        numbers = sorted(self._commits())
        for number in numbers[:-_KEPT]:
            self._commit(number).unlink()
        kept = [self.read(number) for number in numbers[-_KEPT:]]
        needed = {name for one in kept if one is not None for chain in one.chains.values() for name in chain}
        for path in self.path.glob("shard-*"):
            if path.name not in needed:
                path.unlink(missing_ok=True)

    def _commits(self) -> list[int]:
        names = (_COMMIT.fullmatch(path.name) for path in self.path.glob("batch-*.json"))
        return [int(name[1]) for name in names if name]

    def _commit(self, batch: int) -> Path:
        return self.path / f"batch-{batch:09d}.json"


def schema_text(schema: pa.Schema) -> str:
    """A schema as text, for a commit."""
    return base64.b64encode(schema.serialize()).decode()


def schema_of(text: str) -> pa.Schema:
    """The schema of a text."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


@dataclass(frozen=True, slots=True)
class ShardStates:
    """The states of shards around one micro-batch, as executors see them."""

    folder: Path
    attempt: str
    """The name of this attempt."""
    previous: str | None
    """The name of the attempt that counts of the micro-batch before; None if there was none."""
    chains: Mapping[str, list[str]]

    def open(self, shard: int, make: Callable[..., Any], replay: Callable[[Any, bytes], None]) -> Any:
        """A shard after the micro-batch before: from memory, or made of its files."""
        key, usable = str(self.folder), (self.previous, self.attempt)
        for place in [place for place, (name, _) in _IN_MEMORY.items() if place[0] == key and name not in usable]:
            del _IN_MEMORY[place]
        name, state = _IN_MEMORY.pop((key, shard), (None, None))
        if state is not None and name == self.previous:  # not one that a task of this attempt has kept, and runs again
            return state
        first, *logs = self.chains.get(str(shard), [""])
        made = make(self._read(first)) if first else make()
        for name in logs:
            replay(made, self._read(name))
        return made

    def keep(self, shard: int, state: Any, log: Callable[[], bytes]) -> list[str]:
        """Keep a shard after this micro-batch; return the files that lead to it."""
        chain, name = self.chains.get(str(shard), []), f"shard-{shard:05d}-{self.attempt}"
        if chain:
            sizes = [self._size(one) for one in chain]
            if sum(sizes[1:]) < sizes[0] and len(chain) <= _MOST_LOGS:
                kept = [*chain, f"{name}.{_LOG}"]
                self._write(kept[-1], log())
                _IN_MEMORY[str(self.folder), shard] = (self.attempt, state)
                return kept
        self._write(f"{name}.{_SNAPSHOT}", state.dump())
        _IN_MEMORY[str(self.folder), shard] = (self.attempt, state)
        return [f"{name}.{_SNAPSHOT}"]

    def _read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            raise CheckpointError(
                f"{self.folder / name}: is missing; the folder must be shared by all machines; restore it, or start "
                "with a new one"
            ) from None

    def _size(self, name: str) -> int:
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return 0

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        working = path.with_name(f".{name}.{token_hex(4)}.tmp")
        with output_error(path):
            with create_file(working, private=True) as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(working, path)
            sync_folder(self.folder)
