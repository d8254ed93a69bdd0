"""Files and folders of parts that are complete or not there, and standard output."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from shoal.errors import CheckpointError, OutputError
from shoal.sinks.folders import make_folder, sync_folder
from shoal.sinks.streams import Guarded, output_error

_TEMPORARY: Final = ".tmp"
_PARTIAL: Final = ".partial"
_OWNER_ONLY: Final = 0o600
_AS_UMASK_SAYS: Final = 0o666


def check_target(path: Path) -> None:
    """Refuse what is no file: renaming over a device or pipe would replace it, as root even /dev/null."""
    if path.is_dir():
        raise OutputError(f"{path}: is a folder where a file is needed; name a file in it")
    if path.exists() and not path.is_file():
        raise OutputError(f'{path}: is not a regular file; name a file, or "-" for standard output')


class FileSink:
    """One file: written as `<path>.partial` and renamed when it is finished.

    Parameters
    ----------
    private
        Only the owner may read it, from the first byte on.
    in_place
        Write to the path itself, without a partial file: for what must be there even if the run dies.
    """

    def __init__(self, path: str | Path, *, private: bool = False, in_place: bool = False) -> None:
        self.path = Path(path)
        self._mode = _OWNER_ONLY if private else _AS_UMASK_SAYS
        self._working = self.path if in_place else self.path.with_name(self.path.name + _PARTIAL)
        self._out: Guarded | None = None
        self._is_begun = False

    def resume(self, position: int | None) -> BinaryIO:
        """Cut the file at a committed length and go on there; None or 0: start anew."""
        self.close()
        with output_error(self.path):
            check_target(self.path)
            make_folder(self.path.parent)
            if position:
                self._take_back(position)
                self._check_length(position)
            file = _open(self._working, self._mode)
            self._out, self._is_begun = Guarded(file, self.path), True
            file.truncate(position or 0)
            file.seek(position or 0)
            sync_folder(self.path.parent)  # or a checkpoint could outlive the file it counts on
        return self._out  # type: ignore[return-value]

    def commit(self) -> int:
        """Bring everything written to the disk; give the length in bytes."""
        out = self._require_open()
        out.sync()
        return out.tell()

    def finish(self) -> None:
        """Make the file visible under its name. Once more does no harm."""
        if self._out is not None:
            self._out.sync()
        self.close()
        with output_error(self.path):
            if self._working != self.path and (self._working.exists() or not self.path.exists()):
                os.replace(self._working, self.path)
            sync_folder(self.path.parent)

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

    def _take_back(self, position: int) -> None:
        """A run that died between renaming and its last note left the finished file: go on with that one."""
        if not self._working.exists() and self.path.exists() and self.path.stat().st_size == position:
            os.replace(self.path, self._working)

    def _check_length(self, position: int) -> None:
        length = self._working.stat().st_size if self._working.exists() else 0
        if length < position:
            raise CheckpointError(
                f"{self._working}: has {length} bytes where the checkpoint has {position}; "
                "restore the file or start without the checkpoint"
            )


class PartsSink:
    """Numbered files in a folder; a part is there under its name only when it is complete and committed."""

    def __init__(self, folder: str | Path, suffix: str, *, private: bool = False, prefix: str = "part-") -> None:
        self.folder = Path(folder)
        self._suffix = suffix
        self._prefix = prefix
        self._mode = _OWNER_ONLY if private else _AS_UMASK_SAYS
        self._folder_mode = 0o700 if private else 0o777
        self._out: Guarded | None = None
        self._count = 0

    def resume(self, parts: int | None) -> None:
        """Go back to the first so many parts; None or 0: start anew. Other files in the folder stay."""
        self._abandon()
        self._count = parts or 0
        with output_error(self.folder):
            make_folder(self.folder, mode=self._folder_mode)
            found = dict(self._found())
            missing = [number for number in range(self._count) if number not in found]
            if missing:
                raise CheckpointError(
                    f"{self._path(missing[0])}: is missing but the checkpoint counts on it; "
                    "restore the file or start without the checkpoint"
                )
            for stale in [path for number, path in found.items() if number >= self._count]:
                stale.unlink()
            self._remove_temporary()

    def begin(self) -> BinaryIO:
        """A new part, invisible until `commit`."""
        if self._out is not None:
            raise OutputError(f"{self.folder}: a part is open already; commit it first")
        with output_error(self.folder):
            make_folder(self.folder, mode=self._folder_mode)
            file = _open(self._temporary(self._count), self._mode)
            file.truncate(0)
        self._out = Guarded(file, self._path(self._count))
        return self._out  # type: ignore[return-value]

    def commit(self) -> int:
        """Make the open part, if any, complete and visible; give the number of parts."""
        if self._out is not None:
            out, self._out = self._out, None
            with contextlib.closing(out):
                out.sync()
            with output_error(self.folder):
                os.replace(self._temporary(self._count), self._path(self._count))
                sync_folder(self.folder)
            self._count += 1
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
            for _, path in list(self._found()):
                path.unlink()
            self._remove_temporary()
            self._count = 0
            with contextlib.suppress(OSError):  # not empty, or gone already
                self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{self._prefix}{number:05d}{self._suffix}"

    def _temporary(self, number: int) -> Path:
        path = self._path(number)
        return path.with_name(f".{path.name}{_TEMPORARY}")

    def _found(self) -> Iterator[tuple[int, Path]]:
        pattern = re.compile(re.escape(self._prefix) + r"(\d{5,})" + re.escape(self._suffix))
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            match = pattern.fullmatch(path.name)
            if match:
                yield int(match[1]), path

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


def _open(path: Path, mode: int) -> BinaryIO:
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), mode)
    if mode == _OWNER_ONLY and stat.S_IMODE(os.fstat(file).st_mode) != _OWNER_ONLY:
        os.fchmod(file, _OWNER_ONLY)  # it was there before, open to others
    return os.fdopen(file, "r+b")
