"""Digests of files: what a report or an attestation is about."""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from shoal.auditor.policy import read_policy

_ENDINGS: Final = (".certificate.json", ".blocks.json", ".blocks.parquet")


def checksum(given: Any) -> str | None:
    """Return the SHA-256 of a file; of a folder, a glob or a list, that of its files' digests. None for anything else.

    A folder's digest covers the names of its files and those in its subfolders.
    """
    if isinstance(given, list) and given and all(isinstance(one, str | Path) for one in given):
        parts = [checksum(one) for one in given]
        return None if None in parts else _of_lines(parts)
    if not isinstance(given, str | Path):
        return None
    path = Path(given)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return _of_lines([[_of_file(file), file.relative_to(path).as_posix()] for file in files])
    if path.exists():
        return _of_file(path)
    matches = sorted(glob.glob(str(given)))
    return _of_lines([checksum(match) for match in matches]) if matches else None


def checksums_of_policy(policy: Any) -> dict[str, str]:
    """Return the digests of the files that a policy refers to, such as hierarchies, by their paths in the policy."""
    written = read_policy(policy)
    found = {name: checksum(written.folder / name) for name in sorted(_paths_in(written.content.get("anonymize")))}
    return {name: digest or "no such file" for name, digest in found.items()}


def _paths_in(content: Any) -> Iterator[str]:
    if isinstance(content, Mapping):
        if isinstance(content.get("path"), str):
            yield content["path"]
        for inner in content.values():
            yield from _paths_in(inner)
    elif isinstance(content, list):
        for inner in content:
            yield from _paths_in(inner)


def checksums_next_to(release: Any) -> dict[str, str]:
    """Return the digests of the files that belong to a release of sets, by their endings."""
    if not isinstance(release, str | Path):
        return {}
    base = str(release).rstrip("/")
    found = {ending: Path(base + ending) for ending in _ENDINGS}
    return {ending.strip("."): _of_file(path) for ending, path in found.items() if path.is_file()}


def _of_lines(lines: list[Any]) -> str:
    """As JSON, so that no name of a file can look like another line."""
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
