"""Logs of Zeek: tab-separated text whose columns are described by lines that begin with #, or JSON lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import pyarrow as pa

from shoal.decode.base import Decoded, Decoder, Position, Readable
from shoal.decode.csv import CsvDecoder
from shoal.decode.jsonl import JsonlDecoder
from shoal.decode.text import BLOCK_BYTES, MAX_RECORD_BYTES
from shoal.errors import InputError

_TYPES: Final = {
    "time": pa.float64(), "interval": pa.float64(), "double": pa.float64(), "count": pa.int64(), "int": pa.int64(),
    "port": pa.int64(),
}  # fmt: skip
"""Zeek's types that are read as numbers, times as seconds since 1970; all others are text."""
_NO_QUOTE: Final = "\x01"
"""No field is quoted; Zeek writes this character as an escape."""
_COMMENT: Final = re.compile(rb"^#[^\n]*", re.MULTILINE)
_RECORD: Final = re.compile(rb"^[^#\r\n]", re.MULTILINE)
_ESCAPE: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
_MOST_HEADER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogHeader:
    """What the first lines of a log say about it."""

    separator: str
    fields: tuple[str, ...]
    types: tuple[str, ...]
    unset: str
    empty: str

    @classmethod
    def of(cls, lines: Sequence[str], name: str) -> LogHeader:
        """Read the lines; InputError if they describe no log."""
        separator = next((line.split(" ", 1)[1] for line in lines if line.startswith("#separator ")), "\\x09")
        sign = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), separator)
        if len(sign) != 1:
            raise InputError(f"{name}: the line #separator must name one character; write the log with Zeek's own")
        known = dict(line.removeprefix("#").partition(sign)[::2] for line in lines)
        fields, types = (tuple(known.get(key, "").split(sign)) for key in ("fields", "types"))
        if "fields" not in known or len(fields) != len(types):
            raise InputError(
                f"{name}: not a log of Zeek: lines #fields and #types, of the same length, must come first; keep the "
                "log's own header, or read it with another kind"
            )
        return cls(sign, fields, types, known.get("unset_field", "-"), known.get("empty_field", "(empty)"))

    @property
    def kinds(self) -> dict[str, pa.DataType]:
        """The columns that are numbers."""
        return {
            name: _TYPES[kind] for name, kind in zip(self.fields, self.types, strict=True) if kind in _TYPES
        }  # fmt: skip


class ZeekDecoder(Decoder):
    """A log of Zeek as it writes it, or its JSON lines: ``dns.log``, ``conn.log``, ``http.log`` and others.

    Columns have the types that the log names: times and intervals are seconds, counts and ports whole numbers,
    everything else is text, with escapes such as ``\\x5c`` as the log has them. Unset and empty fields are null.

    Parameters
    ----------
    assumed, lists, carried
        As for JSON lines.
    max_record_bytes
        A longer record is refused.
    """

    def __init__(
        self,
        file: Readable,
        *,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType] | None = None,
        assumed: Mapping[str, pa.DataType] | None = None,
        lists: Collection[str] = (),
        carried: Collection[str] = (),
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = BLOCK_BYTES,
        optional: Collection[str] = (),
    ) -> None:
        super().__init__(file, columns=columns, types=types, optional=optional)
        self._assumed, self._lists, self._carried = assumed or {}, lists, carried
        self._shared: dict[str, Any] = {
            "columns": self._columns, "optional": optional, "max_record_bytes": max_record_bytes,
            "block_bytes": block_bytes,
        }  # fmt: skip
        self._inner: CsvDecoder | JsonlDecoder | None = None
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._schema = self._opened().schema
        return self._schema

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        inner, self._inner = self._opened(), None
        with inner:
            yield from inner.batches(position)

    def close(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()

    def _opened(self) -> CsvDecoder | JsonlDecoder:
        """The decoder of the text; a pipe opens only once, so it goes on where the header ends."""
        if self._inner is None:
            stream = LogStream(self._file.open(), self._file.name)
            try:
                self._inner = self._made(stream, stream.header())
            except BaseException:
                stream.close()
                raise
        return self._inner

    def _made(self, stream: LogStream, header: LogHeader | None) -> CsvDecoder | JsonlDecoder:
        file: Readable = _OpenFile(self._file, stream)
        if header is None:
            options: dict[str, Any] = {"assumed": self._assumed, "lists": self._lists, "carried": self._carried}
            return JsonlDecoder(file, types=self._declared, **options, **self._shared)
        types = {**self._assumed, **header.kinds, **self._declared}
        nulls = (header.unset, header.empty)
        return _LineDecoder(
            file, types=types, delimiter=header.separator, quote=_NO_QUOTE, header=header.fields, nulls=nulls,
            **self._shared,
        )  # fmt: skip


class _LineDecoder(CsvDecoder):
    """Lines of a log; messages name the log's own header."""

    def _remedy(self, names: Sequence[str]) -> str:
        return "name columns in the policy as the line #fields does"

    def _wrong_count(self, fields: int) -> str:
        named = len(self._slots)
        return f"{fields} field{'s' * (fields != 1)} where the line #fields names {named}; complete the record"


class _OpenFile:
    """A file that is open already."""

    def __init__(self, file: Readable, stream: LogStream) -> None:
        self.name, self._stream = file.name, stream

    def open(self) -> BinaryIO:
        return self._stream  # type: ignore[return-value]

    def open_seekable(self) -> Any:
        raise InputError(f"{self.name}: a log cannot be read from any place")


class LogStream:
    """The bytes of a log, with an empty line in place of every line that begins with #.

    Several logs may follow one another if they have the same columns; else reading fails where the columns change.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._raw = b""
        """Read, and not examined yet: a line that begins with # is examined when it is complete."""
        self._at_start, self._ended = True, False
        self._known: dict[bytes, bytes] = {}
        self._failure: InputError | None = None

    @property
    def is_live(self) -> bool:
        """Whether the stream may fall silent."""
        return bool(getattr(self._stream, "is_live", False))

    def seekable(self) -> bool:
        """Positions count the bytes after lines were emptied."""
        return False

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def header(self) -> LogHeader | None:
        """The description of the log; None if it is JSON lines. To be called once, before reading."""
        while not self._ended and len(self._raw) < _MOST_HEADER_BYTES:
            if _RECORD.search(self._raw):
                break
            self._take(1 << 16)
        if self._raw.lstrip()[:1] == b"{":
            return None
        first = _RECORD.search(self._raw)
        header = self._raw[: first.start()] if first else self._raw
        lines = [line.decode("utf-8", "replace").rstrip("\r") for line in _COMMENT.findall(header)]
        return LogHeader.of(lines, self._name)

    def read(self, size: int) -> bytes:
        """Some of the bytes, at least one unless the end is reached."""
        while True:
            if self._failure is not None:
                raise self._failure
            found = self._without_comments()
            if found or self._ended:
                return found
            self._take(size)

    read_some = read

    def _take(self, size: int) -> None:
        read = getattr(self._stream, "read_some", self._stream.read)
        part = read(size)
        self._raw += part
        self._ended = not part

    def _without_comments(self) -> bytes:
        """What can be handed on of the bytes read."""
        raw, self._raw = self._raw, b""
        if not self._at_start:  # the rest of a record
            end = raw.find(b"\n") + 1
            if not end:
                return raw
            self._at_start = True
            self._raw = raw[end:]
            return raw[:end]
        last = raw.rfind(b"\n") + 1
        if raw[last : last + 1] == b"#" and not self._ended:
            raw, self._raw = raw[:last], raw[last:]
        self._at_start = raw.endswith(b"\n") or not raw
        for found in _COMMENT.finditer(raw):
            if self._changes(found[0].rstrip(b"\r")):
                self._failure = InputError(
                    f"{self._name}: another header, with other columns, follows its first; split the log there"
                )
                raw = raw[: found.start()]
                break
        return _COMMENT.sub(b"", raw)

    def _changes(self, line: bytes) -> bool:
        """Whether a line describes the log otherwise than the header did."""
        key = re.split(rb"[^#a-z_]", line, maxsplit=1)[0]
        described = (b"#separator", b"#fields", b"#types", b"#unset_field", b"#empty_field")
        return key in described and self._known.setdefault(key, line) != line
