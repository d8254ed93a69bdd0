"""What one run passes through: modules, files, functions, calls and changes of file of shoal, as a table.

python -m tests.tools.walk [RUN...]

Each run has a process of its own. It is measured after the same run has ended once, so that importing, compiling and
opening caches do not count. What happens inside compiled code and in other libraries does not count either. The same
tree gives the same numbers, but for a few calls that depend on time: most in the Kafka run, which polls a broker.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.walk import Walk

from tests.e2e.scene import Ended, Scene, shoal

Call = Callable[[], Ended]
ROWS: Final = 600
_QUASI: Final = {
    "age": {"kind": "numeric", "low": 17, "high": 90},
    "school": {
        "kind": "categorical",
        "hierarchy": {
            "kind": "nested",
            "tree": {"any": {"lower": ["primary", "secondary"], "upper": ["bachelor", "master"]}},
        },
    },
}


@dataclass(frozen=True)
class Passed:
    """What a run passed through."""

    modules: int
    """Imported, whether or not the run needed them."""
    files: int
    """With a function that was called."""
    functions: int
    """Called, and named: neither lambdas nor comprehensions."""
    calls: int
    """Of these functions; a generator counts every time that it goes on."""
    changes_of_file: int
    """A call from one file into another, or the return from it."""


def passed(call: Callable[[], object]) -> Passed:
    """What the second of two equal calls passes through."""
    call()
    with Walk() as walk:
        call()
    modules = sum(name.partition(".")[0] == "shoal" for name in sys.modules)
    return Passed(modules, len(walk.files), len(walk.functions), walk.calls, walk.hops)


# ---- runs


@contextmanager
def z(folder: Path) -> Iterator[Call]:
    """z-anonymity from CSV to CSV."""
    yield _runs(_web(folder))


@contextmanager
def fads(folder: Path) -> Iterator[Call]:
    """FADS from CSV to CSV, with checkpoints."""
    yield _runs(_people(folder, checkpoint={"path": "state", "every": ROWS // 4}))


@contextmanager
def km(folder: Path) -> Iterator[Call]:
    """k^m-anonymity from CSV to JSON lines."""
    draw = random.Random(1)
    tree = {"any": {"food": ["bread", "milk", "tea"], "tools": ["saw", "nail", "glue"]}}
    items = [item for group in tree["any"].values() for item in group]
    _write(folder, "user,item", (f"u{number // 3},{draw.choice(items)}" for number in range(ROWS)))
    scene = Scene(folder, {
        "stream": {"person": "user"},
        "anonymize": {"method": "k^m", "item": "item", "k": 3, "m": 2, "sigma": 1},
        "anonymize.generalize": {"hierarchy": {"kind": "nested", "tree": tree}},
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
    })  # fmt: skip
    yield _runs(scene)


@contextmanager
def kafka(folder: Path) -> Iterator[Call]:
    """z-anonymity from Kafka to Kafka, with checkpoints; the client's own imitation of a broker answers."""
    from confluent_kafka import Producer

    broker = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    (found,) = broker.list_topics(timeout=30).brokers.values()
    address = f"{found.host}:{found.port}"
    writer = Producer({"bootstrap.servers": address, "log_level": 0})
    for line in _visits():
        ts, user, site = line.split(",")
        writer.produce("in", json.dumps({"ts": int(ts), "user": user, "site": site}), partition=0)
    writer.flush()
    runs = 0

    def call() -> Ended:
        nonlocal runs
        runs += 1
        scene = _web(folder, source={
            "kind": "kafka", "brokers": address, "topics": ["in"], "until": "end",
            "types": {"ts": "int64", "user": "string", "site": "string"},
        })  # fmt: skip
        scene.sections["sink"] = {"kind": "kafka", "topic": f"out-{runs}"}
        scene.sections["checkpoint"] = {"path": f"state-{runs}", "every": ROWS // 4}
        return scene.run("--quiet")

    yield call
    writer.close()
    broker.close()


@contextmanager
def audit(folder: Path) -> Iterator[Call]:
    """The audit of what FADS publishes, with its input, trace and policy."""
    scene = _people(folder, trace={"path": "trace.parquet"})
    ended = scene.run("--quiet")
    assert ended.code == 0, ended.err
    given = ("--truth", folder / "in.csv", "--trace", folder / "trace.parquet", "--policy", scene.policy)
    yield lambda: shoal("audit", folder / "out.csv", *given)


RUNS: Final = {"z": z, "fads": fads, "k^m": km, "kafka": kafka, "audit": audit}


def _runs(scene: Scene) -> Call:
    """Run it, and remove what it made, so that the next run begins anew."""
    kept = {"in.csv", "key.txt"}

    def call() -> Ended:
        for path in [path for path in scene.folder.rglob("*") if path.is_file() and path.name not in kept]:
            path.unlink()
        return scene.run("--quiet")

    return call


def _web(folder: Path, **sections: dict[str, Any]) -> Scene:
    _write(folder, "ts,user,site", _visits())
    return Scene(folder, sections)


def _people(folder: Path, **sections: dict[str, Any]) -> Scene:
    draw = random.Random(1)
    schools = ["primary", "secondary", "bachelor", "master"]
    lines = (f"u{number},{draw.randrange(18, 90)},{draw.choice(schools)}" for number in range(ROWS))
    _write(folder, "user,age,school", lines)
    quasi = {f"anonymize.quasi.{name}": column for name, column in _QUASI.items()}
    return Scene(folder, {
        "stream": {"person": "user"},
        "anonymize": {"method": "fads", "k": 5, "deadline": 50, "reuse": 20},
        **quasi,
        **sections,
    })  # fmt: skip


def _visits() -> Iterator[str]:
    draw = random.Random(1)
    return (f"{number // 4},u{draw.randrange(50)},s{int(draw.paretovariate(1))}" for number in range(ROWS))


def _write(folder: Path, header: str, lines: Iterator[str]) -> None:
    (folder / "in.csv").write_text("\n".join([header, *lines, ""]))


# ---- the table


def measured(name: str) -> Passed:
    """A run, in this process."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        key = folder / "key.txt"
        key.write_text("sixteen bytes at least")
        key.chmod(0o600)
        os.environ["SHOAL_KEY_FILE"] = str(key)
        with RUNS[name](folder) as call:
            return passed(lambda: _require_success(call()))


def measured_alone(name: str) -> Passed:
    """A run, in a process of its own."""
    command = [sys.executable, "-m", "tests.tools.walk", "--here", name]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Passed(**json.loads(ended.stdout))


def _require_success(ended: Ended) -> None:
    if ended.code != 0:
        raise SystemExit(ended.err or ended.out.decode())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.walk", description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}; all by default")
    parser.add_argument("--here", choices=RUNS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        sys.stdout.write(json.dumps(asdict(measured(given.here))))
        return
    titles = [one.name.replace("_", " ") for one in fields(Passed)]
    sys.stdout.write("run".ljust(8) + "".join(title.rjust(17) for title in titles) + "\n")
    for name in given.runs or RUNS:
        sys.stdout.write(name.ljust(8) + "".join(f"{number:17,}" for number in astuple(measured_alone(name))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
