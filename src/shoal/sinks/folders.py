"""Folders whose names last through a power cut."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from shoal.errors import OutputError
from shoal.sinks.streams import output_error


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder and those above it; a new name is durable only when its folder is synced."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for place in reversed(missing):
        sync_folder(place.parent)


def check_folder(folder: Path) -> None:
    """Refuse a folder in which nothing could be written: it, or one above it, is a file or may not be changed."""
    with output_error(folder):
        there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
        if not there.is_dir():
            number = errno.EEXIST if there == folder else errno.ENOTDIR
            raise OSError(number, os.strerror(number))
        if not os.access(there, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: cannot be written; make {there} writable or name another place")


def sync_folder(folder: Path) -> None:
    """Make names in a folder (new files, renames) last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
