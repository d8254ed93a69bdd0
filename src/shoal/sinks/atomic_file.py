"""A file that appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import BinaryIO, Final

from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import create_file, is_regular, open_existing
from shoal.errors import OutputError
from shoal.sinks.durable import Guarded, make_folder, output_error
from shoal.sinks.marks import Digest, Mark, verified, verify_whole, wrong_length

PARTIAL: Final = ".partial"


def check_target(path: Path) -> None:
    """Refuse what is not a file: a rename would replace a device or pipe, for root even /dev/null."""
    with output_error(path):
        if path.is_dir() and not path.is_symlink():
            raise OutputError(f"{path}: is a folder where a file is needed; name a file in it")
        if path.exists() and not path.is_file():
            raise OutputError(f'{path}: is not a regular file; name a file, or "-" for standard output')
        is_regular(path)


def check_file(path: Path) -> None:
    """As `check_target`, and refuse a path whose partial file cannot be created."""
    check_target(path)
    with output_error(path):
        is_regular(path.with_name(path.name + PARTIAL))


class AtomicFile:
    """One file: written as `<path>.partial` and renamed when it is finished.

    Parameters
    ----------
    private
        Only the owner may read it, from the first byte on.
    in_place
        Write to the path itself, without a partial file: for what must exist even if the run is killed.
    checked
        Compute the digest of what is written, for a checkpoint.
    """

    def __init__(
        self, path: str | Path, *, private: bool = False, in_place: bool = False, checked: bool = False
    ) -> None:
        self.path = Path(path)
        self._is_private = private
        self._is_checked = checked
        self._working = self.path if in_place else self.path.with_name(self.path.name + PARTIAL)
        self._out: Guarded | None = None
        self._digest: Digest | None = None
        self._is_begun = self._has_durable_name = False
        self.mark: Mark | None = None
        """The mark of the last commit, or of the commit this was resumed from."""

    def resume(self, position: Mark | int | None) -> BinaryIO:
        """Truncate the file to a committed length and continue there; None or 0 starts a new file.

        CheckpointError if the file is shorter or, with a mark, if its bytes differ.
        """
        self.close()
        mark = Mark(position) if isinstance(position, int) else position
        with output_error(self.path):
            check_target(self.path)
            make_folder(self.path.parent)
            file = self._reopened(mark) if mark and mark.length else self._begun()
            self._out, self._is_begun = Guarded(file, self.path, digest=self._digest), True
            self.mark, self._has_durable_name = mark, False
        return self._out  # type: ignore[return-value]

    def commit(self) -> int:
        """Sync everything written to disk; return the length in bytes."""
        out = self._require_open()
        out.sync()
        with output_error(self.path):
            self._sync_name()  # or a checkpoint could outlive the file it refers to
        self.mark = Mark(out.tell(), self._digest.text() if self._digest else None)
        return self.mark.length

    def finish(self) -> None:
        """Make the file visible under its name. Repeating it does no harm."""
        if self._out is not None:
            self._out.sync()
        self._close()
        with output_error(self.path):
            if self._working != self.path and (self._working.exists() or not self.path.exists()):
                os.replace(self._working, self.path)
                self._has_durable_name = False
            self._sync_name()

    def _sync_name(self) -> None:
        if not self._has_durable_name:
            sync_folder(self.path.parent)
            self._has_durable_name = True

    def verify(self, mark: Mark) -> None:
        """Check the finished file against its mark."""
        with output_error(self.path):
            verify_whole(self.path, mark)

    def close(self) -> None:
        """Close the file; what was not committed may be lost. A new file in which nothing was written is removed."""
        is_unused = self._out is not None and self.mark is None and not self._out.written
        self._close()
        if is_unused and self._working != self.path:
            self._working.unlink(missing_ok=True)

    def _close(self) -> None:
        out, self._out = self._out, None
        if out is not None:
            out.close()

    def discard(self) -> None:
        """Remove an unfinished file; a finished one stays."""
        with contextlib.suppress(OutputError):  # it failed before, and was reported
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
        """The file to continue: the finished one if a run was killed between the rename and its last checkpoint."""
        if is_regular(self._working):
            length = self._working.stat().st_size
            if length < mark.length:
                raise wrong_length(self._working, length, mark)
            return self._working
        if is_regular(self.path) and self.path.stat().st_size == mark.length:
            return self.path
        raise wrong_length(self._working, 0, mark)
