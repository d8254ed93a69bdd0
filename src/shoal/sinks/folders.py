"""Folders whose names last through a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder and those above it; a new name is on the disk only when the folder it stands in is synced."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for place in reversed(missing):
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Make names in a folder (new files, renames) last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
