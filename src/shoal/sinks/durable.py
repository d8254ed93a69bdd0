"""Streams and folders that survive a power cut, with errors that say what to do."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from shoal.crypto.private_files import sync_folder
from shoal.errors import OutputError
from shoal.sinks.marks import Digest

_SENTENCES = {
    errno.ENOSPC: "no space is left on the disk; make room and run again",
    errno.EDQUOT: "the disk quota is used up; make room and run again",
    errno.EACCES: "may not be written; check the permissions of the folder",
    errno.EPERM: "may not be written; check the permissions of the folder",
    errno.EROFS: "is on a read-only disk; name another place",
    errno.EISDIR: "is a folder where a file is needed; name a file in it",
    errno.ENOTDIR: "a part of the path is a file, not a folder; name another place",
    errno.EEXIST: "is a file where a folder is needed; name another place",
    errno.ENOENT: "its folder is missing and cannot be created; check the path",
    errno.ENAMETOOLONG: "the name is too long; name a shorter one",
    errno.ELOOP: "is a symbolic link, which is not followed; remove it, or name another file",
    errno.EPIPE: "the reader has gone away; keep it open until the run is done",
}


@contextlib.contextmanager
def output_error(name: str | Path) -> Iterator[None]:
    """Turn any OSError into an OutputError: one sentence with the path and what to do."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        name = error.filename if error.errno == errno.ELOOP and error.filename else name
        reason = error.strerror or type(error).__name__
        sentence = _SENTENCES.get(error.errno or 0, f"cannot be written ({reason}); check the disk and run again")
        raise OutputError(f"{name}: {sentence}") from None


class Guarded(io.RawIOBase):
    """A stream that writes everything or raises OutputError."""

    def __init__(
        self, out: BinaryIO, name: str | Path, *, keep_open: bool = False, digest: Digest | None = None
    ) -> None:
        self._target = out
        self._name = name
        self._keep_open = keep_open
        self._digest = digest
        self.written = 0
        self._synced: int | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        with self._errors():
            done = 0
            while done < len(view):
                done += self._target.write(view[done:])
        self.written += done
        if self._digest is not None:
            self._digest.update(view)
        return done

    def tell(self) -> int:
        with self._errors():
            return self._target.tell()

    def flush(self) -> None:
        if not self._target.closed:
            with self._errors():
                self._target.flush()

    def sync(self) -> None:
        """Flush, and wait until the data is on disk; nothing to do if all of it was there before."""
        if self._synced == self.written:
            return
        with self._errors():
            self._target.flush()
            os.fsync(self._target.fileno())
        self._synced = self.written

    def close(self) -> None:
        if not self.closed and not self._keep_open:
            with self._errors():
                self._target.close()
        super().close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        with output_error(self._name):
            try:
                yield
            except BrokenPipeError:
                self._silence()
                raise

    def _silence(self) -> None:
        """The interpreter flushes standard output once more at exit: redirect that to the null device."""
        with contextlib.suppress(OSError, ValueError):
            number = self._target.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Create a folder and its parents; a new name is durable only when its folder is synced."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for place in reversed(missing):
        sync_folder(place.parent)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written: it, or a parent, is a file or is not writable."""
    with output_error(folder):
        there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
        if not there.is_dir():
            number = errno.EEXIST if there == folder else errno.ENOTDIR
            raise OSError(number, os.strerror(number))
        if not os.access(there, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: cannot be written; make {there} writable or name another place")
