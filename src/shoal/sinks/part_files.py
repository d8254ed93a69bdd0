"""Numbered files in a folder, each of which appears only when it is complete."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import create_file
from shoal.errors import CheckpointError, OutputError
from shoal.sinks.durable import Guarded, make_folder, output_error
from shoal.sinks.marks import Digest, Mark, verify_whole

_TEMPORARY: Final = ".tmp"


class PartFiles:
    """Numbered files in a folder; a part appears under its name only when it is complete and committed.

    `checked` computes the digest of every part, for a checkpoint.
    """

    def __init__(
        self,
        folder: str | Path,
        suffix: str,
        *,
        private: bool = False,
        prefix: str = "part-",
        checked: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self._suffix = suffix
        self._prefix = prefix
        self._is_private = private
        self._is_checked = checked
        self._folder_mode = 0o700 if private else 0o777
        self._out: Guarded | None = None
        self._digest: Digest | None = None
        self.marks: list[Mark] = []
        """Marks of the committed parts, in order."""

    @property
    def _count(self) -> int:
        return len(self.marks)

    def resume(self, marks: Sequence[Mark] | None) -> None:
        """Go back to the parts with these marks, and check them; None or no marks start over.

        Parts that follow them without a gap were written after the checkpoint and are removed: they are written again.
        A run that starts over removes the parts of an earlier one. Any other file that a reader of the folder would
        take for a part is refused. CheckpointError if a part is missing, shorter, longer or altered.
        """
        self._abandon()
        self.marks = list(marks or ())
        with output_error(self.folder):
            make_folder(self.folder, mode=self._folder_mode)
            found = self._found()
            self.verify(self.marks)
            self.refuse_foreign(None if marks is None else self._count)
            for stale in [path for number, path in found.items() if number >= self._count]:
                stale.unlink()
            self._remove_temporary()

    def verify(self, marks: Sequence[Mark]) -> None:
        """Check the finished parts against their marks."""
        with output_error(self.folder):
            for number, mark in enumerate(marks):
                verify_whole(self._path(number), mark)

    def refuse_foreign(self, count: int | None = None, *, is_finished: bool = False) -> None:
        """Refuse other files that a reader of the folder would take for parts: no guarantee covers their rows.

        Accepted are `count` parts and, unless the run is finished, those that follow without a gap; without a count,
        all that are named like parts.
        """
        found = self._found()
        known = count or 0
        while known in found and not is_finished:
            known += 1
        ours = {self._path(number).name for number in (found if count is None else range(known))}
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            if path.name.endswith(self._suffix) and not path.name.startswith((".", "_")) and path.name not in ours:
                raise CheckpointError(
                    f"{path}: is among the parts but was not written by this run; "
                    "move it to another folder and start again"
                )

    def begin(self) -> BinaryIO:
        """A new part, invisible until `commit`."""
        if self._out is not None:
            raise OutputError(f"{self.folder}: a part is open already; commit it first")
        self._digest = Digest() if self._is_checked else None
        with output_error(self.folder):
            make_folder(self.folder, mode=self._folder_mode)
            file = create_file(self._temporary(self._count), private=self._is_private)
        self._out = Guarded(file, self._path(self._count), digest=self._digest)
        return self._out  # type: ignore[return-value]

    def commit(self) -> int:
        """Make the open part, if any, complete and visible; return the number of parts."""
        if self._out is not None:
            out, self._out = self._out, None
            with contextlib.closing(out):
                out.sync()
                mark = Mark(out.tell(), self._digest.text() if self._digest else None)
            with output_error(self.folder):
                os.replace(self._temporary(self._count), self._path(self._count))
                sync_folder(self.folder)
            self.marks.append(mark)
        return self._count

    def finish(self) -> None:
        """Commit what is open."""
        self.commit()

    def close(self) -> None:
        """Remove the open part, if any."""
        self._abandon()

    def paths(self) -> list[Path]:
        """The committed parts in order."""
        return [self._path(number) for number in range(self._count)]

    def remove(self) -> None:
        """Remove all parts, and the folder if nothing else is in it."""
        self._abandon()
        with output_error(self.folder):
            for path in self._found().values():
                path.unlink()
            self._remove_temporary()
            self.marks = []
            with contextlib.suppress(OSError):  # not empty, or gone already
                self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{self._prefix}{number:05d}{self._suffix}"

    def _temporary(self, number: int) -> Path:
        path = self._path(number)
        return path.with_name(f".{path.name}{_TEMPORARY}")

    def _found(self) -> dict[int, Path]:
        """Parts by number."""
        pattern = re.compile(re.escape(self._prefix) + r"(\d{5,})" + re.escape(self._suffix))
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        numbers = [(int(match[1]), path) for path in paths if (match := pattern.fullmatch(path.name))]
        return {number: path for number, path in numbers if path.name == self._path(number).name}

    def _remove_temporary(self) -> None:
        for path in list(self.folder.glob(f".{self._prefix}*{self._suffix}{_TEMPORARY}")):
            path.unlink()

    def _abandon(self) -> None:
        out, self._out = self._out, None
        if out is not None:
            out.close()
            self._temporary(self._count).unlink(missing_ok=True)
