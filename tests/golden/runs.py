"""What the command line makes of files: what is released, traced, refused, certified, and what the audit says of it."""

from __future__ import annotations

import json
import os
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from shoal.crypto.keys import as_secret
from shoal.encode.sealed import read_sealed_trace
from tests.e2e.scene import Scene, read
from tests.e2e.scene import shoal as command
from tests.golden.fingerprints import Digests, digest, plain, report, table
from tests.sanitize import scene as sanitizing

EXAMPLES = Path(__file__).parents[2] / "examples"
KEY_TEXT = "sixteen bytes at least"
Run = Callable[[Path], Digests]


def with_key(run: Run) -> Digests:
    """A run in its own folder, with a fixed key."""
    with TemporaryDirectory() as made:
        folder = Path(made, "run")
        folder.mkdir()
        key = Path(made, "key.txt")
        key.write_text(KEY_TEXT)
        key.chmod(0o600)
        with patch.dict(os.environ, {"SHOAL_KEY_FILE": str(key)}):
            return run(folder)


def ran(scene: Scene, *, source: str, sink: str, letters: str | None = None) -> Digests:
    """`shoal run`, then `shoal audit`: all files afterwards."""
    folder = scene.folder
    ended = command("run", scene.policy, "--json", "--quiet")
    given = ("--truth", folder / source, "--trace", folder / "trace.parquet", "--policy", scene.policy)
    judged = command("audit", folder / sink, *given, "--json")
    refused = scene.letters(letters or f"{sink}.dead.jsonl")
    made = {
        "summary": digest([ended.code, plain(ended.summary), len(ended.summary["warnings"])]),
        "released": digest(content_of(folder / sink)),
        "trace": digest(trace_of(folder)),
        "dead letters": digest([(one["row"], one.get("line"), one["column"]) for one in refused]),
        "dead letter reasons": digest([(one["row"], one["reason"]) for one in refused]),
        "audit": digest([judged.code, report(judged.summary)]),
    }
    for beside in ("certificate", "blocks"):
        path = folder / f"{sink}.{beside}.json"
        if path.exists():
            made[beside] = digest(plain(json.loads(path.read_text())))
    return made


def trace_of(folder: Path) -> list[Any]:
    """The private trace of a run."""
    return table(read_sealed_trace(folder / "trace.parquet", as_secret(None)))


def content_of(path: Path) -> Any:
    """The bytes of a text; the rows of a folder and of other files, whose bytes depend on the writer."""
    if path.suffix in (".csv", ".jsonl"):
        return path.read_bytes()
    return table(read(path if path.is_dir() else path.read_bytes(), path.name))


# ---- examples


def example_tuples(folder: Path) -> Digests:
    """Tuples of people; the summary says what was lost."""
    scene = _example(folder, "tuples")
    runpy.run_path(str(scene.folder / "make_people.py"))["main"](scene.folder, rows=1200)
    return ran(scene, source="people.csv", sink="released.parquet")


def example_measurements(folder: Path) -> Digests:
    """Measurements by devices of the included ontology."""
    scene = _example(folder, "measurements")
    runpy.run_path(str(scene.folder / "make_measurements.py"))["main"](scene.folder, people=400, records=3000)
    return ran(scene, source="measurements.csv", sink="released.csv")


def example_sets(folder: Path) -> Digests:
    """Sets of visited places."""
    return ran(_example(folder, "sets"), source="visits.csv", sink="released.jsonl")


def _example(folder: Path, name: str) -> Scene:
    return Scene(Path(shutil.copytree(EXAMPLES / name, folder / name)))


def demo(folder: Path) -> Digests:
    """The day of the demo, which is made and first run without a key; its pseudonyms differ every time."""
    with patch.dict(os.environ):
        del os.environ["SHOAL_KEY_FILE"]
        ended = command("demo", "--out", folder, "--people", "400", "--events", "12000", "--z", "5")
    made = ran(Scene(folder), source="visits.csv", sink="released.parquet")
    reported = command("report", folder / "released.parquet", "--policy", folder / "policy.toml", "--json")
    tuned = command("tune", folder / "visits.csv", "--p", "0.8", "--window", "1h", "--out", folder / "tuned", "--json")
    return {
        "demo": digest([ended.code, (folder / "visits.csv").read_text("latin-1")]),
        **made,
        "report": digest([reported.code, plain(reported.summary)]),
        "tune": digest([tuned.code, plain(tuned.summary)]),
    }


# ---- sanitize

UNUSABLE = ["acc-1,imei-1,p1@secret.example,2026-03-01T00:00:00Z,moon,5G,model 1,1.0,900", ",,,,,,,,901"]
"""A place that is not listed, and a line without a person."""


def sanitized(folder: Path, *, flexible: bool = False, refuses: bool = False) -> Digests:
    """Two runs of the whole process; rows are sorted, as they are stored in an order by chance."""
    scene = sanitizing.Scene(folder, flexible=flexible, more="blend = false" if refuses else "")
    made = {}
    for number in range(2):
        people = sanitizing.lines(20, 150, 1, first=150 * number)
        scene.write(f"in-{number}.csv", [*people, *UNUSABLE] if refuses else people)
        summary = scene.run().to_dict()
        status = {
            name: summary["status"][name] for name in ("waiting_batches", "pending", "suppressed", "dead", "audit")
        }
        counts = [summary["read"], summary["published"], summary["dead"]]
        if not refuses:  # without blend = true the number of decoys is drawn by chance
            counts.append(summary["status"]["internal"]["records"])
        stored = scene.published()
        made[f"counts {number}"] = digest([counts, status])
        made[f"published {number}"] = digest([str(stored.schema), sorted(map(str, stored.to_pylist()))])
    if refuses:
        letters = [
            json.loads(line) for path in sorted(folder.glob("*.dead.jsonl")) for line in path.read_text().splitlines()
        ]
        made["dead letters"] = digest([(one["row"], one.get("line"), one["column"]) for one in letters])
        made["dead letter reasons"] = digest([(one["row"], one["reason"]) for one in letters])
    return made
