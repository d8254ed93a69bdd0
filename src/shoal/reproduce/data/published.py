"""The files of a data set as they were published, in a folder the user names."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

from shoal.errors import InputError


def find_files(folder: Path, names: Sequence[str], *, publisher: str) -> list[Path]:
    """Where each file is, plain or gzipped, in the folder or in a folder right below it."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; give the one that holds {', '.join(names)}")
    places = [folder, *sorted(place for place in folder.iterdir() if place.is_dir())]
    found = {name: _find(places, name) for name in names}
    lacking = [name for name, path in found.items() if path is None]
    if lacking:
        raise InputError(
            f"{folder}: lacks {', '.join(lacking)} (or the same with .gz), neither there nor in a folder right below; "
            f"published in the {publisher}. Without --data an imitation is used"
        )
    return [path for path in found.values() if path is not None]


def _find(places: Sequence[Path], name: str) -> Path | None:
    candidates = (place / (name + suffix) for place in places for suffix in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def read_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields; empty lines are left out."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            reader = csv.reader(file, skipinitialspace=True)
            for fields in reader:
                if fields:
                    yield reader.line_num, fields
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path.name}: cannot be read ({reason}); download it again") from None
