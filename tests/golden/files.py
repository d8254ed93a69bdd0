"""Streams of the laws from a file of one kind to one of another, in one file and in several, killed and resumed."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from tests.e2e.scene import Scene
from tests.golden import ways
from tests.golden.fingerprints import Digests, agreed
from tests.golden.runs import Run, content_of, ran, trace_of
from tests.golden.streams import STREAMS
from tests.laws.cases import Case

FILES = 4
KINDS = (
    ("z-drop", "csv", "csv"),
    ("z-late-closed", "jsonl", "parquet"),
    ("z-table-of-trees", "parquet", "jsonl"),
    ("z-combine", "csv", "csv"),
    ("z-target-late", "arrow", "arrow"),
    ("fads-timed", "csv", "jsonl"),
    ("castle-plain", "parquet", "csv"),
    ("fast-max-share", "jsonl", "parquet"),
    ("k-varp-entropy", "arrow", "csv"),
    ("least-loss-t", "csv", "arrow"),
    ("least-loss-lanes", "parquet", "csv"),
    ("fads-varied-plain", "csv", "csv"),
    ("iot-anonymization-timed", "parquet", "parquet"),
    ("flexible-k-plain", "csv", "csv"),
    ("flexible-k-density", "parquet", "parquet"),
)


class Killed(Exception):
    """What no run catches."""


class KilledAtTheLastFile(Observer):
    """Ends a run after its checkpoint and before the end: what follows the checkpoint is done again."""

    def __init__(self) -> None:
        self.turns = 0

    def turn(self) -> None:
        self.turns += 1
        if self.turns == FILES:
            raise Killed


def file_runs() -> dict[str, Run]:
    """A run for each pair of kinds."""
    return {f"{name}-{source}-{sink}": partial(run_of, name, source, sink) for name, source, sink in KINDS}


def run_of(name: str, source: str, sink: str, folder: Path) -> Digests:
    """A stream from one file, then from several: in threads, without, and killed on the way."""
    case = STREAMS[name]
    scene = scene_of(case, source, sink, folder)
    scene.write(f"in.{source}", encoded(source, case.stream))
    scene.write_policy()
    made = ran(scene, source=f"in.{source}", sink=f"out.{sink}")
    return {**made, "outcome of several files": _from_several_files(case, source, sink, folder)}


def scene_of(case: Case, source: str, sink: str, folder: Path) -> Scene:
    """A folder with the policy of a case."""
    scene = Scene(folder)
    scene.sections = {
        "stream": case.policy["stream"],
        "source": {"kind": source, "path": f"in.{source}"},
        "anonymize": case.policy["anonymize"],
        "sink": {"kind": sink, "path": f"out.{sink}"},
        "trace": {"path": "trace.parquet"},
    }
    return scene


def _from_several_files(case: Case, source: str, sink: str, folder: Path) -> str:
    scenes = {}
    for way in ("in threads", "without threads", "resumed"):
        place = folder / way
        place.mkdir()
        scenes[way] = scene_of(case, source, sink, place)
        scenes[way].sections["source"]["path"] = f"in-*.{source}"
        rows = -(-case.stream.num_rows // FILES)
        for number in range(FILES):
            scenes[way].write(f"in-{number}.{source}", encoded(source, case.stream.slice(number * rows, rows)))
        if way == "resumed":
            scenes[way].sections["checkpoint"] = {"path": "state", "every": rows + 1}  # after two files
        scenes[way].write_policy()
    with ways.several_threads():
        Pipeline.from_policy(scenes["in threads"].policy).run()
    with ways.no_threads():
        Pipeline.from_policy(scenes["without threads"].policy).run()
    with suppress(Killed):
        Pipeline.from_policy(scenes["resumed"].policy).run(KilledAtTheLastFile())
    assert Pipeline.from_policy(scenes["resumed"].policy).run().resumed
    return agreed({way: _outcome(scene, sink) for way, scene in scenes.items()})


def _outcome(scene: Scene, sink: str) -> list[Any]:
    """Whatever a run wrote."""
    letters = [{**one, "file": Path(one["file"]).name} for one in scene.letters(f"out.{sink}.dead.jsonl")]
    return [str(content_of(scene.folder / f"out.{sink}")), trace_of(scene.folder), letters]


def encoded(kind: str, rows: pa.Table) -> bytes:
    """Rows as a file; binary files have several pieces."""
    out = pa.BufferOutputStream()
    if kind == "jsonl":
        return "".join(json.dumps(row, default=str) + "\n" for row in rows.to_pylist()).encode()
    if kind == "csv":
        arrow_csv.write_csv(rows, out)
    elif kind == "parquet":
        pq.write_table(rows, out, row_group_size=50)
    else:
        with pa.ipc.new_file(out, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=50)
    return bytes(out.getvalue())
