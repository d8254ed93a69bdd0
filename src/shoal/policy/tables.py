"""The tables that policies of all methods have: [stream], [source], [sink], [trace], [dead_letters], [checkpoint]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from shoal.decode.spellings import DateForm, Encoding
from shoal.methods.settings import Duration, Name, Names
from shoal.policy.fields import (
    Delimiter,
    FilePlace,
    Header,
    Interval,
    KeptPlace,
    Location,
    Place,
    Places,
    Section,
    Separator,
    WordsOrColumns,
)

_LATER_KEYS: Final = {"time_unit": None, "carry_identifying": False}
ColumnType = Literal["int64", "float64", "string", "bool", "timestamp"]
FileKind = Literal["csv", "jsonl", "parquet", "arrow"]
FILE_KINDS: Final = ("csv", "jsonl", "parquet", "arrow")
ONLY_READ: Final = ("zeek", "access-log")
"""Kinds of files that are read and never written."""
_ONLY_FOR: Final = {
    "delimiter": ("csv",),
    "header": ("csv",),
    "nulls": ("csv",),
    "encoding": ("csv",),
    "decimal": ("csv",),
    "dates": ("csv",),
    "trim": ("csv",),
    "max_record_bytes": ("csv", "jsonl", *ONLY_READ),
}


class StreamSection(Section):
    """The columns of persons and times, and columns published unchanged. Not every method needs both."""

    person: Name | None = Field(default=None, description="name the column of persons")
    time: Name | None = Field(default=None, description="name the column of times")
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    carry: Names = ()
    carry_identifying: bool = False
    """Whether carried columns may single people out."""

    def plain_fields(self) -> dict[str, Any]:
        # A key left at its default does not count, so that checkpoints made before the key existed stay valid.
        fields = super().plain_fields()
        return {name: value for name, value in fields.items() if name not in _LATER_KEYS or value != _LATER_KEYS[name]}


class SourceSection(Section):
    """The table of any source."""

    kind: str

    @property
    def is_endless(self) -> bool:
        """Whether a run goes on until it is stopped."""
        return False


class FileSource(SourceSection):
    """Files, or standard input, in one format."""

    kind: FileKind | Literal["zeek", "access-log"]
    path: Places = Field(description='name a file, folder or pattern, a list of them, or "-"')
    compression: Literal["auto", "none", "gzip", "zstd"] = "auto"
    delimiter: Delimiter = ","
    header: Header | None = None
    nulls: WordsOrColumns = ()
    encoding: Encoding = "utf-8"
    decimal: Literal[".", ","] = "."
    dates: dict[str, DateForm] = Field(default_factory=dict)
    trim: bool = True
    max_record_bytes: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    types: dict[str, ColumnType] = Field(default_factory=dict)
    separator: Separator | None = None

    @property
    def trims(self) -> bool:
        """Whether blanks around values are removed."""
        return self.kind == "csv" and self.trim

    @classmethod
    def cross_check(cls, table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
        return _misplaced_keys(table)


class SinkSection(Section):
    """The table of any sink."""

    kind: str

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the output in summaries."""

    @property
    def place(self) -> Location | None:
        """The file, folder or standard output that rows go to; None for a sink of another kind."""
        return None


class FileSink(SinkSection):
    """A file, a folder of part files, or standard output, in one format."""

    kind: FileKind
    path: Place = Field(description='name a file, a folder (ending in "/"), or "-"')
    compression: Literal["none", "gzip", "zstd"] = "none"
    delimiter: Delimiter = ","
    separator: Separator | None = None

    @property
    def name(self) -> str:
        return self.path.text

    @property
    def place(self) -> Location:
        return self.path

    @model_validator(mode="before")
    @classmethod
    def _compression_by_name(cls, table: Any) -> Any:
        """A file named .gz or .zst is compressed accordingly unless the policy sets `compression`."""
        path = table.get("path")
        endings = {".gz": "gzip", ".zst": "zstd"}
        by_name = endings.get(Path(path).suffix) if isinstance(path, str) else None
        return {"compression": by_name, **table} if by_name else table

    @classmethod
    def cross_check(cls, table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
        return [*_misplaced_keys(table), *_compressed_outside(table)]


def _compressed_outside(table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Refuse gzip or zstd around Parquet and Arrow files: their readers do not expect it."""
    found: list[tuple[tuple[str, ...], str]] = []
    if table.get("kind") not in ("parquet", "arrow"):
        return found
    if str(table.get("path")).endswith((".gz", ".zst")):
        found.append((("path",), "such files cannot be compressed as a whole; leave out the ending .gz or .zst"))
    if table["kind"] == "arrow" and table.get("compression", "none") != "none":
        found.append((("compression",), "Arrow files are written uncompressed; leave it out"))
    return found


def _misplaced_keys(table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    return [
        ((key,), f"is only for {' and '.join(kinds)}; leave it out")
        for key, kinds in _ONLY_FOR.items()
        if key in table and table.get("kind") not in kinds
    ]


class TraceSection(Section):
    """Where the private trace for the auditor goes."""

    path: FilePlace = Field(description="name the Parquet file the trace is written to")


class DeadLettersSection(Section):
    """Where refused rows are listed; by default next to the output."""

    path: FilePlace | None = None
    name: Name | None = None
    """Of the topic or stream, next to a sink of messages."""
    keep_rows: bool = False


class CheckpointSection(Section):
    """Where state is saved, and how often, so that a run can resume after a crash."""

    path: KeptPlace = Field(description="name where state is kept")
    every: Interval = Duration("30s")
