"""A small stream with everything in it that can be lost, and the files that a run on it writes."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.crypto.keys import secret_from_file
from shoal.encode.sealed import is_sealed_trace, read_sealed_trace

POLICY = "policy.toml"
STATE = "kept/state"
KEY = "a key of more than sixteen bytes"
KILLED, ALARMED = -9, -14

# Sites are shared by few people, so some rows are released and some are not. The first row's clock is days ahead: with
# lateness it waits and is refused much later. Others are late, have no person or time, or cannot be read.
ROWS = [
    "900000,eve,a", "10,ann,a", "11,bob,a", "12,cid,b", ",dan,a", "13,dan,a", "9,eve,b", "14,,a", "15,ann,b",
    "16,bob", "17,cid,a", "2,dan,b", "18,eve,a", "x,ann,a", "19,bob,c", "23,cid,b", "21,dan,b", "24,eve,b",
    "26,ann,a", "25,bob,a", "28,cid,a", "28,dan,c", '29,"eve,c', "30,ann,c",
]  # fmt: skip
OUTPUTS = ("out", "dead.jsonl", "trace.parquet")
_NEVER_KILLED: dict[Any, tuple[dict[str, Any], list[str]]] = {}
"""Results and steps by policy and input."""


@dataclass(frozen=True)
class Sink:
    """A format of the released rows and its name."""

    kind: str
    path: str

    @property
    def is_plain_text(self) -> bool:
        return self.path in ("out.csv", "out.jsonl")


SINKS = [
    Sink("csv", "out.csv"), Sink("csv", "out.csv.gz"), Sink("jsonl", "out.jsonl"), Sink("jsonl", "out.jsonl.zst"),
    Sink("parquet", "out.parquet"), Sink("parquet", "out/"), Sink("arrow", "out.arrow"), Sink("arrow", "out.arrows"),
]  # fmt: skip


class Forker:
    """The other end of tests.faults.forker."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, folder: Path, *args: str, **job: Any) -> dict[str, Any]:
        """Run `shoal args` in a folder; `at` and `how` say where its disk fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"folder": str(folder), "args": args, **job}), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        answer["err"] = (folder / "stderr.txt").read_text()
        return answer


@dataclass
class Scene:
    """A folder with input and policy; the command that runs them."""

    forker: Forker
    folder: Path
    sink: Sink
    is_key_given: bool = True

    @classmethod
    def set(
        cls,
        forker: Forker,
        folder: Path,
        sink: Sink,
        *,
        lateness: int = 0,
        is_key_given: bool = True,
        keep_rows: bool = False,
    ) -> Scene:
        """Write the input, in three files, and the policy."""
        folder.mkdir(exist_ok=True)
        for number, start in enumerate(range(0, len(ROWS), 8)):
            lines = ["ts,user,site", *ROWS[start : start + 8]]
            (folder / f"in-{number}.csv").write_text("\n".join(lines) + "\n")
        (folder / "key.txt").write_text(KEY)
        (folder / "key.txt").chmod(0o600)
        (folder / POLICY).write_text(_policy(sink, lateness, keep_rows))
        return cls(forker, folder, sink, is_key_given)

    def feed(self, kind: str) -> None:
        """The same rows, as far as they can be read, in another format."""
        policy = (self.folder / POLICY).read_text()
        for path in list(self.folder.glob("in-*.csv")):
            rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
            records = [dict(zip(("ts", "user", "site"), row, strict=True)) for row in rows if len(row) == 3]
            _write(kind, path.with_suffix("." + kind), records, path.read_bytes())
            path.unlink()
        policy = policy.replace('path = "in-*.csv"', f'path = "in-*.{kind}"')
        (self.folder / POLICY).write_text(policy.replace('kind = "csv"', f'kind = "{kind.removesuffix(".gz")}"', 1))

    def run(self, **fault: Any) -> dict[str, Any]:
        """The command, always the same."""
        return self.forker.run(self.folder, "run", POLICY, "--checkpoint", STATE, "--json", env=self.env, **fault)

    @property
    def env(self) -> dict[str, str]:
        """Where the key is, if one is given."""
        return {"SHOAL_KEY_FILE": str(self.folder / "key.txt")} if self.is_key_given else {}

    def run_to_the_end(self) -> dict[str, Any]:
        """Start again, as a user would, and see it end well."""
        answer = self.run()
        assert answer["code"] == 0, answer["err"]
        return self.summary()

    def never_killed(self) -> tuple[dict[str, Any], list[str]]:
        """The result of a run that nothing happens to, with the key that is there; and the steps it took.

        With a key that is given, every run on the same files ends like this: one is enough for all tests.
        """
        seen = tuple((path.name, path.read_bytes()) for path in sorted(self.folder.glob("in-*")))
        which = (self.is_key_given, (self.folder / POLICY).read_text(), seen)
        if not self.is_key_given or which not in _NEVER_KILLED:
            self.forget(keep_key=True)
            answer = self.run()
            assert answer["code"] == 0, answer["err"]
            _NEVER_KILLED[which] = self.result(), answer["steps"]
        return deepcopy(_NEVER_KILLED[which])

    def kill_late(self) -> None:
        """Leave a run behind that was killed after several checkpoints."""
        steps = self.never_killed()[1]
        at = next(number for number, step in enumerate(steps, 1) if step == "unlink checkpoint-00000001")
        self.forget(keep_key=True)
        assert self.run(at=at, how="after")["code"] == KILLED

    def summary(self) -> dict[str, Any]:
        """The summary of the last run that ended."""
        summary: dict[str, Any] = json.loads((self.folder / "stdout.txt").read_text())
        return summary

    def everything(self) -> dict[str, tuple[bytes, int]]:
        """All files except the output of the last command: content and time of change."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith("std")]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}

    def contents(self) -> dict[str, bytes]:
        """All files except the output of the last command."""
        return {name: content for name, (content, _) in self.everything().items()}

    def keep(self) -> dict[Path, bytes]:
        """What a killed run left behind."""
        made = [path for path in self.folder.rglob("*") if path.name.startswith((*OUTPUTS, "checkpoint"))]
        return {path: path.read_bytes() for path in made if path.is_file()}

    def bring_back(self, left: dict[Path, bytes]) -> None:
        """Stand where a killed run had stood."""
        self.forget()
        for path, content in left.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)

    def checkpoints(self) -> list[Path]:
        """From oldest to newest."""
        return sorted((self.folder / STATE).glob("checkpoint-*-*[0-9a-f]"))

    def forget(self, *, keep_key: bool = False) -> None:
        """Remove everything runs have made."""
        state = self.folder / STATE
        for path in list(self.folder.iterdir()):
            if path == state.parent and keep_key and (state / "key").exists():
                _keep_only(state, "key")
            elif path.is_dir():
                shutil.rmtree(path)
            elif path.name.startswith(OUTPUTS):
                path.unlink()

    def result(self) -> dict[str, Any]:
        """What was released, refused, traced and counted."""
        counts = self.summary()
        names = ("rows_in", "released", "suppressed", "dead", "dead_by_reason", "files", "live_pairs", "failure")
        return {
            "names": sorted(path.name for path in self.folder.iterdir()),
            "rows": self._rows(),
            "letters": (self.folder / "dead.jsonl").read_bytes().replace(bytes(self.folder), b""),
            "trace": self._trace().to_pylist(),
            **{name: counts[name] for name in names},
        }

    def _rows(self) -> Any:
        path = self.folder / self.sink.path
        if self.sink.is_plain_text:
            return path.read_bytes()
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        if path.suffix == ".zst":
            return pa.CompressedInputStream(str(path), "zstd").read()
        if self.sink.kind == "parquet":
            return pq.read_table(path).to_pylist()
        opened = pa.ipc.open_stream(path) if path.suffix == ".arrows" else pa.ipc.open_file(path)
        return opened.read_all().to_pylist()

    def _trace(self) -> pa.Table:
        path = self.folder / "trace.parquet"
        assert is_sealed_trace(path) == self.is_key_given
        return (
            read_sealed_trace(path, secret_from_file(self.folder / "key.txt"))
            if self.is_key_given
            else pq.read_table(path)
        )


def _write(kind: str, path: Path, records: list[dict[str, str]], text: bytes) -> None:
    table = pa.Table.from_pylist(records)
    if kind == "csv.gz":
        path.write_bytes(gzip.compress(text))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif kind == "parquet":
        pq.write_table(table, path, row_group_size=5)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)


def _policy(sink: Sink, lateness: int, keep_rows: bool) -> str:
    return f"""
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "in-*.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "8s"
lateness = "{lateness}s"
[sink]
kind = "{sink.kind}"
path = "{sink.path}"
[dead_letters]
path = "dead.jsonl"
keep_rows = {str(keep_rows).lower()}
[trace]
path = "trace.parquet"
[checkpoint]
path = "{STATE}"
every = 5
"""


def _keep_only(folder: Path, name: str) -> None:
    for path in folder.iterdir():
        if path.name != name:
            path.unlink()
