"""Digests of all that the library gives for fixed inputs, so that a change of behaviour shows.

What is digested are rows, verdicts, numbers, codes and names of columns; never a sentence, a path or a duration.

python -m tests.golden.digests --write
"""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import shoal
from shoal.crypto.keys import as_secret
from shoal.encode.sealed import read_sealed_trace
from shoal.methods.release import Release
from shoal.testing import driving
from shoal.times import column_ns
from tests.e2e.scene import Scene, read
from tests.e2e.scene import shoal as command
from tests.laws.cases import Case
from tests.laws.test_laws import CASES
from tests.sanitize import scene as sanitizing

Digests = dict[str, str]
GOLDEN = Path(__file__).with_name("digests.json")
EXAMPLES = Path(__file__).parents[2] / "examples"
KEY_TEXT = "sixteen bytes at least"
BATCH = 37
WEEK_NS = 7 * 86_400 * 10**9
TOLD_IN_WORDS = {"guarantee", "statement", "warnings", "failure", "outcome", "sentence", "not_checked"}
TOLD_IN_WORDS |= {"counted_in_classes", "remarks", "words"}
"""Fields of summaries and reports that hold sentences."""
OF_THIS_RUN = {"seconds", "compiling_seconds", "rows_per_second", "state_bytes", "released_to", "dead_letters", "trace"}
OF_THIS_RUN |= {"certificate_file", "blocks_file", "written"}
"""Fields that differ between machines and folders."""


def digest(content: Any) -> str:
    """A short fingerprint of plain values."""
    data = content if isinstance(content, bytes) else json.dumps(content, default=str).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Numbers, codes and names alone; fractions to twelve digits, as sums may be taken in another order."""
    if isinstance(value, Mapping):
        left_out = TOLD_IN_WORDS | OF_THIS_RUN
        return {str(name): plain(below) for name, below in value.items() if name not in left_out}
    if isinstance(value, list | tuple):
        return [plain(below) for below in value]
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.12g}") if isinstance(value, float) else value


def table(rows: pa.Table | pa.RecordBatch) -> list[Any]:
    """A table as its columns and rows."""
    return [rows.schema.to_string(show_field_metadata=False, show_schema_metadata=False), rows.to_pylist()]


def report(found: Mapping[str, Any]) -> list[Any]:
    """An audit's report without its sentences."""
    return [plain(found), len(found["not_checked"])]


# ---- streams


def stream_digests(case: Case) -> Digests:
    """The output of a method, and the audit of it, as it is and forged."""
    anonymizer = case.make()
    releases = [anonymizer.push_batch(batch) for batch in driving.batches_of(case.stream, BATCH)]
    releases.append(anonymizer.flush())
    rows, trace = _joined(releases)
    judge = partial(shoal.audit, truth=case.stream, trace=trace, policy=case.policy)
    spoilt = rows.filter(pa.array(np.arange(rows.num_rows) % 5 != 2))
    promised = asdict(anonymizer.guarantee)
    made = {
        **_parts(releases),
        "schemas": digest([str(anonymizer.input_schema), anonymizer.columns]),
        "counts": digest(anonymizer.counts),
        "metrics": digest(plain(getattr(anonymizer, "metrics", {}))),
        "guarantee": digest(plain(promised)),
        "audit": digest(report(judge(rows).to_dict())),
        "audit of spoilt rows": digest(report(judge(spoilt).to_dict())),
        "audit without trace": digest(report(shoal.audit(rows, truth=case.stream, policy=case.policy).to_dict())),
    }
    if case.time:
        made |= {f"{name} as time passes": value for name, value in _as_time_passes(case, case.time).items()}
    return made


def _as_time_passes(case: Case, time: str) -> Digests:
    """Small batches; after each the clock moves on by half a minute, or by nothing where it is wrong."""
    anonymizer = case.make()
    times, usable = column_ns(case.stream.column(time).combine_chunks())
    first = int(np.median(times[usable])) - WEEK_NS
    releases = []
    for number, batch in enumerate(driving.batches_of(case.stream, 11)):
        releases.append(anonymizer.push_batch(batch))
        last = min((number + 1) * 11, len(times)) - 1
        if usable[last] and first < int(times[last]) < first + 2 * WEEK_NS:
            releases.append(anonymizer.advance(np.datetime64(int(times[last]) + 30 * 10**9, "ns")))
    releases.append(anonymizer.flush())
    return {**_parts(releases), "counts": digest(anonymizer.counts)}


def _parts(releases: Iterable[Release]) -> Digests:
    kept = list(releases)
    return {
        "rows": digest([table(release.rows) for release in kept]),
        "trace": digest([table(release.trace) for release in kept]),
    }


def _joined(releases: Iterable[Release]) -> tuple[pa.Table, pa.Table]:
    kept = list(releases)
    return (
        pa.Table.from_batches([release.rows for release in kept]),
        pa.Table.from_batches([release.trace for release in kept]),
    )


# ---- sets

ITEMS = "abcdefgh"
TREE = {"all": {"left": {"near": ["a", "b"], "far": ["c"]}, "right": {"odd": ["d", "e", "f"], "even": ["g", "h"]}}}
RING = [(ITEMS[at], ITEMS[(at + 1) % 8]) for at in range(8)] + [("a", "e")]
POINTS = {"a": (1, 1), "b": (1, 1), "c": (3, 1), "d": (9, 2), "e": (2, 8), "f": (6, 6), "g": (7, 1), "h": (9, 9)}


def people_with_items(count: int = 60, *, seed: int = 1) -> list[set[str]]:
    """Sets of items, the first of them the commonest."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(2, 10)
    chosen = [random.choice(8, size=random.integers(1, 6), replace=False, p=share / share.sum()) for _ in range(count)]
    return [{ITEMS[item] for item in one} for one in chosen]


def _tree() -> Any:
    return shoal.Hierarchy.from_nested(TREE)


def _places() -> Any:
    return shoal.Places(
        list(POINTS), [x for x, _ in POINTS.values()], [y for _, y in POINTS.values()], geographic=False
    )


SET_METHODS: dict[str, Callable[[], Any]] = {
    "counted": lambda: shoal.KmAnonymity(3, 2, 1, generalize=_tree(), trials=2),
    "sampled": lambda: shoal.KmAnonymity(3, 3, 0.9, generalize=_tree(), trials=2, seed=5, counted=0),
    "sampled-person": lambda: shoal.KmAnonymity(
        [4, 3], 2, 0.8, generalize=_tree(), trials=1, seed=6, counted=0, adversary="person", joint=True
    ),
    "graph": lambda: shoal.KmAnonymity(3, 2, 1, generalize=RING, trials=3, seed=7),
    "places": lambda: shoal.KmAnonymity(3, 2, 0.9, generalize=_places(), trials=2, seed=8),
    "apriori": lambda: shoal.KmApriori(3, 2, generalize=_tree()),
    "apriori-sizes": lambda: shoal.KmApriori([6, 4, 2], 3, generalize=_tree()),
    "apriori-graph": lambda: shoal.KmApriori(4, 2, generalize=RING),
}


def set_digests(name: str) -> Digests:
    """What a method makes of sets, of fewer of them and of others."""
    result = SET_METHODS[name]().anonymize(people_with_items())
    fewer = result.without(range(0, 60, 7)).certify()
    others = result.apply(people_with_items(50, seed=2)).certify()
    made = {f"{part} of fewer": value for part, value in _result(fewer).items()}
    made |= {f"{part} of others": value for part, value in _result(others).items()}
    return {**_result(result), **made}


def local_digests() -> Digests:
    """What local recoding makes of sets."""
    found: Digests = {}
    for k, m in (([6, 4, 2], 3), (3, 2), (2, 1)):
        made = _result(shoal.KmApriori(k, m, generalize=_tree(), recoding="local").anonymize(people_with_items(200)))
        found |= {f"{part} for m = {m}": value for part, value in made.items()}
    return found


def unique_digests() -> Digests:
    """How many sets of items single a person out."""
    records = people_with_items()
    return {
        f"{size} {who}": digest(plain(asdict(shoal.uniqueness(records, m=size, adversary=who))))  # type: ignore[arg-type]
        for size in (1, 2, 3)
        for who in ("itemset", "person")
    }


def _result(result: Any) -> Digests:
    return {
        "records": digest([sorted(record) for record in result.records]),
        "blocks": digest(result.blocks),
        "error": digest(plain([result.error, asdict(result.changes)])),
        "certificate": digest(plain(result.certificate.to_dict())),
        "published": digest(table(result.published())),
    }


# ---- the command line


def ran(scene: Scene, *, source: str, sink: str, trace: str = "trace.parquet") -> Digests:
    """`shoal run`, then `shoal audit`: all files afterwards."""
    folder = scene.folder
    ended = command("run", scene.policy, "--json", "--quiet")
    given = ("--truth", folder / source, "--trace", folder / trace, "--policy", scene.policy)
    judged = command("audit", folder / sink, *given, "--json")
    letters = [(one["row"], one.get("line"), one["column"]) for one in scene.letters(f"{sink}.dead.jsonl")]
    made = {
        "summary": digest([ended.code, plain(ended.summary), len(ended.summary["warnings"])]),
        "released": digest(_file(folder / sink)),
        "trace": digest(table(read_sealed_trace(folder / trace, as_secret(None)))),
        "dead letters": digest(letters),
        "audit": digest([judged.code, report(judged.summary)]),
    }
    for beside in ("certificate", "blocks"):
        path = folder / f"{sink}.{beside}.json"
        if path.exists():
            made[beside] = digest(plain(json.loads(path.read_text())))
    return made


def _file(path: Path) -> Any:
    """The bytes of a text; the rows of a binary file, whose bytes depend on the writer."""
    return path.read_bytes() if path.suffix in (".csv", ".jsonl") else table(read(path.read_bytes(), path.name))


def _example_tuples(folder: Path) -> Digests:
    scene = _example(folder, "tuples")
    runpy.run_path(str(scene.folder / "make_people.py"))["main"](scene.folder, rows=1200)
    return ran(scene, source="people.csv", sink="released.parquet")


def _example_measurements(folder: Path) -> Digests:
    scene = _example(folder, "measurements")
    runpy.run_path(str(scene.folder / "make_measurements.py"))["main"](scene.folder, people=400, records=3000)
    return ran(scene, source="measurements.csv", sink="released.csv")


def _example_sets(folder: Path) -> Digests:
    return ran(_example(folder, "sets"), source="visits.csv", sink="released.jsonl")


def _example(folder: Path, name: str) -> Scene:
    return Scene(Path(shutil.copytree(EXAMPLES / name, folder / name)))


def _demo(folder: Path) -> Digests:
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


def _sanitized(folder: Path, *, flexible: bool) -> Digests:
    """Two runs of the whole process; rows are sorted, as they are stored in an order by chance."""
    scene = sanitizing.Scene(folder, flexible=flexible)
    made = {}
    for number in range(2):
        scene.write(f"in-{number}.csv", sanitizing.lines(20, 150, 1, first=150 * number))
        summary = scene.run().to_dict()
        status = {
            name: summary["status"][name] for name in ("waiting_batches", "pending", "suppressed", "dead", "audit")
        }
        counts = [summary["read"], summary["published"], summary["dead"], summary["status"]["internal"]["records"]]
        published = scene.published()
        made[f"counts {number}"] = digest([counts, status])
        made[f"published {number}"] = digest([str(published.schema), sorted(map(str, published.to_pylist()))])
    return made


def _run_of(name: str, source: str, sink: str, folder: Path) -> Digests:
    """A stream of the laws from a file of one kind to one of another."""
    (case,) = (case for case in CASES if case.name == name)
    scene = Scene(folder)
    scene.sections = {
        "stream": case.policy["stream"],
        "source": {"kind": source, "path": f"in.{source}"},
        "anonymize": case.policy["anonymize"],
        "sink": {"kind": sink, "path": f"out.{sink}"},
        "trace": {"path": "trace.parquet"},
    }
    scene.write(f"in.{source}", _encoded(source, case.stream))
    scene.write_policy()
    return ran(scene, source=f"in.{source}", sink=f"out.{sink}")


def _encoded(kind: str, rows: pa.Table) -> bytes:
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


RUNS: dict[str, Callable[[Path], Digests]] = {
    "example-tuples": _example_tuples,
    "example-measurements": _example_measurements,
    "example-sets": _example_sets,
    "demo": _demo,
    "sanitize": partial(_sanitized, flexible=False),
    "sanitize-flexible": partial(_sanitized, flexible=True),
    **{
        f"{name}-{source}-{sink}": partial(_run_of, name, source, sink)
        for name, source, sink in (
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
            ("fads-varied-plain", "csv", "csv"),
            ("iot-anonymization-timed", "parquet", "parquet"),
            ("flexible-k-plain", "csv", "csv"),
            ("flexible-k-density", "parquet", "parquet"),
        )
    },
}


def run_digests(name: str) -> Digests:
    """A run in its own folder, with a fixed key."""
    with TemporaryDirectory() as made:
        folder = Path(made, "run")
        folder.mkdir()
        key = Path(made, "key.txt")
        key.write_text(KEY_TEXT)
        key.chmod(0o600)
        with patch.dict(os.environ, {"SHOAL_KEY_FILE": str(key)}):
            return RUNS[name](folder)


# ---- all of them

SLOW = {"sets that are unique", "run demo", "run example-tuples", "run example-measurements"}
"""Entries that take seconds where kernels run as plain Python."""

ENTRIES: dict[str, Callable[[], Digests]] = {
    **{f"stream {case.name}": partial(stream_digests, case) for case in CASES},
    **{f"sets {name}": partial(set_digests, name) for name in SET_METHODS},
    "sets local": local_digests,
    "sets that are unique": unique_digests,
    **{f"run {name}": partial(run_digests, name) for name in RUNS},
}


def main() -> None:
    """Write the golden file, or report which digests differ from it."""
    found = {name: make() for name, make in ENTRIES.items()}
    if "--write" in sys.argv[1:]:
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
        return
    kept = json.loads(GOLDEN.read_text())
    differing = [name for name in {**kept, **found} if kept.get(name) != found.get(name)]
    sys.stdout.write("".join(f"{name}\n" for name in differing))
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
