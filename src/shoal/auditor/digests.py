"""Digests of files: what a report or an attestation is about."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

_BESIDE: Final = (".certificate.json", ".blocks.json", ".blocks.parquet")


def checksum(given: Any) -> str | None:
    """Return the SHA-256 of a file; of a folder or a list of files, that of its files' digests. None for anything else.

    A folder's digest covers the names of its files; files in subfolders are not part of it.
    """
    if isinstance(given, list) and given and all(isinstance(one, str | Path) for one in given):
        parts = [checksum(one) for one in given]
        return None if None in parts else hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
    if not isinstance(given, str | Path) or not Path(given).exists():
        return None
    path = Path(given)
    if not path.is_dir():
        return _of_file(path)
    lines = [f"{_of_file(file)}  {file.name}" for file in sorted(path.iterdir()) if file.is_file()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def checksums_beside(release: Any) -> dict[str, str]:
    """Return the digests of the files that belong to a release of sets, by their endings."""
    if not isinstance(release, str | Path):
        return {}
    base = str(release).rstrip("/")
    found = {ending: Path(base + ending) for ending in _BESIDE}
    return {ending.strip("."): _of_file(path) for ending, path in found.items() if path.is_file()}


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
