"""A folder with a policy and its input, and the command line called as a user calls it."""

from __future__ import annotations

import gzip
import io
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from shoal.cli.app import main
from tests.reference.effort import IS_EXHAUSTIVE

CANARY = "CANARY-alice@secret"
ROWS = [
    {"ts": 10, "user": CANARY, "site": "a.example"},
    {"ts": 11, "user": "bob", "site": "a.example"},
    {"ts": 12, "user": "cid", "site": "b.example"},
    {"ts": 13, "user": CANARY, "site": "b.example"},
    {"ts": 14, "user": "dan", "site": "a.example"},
    {"ts": 15, "user": CANARY, "site": "rare.example"},
]
RELEASED = [(11, "a.example"), (13, "b.example"), (14, "a.example")]


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    out: bytes
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """What --json printed."""
        summary: dict[str, Any] = json.loads(self.out)
        return summary

    @property
    def sentences(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


def shoal(*args: str | Path, stdin: bytes = b"") -> Ended:
    """Call the command line in this process, as `shoal args` would."""
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for name in ("out", "err")}
    given = io.TextIOWrapper(io.BytesIO(stdin))
    with (
        patch.object(sys, "argv", ["shoal", *map(str, args)]),
        patch.object(sys, "stdin", given),
        patch.object(sys, "stdout", streams["out"]),
        patch.object(sys, "stderr", streams["err"]),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    out, err = (stream.buffer.getvalue() for stream in streams.values())  # type: ignore[attr-defined]
    return Ended(code, out, err.decode())


def skip_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are composed, but written without being rendered, which takes most of the time; test-all renders them."""
    if not IS_EXHAUSTIVE:
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, file, **_: file.write(b"\x89PNG"))


@dataclass
class Scene:
    """Sections of a policy; written down when the command is called."""

    folder: Path
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sections = {
            "stream": {"person": "user", "time": "ts"},
            "source": {"kind": "csv", "path": "in.csv"},
            "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
            "sink": {"kind": "csv", "path": "out.csv"},
            **self.sections,
        }

    @property
    def policy(self) -> Path:
        return self.folder / "policy.toml"

    def write(self, name: str, content: bytes | str) -> Path:
        """Put a file there."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def write_policy(self) -> None:
        """Write the sections down."""
        lines = []
        for name, section in self.sections.items():
            lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in section.items())]
        self.policy.write_text("\n".join(lines) + "\n")

    def run(self, *args: str | Path, stdin: bytes = b"") -> Ended:
        """`shoal run policy.toml`."""
        self.write_policy()
        return shoal("run", self.policy, *args, stdin=stdin)

    def letters(self, name: str = "out.csv.dead.jsonl") -> list[dict[str, Any]]:
        """The dead letters."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def released(self, name: str = "out.csv") -> pa.Table:
        """Released rows of a file or folder of any format."""
        path = self.folder / name
        return read(path.read_bytes() if path.is_file() else path, name)

    def holds_canary(self) -> list[Path]:
        """Files, but the input, in which a person's value can be read."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith("in")]
        return [path for path in files if CANARY.encode() in path.read_bytes()]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(below)}" for key, below in value.items()) + "}"
    return json.dumps(value)


def encode(kind: str, rows: list[dict[str, Any]] | pa.Table) -> bytes:
    """Rows as a file of a kind such as csv, jsonl.gz, parquet, arrow or arrows.zst."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    form, _, compression = kind.partition(".")
    data = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet, "arrow": _arrow, "arrows": _arrows}[form](table)
    if compression == "gz":
        return gzip.compress(data)
    return pa.Codec("zstd").compress(data, asbytes=True) if compression == "zst" else data


def read(data: bytes | Path, name: str) -> pa.Table:
    """Released rows: of bytes in the format that a name ends in, or of a folder of parts."""
    if isinstance(data, Path):
        parts = sorted(path for path in data.iterdir() if path.is_file())
        return pa.concat_tables(read(path.read_bytes(), path.name) for path in parts)
    if name.endswith(".gz"):
        data, name = gzip.decompress(data), name[:-3]
    if name.endswith(".zst"):
        data, name = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(), name[:-4]
    kind = name.rsplit(".", 1)[-1]
    if kind == "jsonl":
        return pa.Table.from_pylist([json.loads(line) for line in data.splitlines()])
    readers = {
        "csv": arrow_csv.read_csv,
        "parquet": pq.read_table,
        "arrow": lambda file: pa.ipc.open_file(file).read_all(),
        "arrows": lambda file: pa.ipc.open_stream(file).read_all(),
    }
    return readers[kind](pa.BufferReader(data))


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    """Times and sites of released rows."""
    times = pc.cast(table.column("ts"), pa.int64()).to_pylist()
    return list(zip(times, table.column("site").to_pylist(), strict=True))


def _piece(table: pa.Table) -> int:
    """Several pieces in every file, however small."""
    return max(4, table.num_rows // 20)


def _csv(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    arrow_csv.write_csv(table, out)
    return bytes(out.getvalue())


def _jsonl(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def _parquet(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(table, out, row_group_size=_piece(table))
    return bytes(out.getvalue())


def _arrow(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=_piece(table))
    return bytes(out.getvalue())


def _arrows(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=_piece(table))
    return bytes(out.getvalue())
