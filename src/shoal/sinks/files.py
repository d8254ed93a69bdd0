"""Files and folders of parts that are complete or not there, and standard output."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from shoal.crypto.safe_open import create_file, is_regular, open_existing
from shoal.errors import CheckpointError, OutputError
from shoal.sinks.folders import make_folder, sync_folder
from shoal.sinks.marks import Digest, Mark, verified, verify_whole, wrong_length
from shoal.sinks.streams import Guarded, output_error

_TEMPORARY: Final = ".tmp"
_PARTIAL: Final = ".partial"


def check_target(path: Path) -> None:
    """Refuse what is no file: renaming over a device or pipe would replace it, as root even /dev/null."""
    with output_error(path):
        if path.is_dir() and not path.is_symlink():
            raise OutputError(f"{path}: is a folder where a file is needed; name a file in it")
        if path.exists() and not path.is_file():
            raise OutputError(f'{path}: is not a regular file; name a file, or "-" for standard output')
        is_regular(path)


def check_file(path: Path) -> None:
    """Refuse a path, as `check_target` does, also where the partial file next to it cannot be made."""
    check_target(path)
    with output_error(path):
        is_regular(path.with_name(path.name + _PARTIAL))


class FileSink:
    """One file: written as `<path>.partial` and renamed when it is finished.

    Parameters
    ----------
    private
        Only the owner may read it, from the first byte on.
    in_place
        Write to the path itself, without a partial file: for what must be there even if the run dies.
    checked
        Compute the digest of what is written, for a checkpoint.
    """

    def __init__(
        self, path: str | Path, *, private: bool = False, in_place: bool = False, checked: bool = False
    ) -> None:
        self.path = Path(path)
        self._is_private = private
        self._is_checked = checked
        self._working = self.path if in_place else self.path.with_name(self.path.name + _PARTIAL)
        self._out: Guarded | None = None
        self._digest: Digest | None = None
        self._is_begun = False
        self.mark: Mark | None = None
        """Of the last commit, or of where this was resumed."""

    def resume(self, position: Mark | int | None) -> BinaryIO:
        """Cut the file at a committed length and go on there; None or 0: start anew.

        CheckpointError where the file is shorter or, with a mark, where its bytes are others.
        """
        self.close()
        mark = Mark(position) if isinstance(position, int) else position
        with output_error(self.path):
            check_target(self.path)
            make_folder(self.path.parent)
            file = self._reopened(mark) if mark and mark.length else self._begun()
            self._out, self._is_begun = Guarded(file, self.path, digest=self._digest), True
            self.mark = mark
            sync_folder(self.path.parent)  # or a checkpoint could outlive the file it counts on
        return self._out  # type: ignore[return-value]

    def commit(self) -> int:
        """Bring everything written to the disk; give the length in bytes."""
        out = self._require_open()
        out.sync()
        self.mark = Mark(out.tell(), self._digest.text() if self._digest else None)
        return self.mark.length

    def finish(self) -> None:
        """Make the file visible under its name. Once more does no harm."""
        if self._out is not None:
            self._out.sync()
        self.close()
        with output_error(self.path):
            if self._working != self.path and (self._working.exists() or not self.path.exists()):
                os.replace(self._working, self.path)
            sync_folder(self.path.parent)

    def verify(self, mark: Mark) -> None:
        """Check the finished file against its mark."""
        with output_error(self.path):
            verify_whole(self.path, mark)

    def close(self) -> None:
        """Let go; what was not committed may be lost."""
        out, self._out = self._out, None
        if out is not None:
            out.close()

    def discard(self) -> None:
        """Give up: what was begun goes, a finished file stays."""
        with contextlib.suppress(OutputError):  # what fails here has failed before, and was said
            self.close()
        if self._is_begun and self._working != self.path:
            with output_error(self.path):
                self._working.unlink(missing_ok=True)

    def _require_open(self) -> Guarded:
        if self._out is None:
            raise OutputError(f"{self.path}: is not open; call resume first")
        return self._out

    def _begun(self) -> BinaryIO:
        self._digest = Digest() if self._is_checked else None
        return create_file(self._working, private=self._is_private)

    def _reopened(self, mark: Mark) -> BinaryIO:
        place = self._place(mark)
        file = open_existing(place, private=self._is_private)
        try:
            if self._is_checked or mark.digest is not None:
                self._digest = verified(file, mark, place)
            if place != self._working:
                os.replace(place, self._working)
            file.truncate(mark.length)
            file.seek(mark.length)
        except BaseException:
            file.close()
            raise
        return file

    def _place(self, mark: Mark) -> Path:
        """The file to go on with: a run that died between renaming and its last note left the finished one."""
        if is_regular(self._working):
            length = self._working.stat().st_size
            if length < mark.length:
                raise wrong_length(self._working, length, mark)
            return self._working
        if is_regular(self.path) and self.path.stat().st_size == mark.length:
            return self.path
        raise wrong_length(self._working, 0, mark)


class PartsSink:
    """Numbered files in a folder; a part is there under its name only when it is complete and committed.

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
        """Of the committed parts in order."""

    @property
    def _count(self) -> int:
        return len(self.marks)

    def resume(self, marks: Sequence[Mark] | None) -> None:
        """Go back to these parts, checked against their marks; None or none: start anew.

        Parts that follow them without a gap were written after the checkpoint and are removed: they are written again.
        A run that starts anew removes the parts of an earlier one. Any other file that a reader of the folder would
        take for a part is refused. CheckpointError where a part is missing, shorter, longer or altered.
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
        """Refuse files that a reader of the folder would take for parts: rows that no promise covers.

        Known are `count` parts and, unless the run is finished, those that follow them without a gap; without a count,
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
                    f"{path}: lies among the parts but was not written by this run; "
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
        """Make the open part, if any, complete and visible; give the number of parts."""
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
        """Give up the open part, if any."""
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


class StandardOutput:
    """Standard output: what was written cannot be taken back, so there is no going on after a crash."""

    def __init__(self) -> None:
        self._out = Guarded(sys.stdout.buffer, "standard output", keep_open=True)

    def begin(self) -> BinaryIO:
        return self._out  # type: ignore[return-value]

    def commit(self) -> int:
        """Hand everything over; give the bytes so far."""
        self._out.flush()
        return self._out.written

    def finish(self) -> None:
        self._out.flush()

    def discard(self) -> None:
        """What was written cannot be taken back."""

    def close(self) -> None:
        """Standard output belongs to the process and stays open."""
