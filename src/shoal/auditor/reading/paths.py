"""Find the files of a table, tell their format, and read their bytes."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from shoal.auditor.reading.memory import AS_OBJECTS, current
from shoal.auditor.reading.spellings import PLAIN, Spelling
from shoal.errors import InputError, PolicyError, TruncatedInput

_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES: Final = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_OTHER_FILES: Final = (".dead.jsonl", ".tmp", ".blocks.json", ".blocks.parquet", ".certificate.json")
_BATCHES: Final = "batch=" + 9 * "[0-9]"
_HEAD: Final = 4096
_BLOCK: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file as the policy describes it."""

    kind: str | None = None
    delimiter: str | None = None
    header: list[str] | None = None
    lacks_first_name: bool = False
    """Whether the header line of a CSV file has names for all columns but the first."""
    line_column: str | None = None
    """The column name for the lines of a text file; None if such files are not accepted."""
    spelling: Spelling = PLAIN
    """How the values of a CSV file are written."""
    trims: bool = False
    """Whether to strip values and header names of a CSV file; sources do by default."""
    wanted: frozenset[str] | None = None
    """Columns of a CSV or Parquet file that are needed; None: all. Others are dropped."""
    names_once: bool = False
    """Whether a repeated name is an error, in a JSON object and in a header; a release must be unambiguous."""

    @classmethod
    def of_source(cls, section: Mapping[str, Any]) -> Format:
        """Read ``[source]``: values are stripped unless ``trim = false``."""
        trim = section.get("trim", True)
        if not isinstance(trim, bool):
            raise PolicyError("[source] trim: must be true or false")
        return replace(cls.of(section), trims=trim)

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> Format:
        """Read ``[source]`` or ``[sink]``; values are not stripped."""
        delimiter, header = section.get("delimiter"), section.get("header")
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise PolicyError("delimiter: give one character")
        names = [str(name) for name in header] if isinstance(header, list) else None
        kind, spelling = section.get("kind"), Spelling.of(section)
        return cls(
            kind if isinstance(kind, str) else None, delimiter, names, lacks_first_name=header == "short",
            spelling=spelling,
        )  # fmt: skip


def table_paths(what: str | Path, name: str) -> list[Path]:
    """Return the files of a path: itself, the part files of a folder, or what a pattern matches, by name.

    Of a folder with one for each micro-batch (``batch=000000007``), return the part files of each, one after another.
    """
    path = Path(what)
    if path.is_dir():
        found = _parts_of(path) or [part for batch in sorted(path.glob(_BATCHES)) for part in _parts_of(batch)]
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(match) for match in glob.glob(str(what)))
    if not found:
        raise InputError(f"{name}: no file at {path}; check the path")
    return found


def _parts_of(folder: Path) -> list[Path]:
    return sorted(inner for inner in folder.iterdir() if _is_part(inner)) if folder.is_dir() else []


def _is_part(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_")) and not path.name.endswith(_OTHER_FILES)


def file_kind(path: Path, expected: Format) -> str:
    """Return "parquet", "arrow", "csv", "tsv", "jsonl", "zeek", "access-log", "lines" or "unknown"."""
    head = next(blocks(path, _HEAD), b"")[:_HEAD]
    if head[:4] == b"PAR1":
        return "parquet"
    if head[:4] == b"\xff\xff\xff\xff" or head[:6] == b"ARROW1":
        return "arrow"
    return text_kind(path, head, expected)


def text_kind(path: Path, data: bytes, expected: Format) -> str:
    """Tell the kind of a text from its name, the policy and its first bytes."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in {".gz", ".zst", ".zstd"}]
    named = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if expected.kind in ("lines", "access-log"):
        return expected.kind
    if expected.kind == "zeek":
        return "jsonl" if data.lstrip()[:1] == b"{" else "zeek"
    if {named, expected.kind} == {"csv", "jsonl"}:  # the name and the policy disagree: look at the content
        return "jsonl" if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else "csv"
    if named or expected.kind in {"csv", "jsonl"}:
        return named or str(expected.kind)
    if b"\x00" in data[:4096]:
        return "unknown"
    otherwise = "csv" if expected.line_column is None else "lines"
    return "jsonl" if data.lstrip()[:1] == b"{" else otherwise


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file as a stream of its bytes, decompressed; InputError if it cannot be read or is torn."""
    try:
        with path.open("rb") as plain:
            magic = plain.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    codec = next((codec for start, codec in _COMPRESSED.items() if magic.startswith(start)), None)
    try:
        with pa.OSFile(str(path), "rb") as file:
            yield pa.CompressedInputStream(file, codec) if codec else file
    except OSError:
        if codec is None:
            raise InputError(f"{path}: cannot be read any further") from None
        raise TruncatedInput(f"{path}: the compressed file is torn; copy it again") from None


def blocks(path: Path, size: int, encoding: str = "utf-8") -> Iterator[bytes]:
    """Yield a file, decompressed, in blocks; text of another encoding as UTF-8."""
    with opened(path) as stream:
        while block := stream.read(size):
            yield bytes(block) if encoding == "utf-8" else bytes(block).decode(encoding, "replace").encode()


def whole(path: Path, factor: int, encoding: str = "utf-8") -> bytes:
    """Return a whole file, decompressed, if its parsed form fits the allowed memory."""
    found = bytearray()
    for block in blocks(path, _BLOCK, encoding):
        current().take(str(path), factor * len(block))
        found += block
    return bytes(found)


def whole_lines(path: Path, encoding: str = "utf-8") -> Iterator[bytes]:
    """Yield a file in blocks of whole lines."""
    rest = bytearray()
    for block in blocks(path, _BLOCK, encoding):
        if len(rest) > current().left // AS_OBJECTS:
            current().take(str(path), AS_OBJECTS * len(rest))
        rest += block
        end = rest.rfind(b"\n") + 1
        if end:
            yield bytes(rest[:end])
            del rest[:end]
    if rest:
        yield bytes(rest)
