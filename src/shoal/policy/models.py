"""The tables of a policy, and the policy they make up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from shoal.errors import PolicyError
from shoal.methods.settings import Duration, Names
from shoal.policy.fields import (
    Delimiter,
    FilePlace,
    Interval,
    KeptPlace,
    Location,
    Place,
    Places,
    Section,
    Separator,
    Words,
)
from shoal.policy.method_base import ColumnType, MethodSection
from shoal.policy.sanitize import SanitizeSection
from shoal.policy.stream import StreamSection

FileKind = Literal["csv", "jsonl", "parquet", "arrow"]
FILE_KINDS: Final = ("csv", "jsonl", "parquet", "arrow")
_ONLY_FOR: Final = {
    "delimiter": ("csv",),
    "header": ("csv",),
    "nulls": ("csv",),
    "trim": ("csv",),
    "max_record_bytes": ("csv", "jsonl"),
}


class FileSource(Section):
    """Files, or standard input, in one format."""

    kind: FileKind
    path: Places = Field(description='name a file, folder or pattern, a list of them, or "-"')
    compression: Literal["auto", "none", "gzip", "zstd"] = "auto"
    delimiter: Delimiter = ","
    header: Names | None = None
    nulls: Words = ()
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


class FileSink(Section):
    """A file, a folder of part files, or standard output, in one format."""

    kind: FileKind
    path: Place = Field(description='name a file, a folder (ending in "/"), or "-"')
    compression: Literal["none", "gzip", "zstd"] = "none"
    delimiter: Delimiter = ","
    separator: Separator | None = None

    @model_validator(mode="before")
    @classmethod
    def _compression_by_name(cls, table: Any) -> Any:
        """A file called .gz or .zst is compressed that way unless the policy says otherwise."""
        path = table.get("path")
        endings = {".gz": "gzip", ".zst": "zstd"}
        by_name = endings.get(Path(path).suffix) if isinstance(path, str) else None
        return {"compression": by_name, **table} if by_name else table

    @classmethod
    def cross_check(cls, table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
        return [*_misplaced_keys(table), *_compressed_outside(table)]


SOURCES: Final[dict[str, type[Section]]] = dict.fromkeys(FILE_KINDS, FileSource)
SINKS: Final[dict[str, type[Section]]] = dict.fromkeys(FILE_KINDS, FileSink)
"""The table for each `kind`. Every kind is a format of files now; a broker adds its own name and table."""


def _compressed_outside(table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Parquet and Arrow files are compressed inside or not at all: readers find no gzip around them."""
    found: list[tuple[tuple[str, ...], str]] = []
    if table.get("kind") not in ("parquet", "arrow"):
        return found
    if str(table.get("path")).endswith((".gz", ".zst")):
        found.append((("path",), "such files are not compressed from outside; leave out the ending .gz or .zst"))
    if table["kind"] == "arrow" and table.get("compression", "none") != "none":
        found.append((("compression",), "Arrow files are written without; leave it out"))
    return found


def _misplaced_keys(table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    return [
        ((key,), f"is only for {' and '.join(kinds)}; leave it out")
        for key, kinds in _ONLY_FOR.items()
        if key in table and table.get("kind") not in kinds
    ]


class TraceSection(Section):
    """Where the private trace goes that the auditor reads."""

    path: FilePlace = Field(description="name the Parquet file the trace is written to")


class DeadLettersSection(Section):
    """Where refused rows are noted; by default beside the sink."""

    path: FilePlace | None = None
    keep_rows: bool = False


class CheckpointSection(Section):
    """Where state is kept for after a crash, and how often."""

    path: KeptPlace = Field(description="name where state is kept")
    every: Interval = Duration("30s")


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where refused rows are noted, and whether the rows themselves are."""

    path: Location
    keep_rows: bool


@dataclass(frozen=True)
class Policy:
    """A policy in which everything was checked; see :func:`shoal.policy.load_policy`."""

    stream: StreamSection
    source: FileSource
    anonymize: MethodSection
    written_sink: FileSink | None
    """As written; a policy with [sanitize] has none."""
    dead_letters: DeadLetters
    trace: TraceSection | None = None
    checkpoint: CheckpointSection | None = None
    sanitize: SanitizeSection | None = None
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    """Hierarchies and ontologies of the columns that are generalized, read when the policy was."""
    warnings: tuple[str, ...] = ()
    """Sentences about what is allowed and rarely meant."""
    file: Path | None = None

    @property
    def sink(self) -> FileSink:
        """Where rows go, unless the policy is one of the sanitization process."""
        if self.written_sink is None:
            raise PolicyError("[sink]: is missing; this policy has [sanitize], so run it with: shoal sanitize")
        return self.written_sink

    def fingerprint(self, *sections: str) -> str:
        """A hash of what the policy says, hierarchies included; of some sections only, if named.

        Comments, layout, the order of keys, defaults written out and the folder it lies in do not count.
        """
        content = {name: self._plain_section(name) for name in sections or _SECTIONS}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=32, person=b"shoal-policy-1").hexdigest()

    def parameters(self) -> dict[str, Any]:
        """Keyword arguments of the anonymizer, hierarchies included; the secret comes from elsewhere."""
        return self.anonymize.parameters(self.stream, self.hierarchies)

    def _plain_section(self, name: str) -> Any:
        section = _plain(self.written_sink if name == "sink" else getattr(self, name))
        if name != "anonymize":
            return section
        # What a hierarchy holds counts, not how it is described.
        trees = {column: hierarchy.to_dict() for column, hierarchy in self.hierarchies.items()}
        return {"method": _without_hierarchies(section), "hierarchies": trees}


_SECTIONS: Final = ("stream", "source", "anonymize", "sink", "dead_letters", "trace", "checkpoint", "sanitize")


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return _plain(value.plain_fields())
    if isinstance(value, DeadLetters):
        return {"path": _plain(value.path), "keep_rows": value.keep_rows}
    if isinstance(value, Location):
        return value.text
    if isinstance(value, Duration):
        return {"ns": int(value)}
    if isinstance(value, Mapping):
        return {key: _plain(below) for key, below in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value


def _without_hierarchies(content: Any) -> Any:
    if not isinstance(content, dict):
        return content
    return {key: _without_hierarchies(below) for key, below in content.items() if key not in ("hierarchy", "ontology")}
