"""Where real data lie: in a folder the user names, or one folder below."""

from __future__ import annotations

from pathlib import Path


def folder_with(data: Path | None, *names: str) -> Path | None:
    """The folder that holds all these files, plain or as .gz: the one given, or one just below; else None."""
    if data is None:
        return None
    for folder in [data, *sorted(path for path in data.iterdir() if path.is_dir())]:
        if all(any((folder / f"{name}{ending}").is_file() for ending in ("", ".gz")) for name in names):
            return folder
    return None
