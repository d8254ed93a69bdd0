"""What a stream of `shoal run` publishes in files: parts named by micro-batch, one trace, one file of dead letters.

Everything is first written to a hidden folder. After the commit, parts get their names, and the trace and letters of
the micro-batch are appended at the lengths that the commit names: repeated, this changes nothing.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import open_or_create
from shoal.encode.base import Encoder
from shoal.errors import CheckpointError, OutputError
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.wiring import make_encoder
from shoal.policy import Policy
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.dead_letters import Letter
from shoal.spark.records.part_writer import PartWriter, output_folder
from shoal.spark.streams.state import Commit
from shoal.spark.summary import shows_suppressed

TRACE, LETTERS = "trace", "letters.jsonl"
_ENDS: Final = "ends"
"""In a commit: where the trace and the letters of its micro-batch begin and end."""


class Staging:
    """Hidden folders of attempts, and files that grow by what is in them."""

    def __init__(self, policy: Policy, hidden_in: Path, secret: Secret) -> None:
        self._hidden_in, self._secret, self._keep_rows = hidden_in, secret, policy.dead_letters.keep_rows
        self.files: dict[str, Path] = {}
        """The files that grow, by their name in the hidden folder."""
        if policy.trace is not None:
            self.files[TRACE] = policy.trace.path.path.absolute()
        if policy.dead_letters.file is not None:
            self.files[LETTERS] = policy.dead_letters.file.path.absolute()

    def hidden(self, attempt: str) -> Path:
        """The folder of an attempt."""
        return self._hidden_in / f".attempt-{attempt}"

    def letters_file(self, attempt: str) -> Path:
        """The letters of an attempt."""
        return self.hidden(attempt) / LETTERS

    def trace(self, attempt: str) -> Path | None:
        """The trace of an attempt, if there is one."""
        if TRACE not in self.files:
            return None
        make_folder(self.hidden(attempt))
        return self.hidden(attempt) / TRACE

    def stage(self, attempt: str, letters: list[Letter], before: Commit | None) -> dict[str, Any]:
        """Write the letters; return where everything begins and ends."""
        path = self.letters_file(attempt)
        make_folder(path.parent)
        out = DeadLetters(path, keep_rows=self._keep_rows, secret=self._secret)
        out.open(None)
        for letter, record in letters:
            out.write(letter, record)
        out.commit()
        out.finish()
        out.close()
        earlier = before.more.get(_ENDS, {}) if before else {}
        ends = {}
        for name in self.files:
            start, staged = earlier.get(name, (0, 0))[1], self.hidden(attempt) / name
            ends[name] = (start, start + (staged.stat().st_size if staged.exists() else 0))
        return {_ENDS: ends}

    def grow(self, commit: Commit) -> None:
        """Append what a commit names."""
        for name, (start, end) in commit.more.get(_ENDS, {}).items():
            staged = self.hidden(commit.attempt) / name
            if name in self.files and staged.exists():
                _append(self.files[name], staged, start, end)

    def kept(self, name: str, last: Commit | None) -> int | None:
        """How many bytes of a file that grows a run keeps after a commit; None if the stream has not written it."""
        ends = last.more.get(_ENDS, {}) if last else {}
        if last is None or name not in ends:
            return None
        start, end = ends[name]
        return int(start if (self.hidden(last.attempt) / name).exists() else end)

    def clean(self) -> None:
        """Remove what is left of all attempts."""
        for left in self._hidden_in.glob(".attempt-*"):
            shutil.rmtree(left, ignore_errors=True)


def require_length(path: Path, length: int, known: int) -> None:
    """Raise CheckpointError if a file is shorter than the state knows it."""
    if length < known:
        raise CheckpointError(
            f"{path}: has {length:,} bytes, the state knows {known:,}; restore it, or start over with a new "
            "checkpoint folder and another place to write to"
        )


def _append(path: Path, staged: Path, start: int, end: int) -> None:
    """Truncate a private file to `start` and append the staged bytes, which end at `end`. May be repeated."""
    with output_error(path):
        make_folder(path.parent)
        with os.fdopen(open_or_create(path), "r+b") as file:
            require_length(path, file.seek(0, os.SEEK_END), start)
            file.truncate(start)
            file.seek(start)
            with staged.open("rb") as data:
                shutil.copyfileobj(data, file)
            file.flush()
            os.fsync(file.fileno())
            assert file.tell() == end
        sync_folder(path.parent)


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """The folder of a policy's sink."""

    out: Path
    encoder: Encoder
    staging: Staging
    shows_suppressed: bool

    @classmethod
    def of(cls, policy: Policy, secret: Secret) -> ReleaseFolder:
        """The folder that a policy names."""
        out = output_folder(policy)
        shows = shows_suppressed(policy)
        return cls(out, make_encoder(policy), Staging(policy, out, secret), shows)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that all machines must share."""
        return (self.out,)

    def start(self, last: Commit | None) -> None:
        """Begin, or go on after a commit; refuse files that are not of this stream."""
        make_folder(self.out)
        self.refuse_foreign(last)

    def refuse_foreign(self, last: Commit | None) -> None:
        """Raise OutputError if the folder has files that the stream has not written by this commit."""
        known = -1 if last is None else last.batch
        for path in sorted(self.out.glob(f"*{self.encoder.suffix}")):
            batch = path.name.removeprefix("part-").partition("-")[0]
            if not path.name.startswith(".") and not (batch.isdigit() and int(batch) <= known and "-" in path.name[5:]):
                raise OutputError(
                    f"{path}: is in the folder of the output but was not written by this stream; move it to another "
                    "folder and start again"
                )

    def writer(self, attempt: str, published: pa.Schema) -> PartWriter:
        """Writes rows, hidden."""
        return PartWriter(self.staging.hidden(attempt), self.encoder, published)

    def trace(self, batch: int, attempt: str) -> Path | None:
        """The file for the trace, hidden."""
        return self.staging.trace(attempt)

    def stage(self, batch: int, attempt: str, letters: list[Letter], before: Commit | None) -> dict[str, Any]:
        """Write the dead letters, hidden."""
        return self.staging.stage(attempt, letters, before)

    def show(self, commit: Commit) -> None:
        """Give the parts their names; add to the trace and the letters."""
        hidden = self.staging.hidden(commit.attempt)
        if hidden.exists():
            with output_error(self.out):
                for path in sorted(hidden.glob(f"part-*{self.encoder.suffix}")):
                    number = path.name.removeprefix("part-")
                    os.replace(path, self.out / f"part-{commit.batch:09d}-{number}")
                sync_folder(self.out)
            self.staging.grow(commit)
        self.staging.clean()

    def close(self) -> None:
        """Nothing is open."""
