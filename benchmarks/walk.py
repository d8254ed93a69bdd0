"""The walk of one event: the files of shoal it goes through and the changes of file: python -m benchmarks.walk

A hop is a call from one file of shoal into another, or the return from it. What happens inside compiled code and in
other libraries does not count. Every walk is measured after the same call has run before, so that nothing is imported
or compiled on the way.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa

import shoal
from benchmarks.measure import Report, parse, parser

_PACKAGE = str(Path(shoal.__file__).parent)
_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "in.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 1
window = "1h"
[sink]
kind = "csv"
path = "out.csv"
"""


class Walk:
    """Counts files, named functions, their calls and hops while it is entered, in all threads that start inside."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[CodeType] = set()
        self.calls = 0
        self.hops = 0
        self._at: dict[int, str] = {}

    def __enter__(self) -> Walk:
        threading.setprofile(self._step)
        sys.setprofile(self._step)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type] # as documented

    def _step(self, frame: FrameType | None, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        if event == "return":
            assert frame is not None
            frame = frame.f_back
        while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
            if event == "call":
                return
            frame = frame.f_back
        if frame is None:
            return
        if event == "call" and not frame.f_code.co_name.startswith("<"):  # versions of Python inline comprehensions
            self.functions.add(frame.f_code)
            self.calls += 1
        file, thread = frame.f_code.co_filename, threading.get_ident()
        self.files.add(file)
        self.hops += self._at.get(thread, file) != file
        self._at[thread] = file


def walk_of(call: Callable[[], object]) -> tuple[int, int]:
    """Files and hops of a call."""
    with Walk() as walk:
        call()
    return len(walk.files), walk.hops


def _schema() -> Any:
    return shoal.Schema(person="user", quasi=[shoal.Numeric("age", low=0, high=100)])


def _flexible() -> Any:
    models = [{"model": name, "os": "Android"} for name in ("A", "B", "C", "D")]
    schema = shoal.Schema(person="user", quasi=[shoal.Categorical("model")])
    return shoal.FlexibleK(
        schema, shoal.Ontology.from_table(models, value="model", properties=["os"], tag="sparse"), k=2, k_s=2
    )


def _z(**more: Any) -> Any:
    return shoal.ZAnonymity(z=1, window="1h", person="user", time="ts", attribute="site", **more)


FAMILIES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "z": (_z, {"ts": 0, "user": "ann", "site": "a.example"}),
    "z, with lateness": (lambda: _z(lateness="1m"), {"ts": 0, "user": "ann", "site": "a.example"}),
    "z, combine": (lambda: _z(combine="k", k=2), {"ts": 0, "user": "ann", "site": "a.example"}),
    "tuples (LeastLoss)": (lambda: shoal.LeastLoss(_schema(), k=2, deadline=2, reuse=0), {"user": "ann", "age": 31}),
    "tuples (FADS)": (lambda: shoal.Fads(_schema(), k=2, deadline=2, reuse=0), {"user": "ann", "age": 31}),
    "flexible": (_flexible, {"user": "ann", "model": "A"}),
}


def calls_of(made: Any, record: dict[str, Any]) -> Iterator[tuple[str, Callable[[int], object]]]:
    """The ways to hand one record to a method; every call is given another person."""
    yield "`push`", lambda number: made.push({**record, "user": f"user {number}"})

    def push_batch(number: int) -> object:
        batch = pa.RecordBatch.from_pylist([{**record, "user": f"user {number}"}])
        return made.push_batch(batch).rows

    yield "`push_batch` of one row", push_batch


def run_walk(folder: Path) -> tuple[int, int]:
    """Files and hops of a run over one line, from opening the input to closing the output."""
    (folder / "in.csv").write_text("ts,user,site\n0,ann,a.example\n")
    policy = folder / "policy.toml"
    policy.write_text(_POLICY)
    shoal.Pipeline.from_policy(policy).run()
    return walk_of(shoal.Pipeline.from_policy(policy).run)


def main(arguments: Sequence[str] | None = None) -> None:
    """One line for every family and every way in."""
    given = parse(parser(__doc__), arguments)
    report = Report(__file__, given, data="one synthetic record")
    lines = []
    for family in list(FAMILIES)[:1] if given.tiny else FAMILIES:
        make, record = FAMILIES[family]
        for way, call in calls_of(make(), record):
            for number in range(4):
                call(number)
            files, hops = walk_of(lambda call=call: call(4))  # type: ignore[misc]
            lines.append([family, way, str(files), str(hops)])
    with tempfile.TemporaryDirectory() as folder:
        files, hops = run_walk(Path(folder))
    lines.append(["z", "a run over one line of CSV", str(files), str(hops)])
    report.table("walk", ["method", "one event through", "files", "changes of file"], lines)
    report.write()


if __name__ == "__main__":
    main()
