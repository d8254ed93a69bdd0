"""What a streaming DataFrame publishes: a folder of Parquet files for each micro-batch, its trace and its dead letters.

Everything is first written under a hidden name of its attempt, and gets its own name after the commit.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.crypto.private_files import replace_private, sync_folder
from shoal.encode.parquet import ParquetEncoder
from shoal.errors import OutputError
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.dead_letters import Letter, text_of
from shoal.spark.records.part_writer import PartWriter
from shoal.spark.streams.state import Commit


@dataclass(frozen=True, slots=True)
class BatchFolders:
    """A folder for each micro-batch, and files for its trace and its dead letters."""

    out: Path
    trace_folder: Path | None
    letters_folder: Path | None
    shows_suppressed: bool

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that all machines must share."""
        return (self.out,) if self.trace_folder is None else (self.out, self.trace_folder)

    def refuse_foreign(self, last: Commit | None) -> None:
        """Raise OutputError if the folders have micro-batches that the stream has not written by this commit."""
        known = -1 if last is None else last.batch
        for folder, suffix in self._places():
            for path in sorted([*folder.glob("batch=*"), *folder.glob(f"[!.]*{suffix or '.parquet'}")]):
                number = path.name.removeprefix("batch=").removesuffix(suffix)
                if not number.isdigit() or int(number) > known:
                    raise _foreign(path)

    def writer(self, attempt: str, published: pa.Schema) -> PartWriter:
        """Writes rows, hidden."""
        return PartWriter(_hidden(self.out, attempt), ParquetEncoder(), published)

    def trace(self, batch: int, attempt: str) -> Path | None:
        """The file for the trace, hidden."""
        if self.trace_folder is None:
            return None
        make_folder(self.trace_folder)
        return _hidden(self.trace_folder, attempt, ".parquet")

    def stage(self, batch: int, attempt: str, letters: list[Letter], before: Commit | None) -> dict[str, Any]:
        """Write the dead letters, hidden; refuse names that are taken."""
        if self.letters_folder is not None:
            replace_private(_hidden(self.letters_folder, attempt, ".jsonl"), text_of(letters))
        for folder, suffix in self._places():
            if (taken := _shown(folder, batch, suffix)).exists():
                raise _foreign(taken)
        return {}

    def show(self, commit: Commit) -> None:
        """Let a micro-batch appear, its rows last, and remove what is left of other attempts."""
        for folder, suffix in reversed(list(self._places())):
            hidden, shown = _hidden(folder, commit.attempt, suffix), _shown(folder, commit.batch, suffix)
            with output_error(folder):
                if hidden.exists():
                    if shown.exists():
                        raise _foreign(shown)
                    os.replace(hidden, shown)
                    sync_folder(folder)
                for left in folder.glob(".attempt-*"):
                    _remove(left)

    def _places(self) -> Iterator[tuple[Path, str]]:
        """The folders and how names end in them."""
        yield self.out, ""
        if self.trace_folder is not None:
            yield self.trace_folder, ".parquet"
        if self.letters_folder is not None:
            yield self.letters_folder, ".jsonl"


def _hidden(folder: Path, attempt: str, suffix: str = "") -> Path:
    return folder / f".attempt-{attempt}{suffix}"


def _shown(folder: Path, batch: int, suffix: str) -> Path:
    return folder / f"batch={batch:09d}{suffix}"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _foreign(path: Path) -> OutputError:
    return OutputError(
        f"{path}: was not written by this stream, whose state does not know it; name other folders, move it away, or "
        "start with the state that it belongs to"
    )
