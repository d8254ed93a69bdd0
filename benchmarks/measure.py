"""What every benchmark shares: wall clock, processor seconds, threads, memory, the machine, and the results file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.sources import ROOT, digest, loaded_sources

RESULTS = Path(__file__).with_name("results")
_TICK = os.sysconf("SC_CLK_TCK")
_BUSY = 0.05
_SOURCES_APART: set[str] = set()
"""Files loaded by the fresh processes that `apart` started."""
T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """What a piece of work took."""

    wall: float
    """Seconds of wall clock."""
    processor: float
    """Seconds of all processors together, user and system, child processes included."""
    threads: int
    """Threads that did at least a twentieth of the work each (child processes count as one)."""

    def rates(self, count: float) -> list[str]:
        """Cells for `rate_columns`: how many per processor second, per second of wall clock, and threads."""
        return [short(count / self.processor), short(count / self.wall), str(self.threads)]

    def seconds(self) -> list[str]:
        """Cells for `TIME_COLUMNS`."""
        return [short(self.processor), short(self.wall), str(self.threads)]


TIME_COLUMNS = ["processor seconds", "wall clock seconds", "threads"]


def rate_columns(what: str) -> list[str]:
    """Columns for `Cost.rates`."""
    return [f"{what} per processor second", "per second of wall clock", "threads"]


class Meter:
    """Measure a block: `with Meter() as meter: …`, then `meter.cost`."""

    cost: Cost

    def __enter__(self) -> Meter:
        self._threads, self._processor, self._wall = _thread_seconds(), _processor_seconds(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._wall
        own, children = (now - then for now, then in zip(_processor_seconds(), self._processor, strict=True))
        parts = [now - self._threads.get(name, 0.0) for name, now in _thread_seconds().items()]
        ended = own - sum(parts)  # work of threads that are gone; ticks are coarse, so it may be below 0
        busy = sum(part > _BUSY * (own + children) for part in [*parts, ended, children])
        self.cost = Cost(max(wall, 1e-9), max(own + children, 1e-9), max(busy, 1))


def _processor_seconds() -> tuple[float, float]:
    """Of this process, and of child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), children.ru_utime + children.ru_stime


def _thread_seconds() -> dict[str, float]:
    """Processor seconds of every living thread of this process; empty where the system does not tell."""
    found = {}
    for task in Path("/proc/self/task").glob("*/stat"):
        try:
            fields = task.read_text().rpartition(")")[2].split()
        except OSError:  # the thread has just ended
            continue
        found[task.parent.name] = (int(fields[11]) + int(fields[12])) / _TICK
    return found


def measured(call: Callable[[], T], *, tries: int = 1) -> tuple[Cost, T]:
    """The least cost of some tries (each of its figures the least on its own), and what the last one returned."""
    best = None
    for _ in range(tries):
        with Meter() as meter:
            result = call()
        best = meter.cost if best is None else least(best, meter.cost)
    assert best is not None
    return best, result


def least(one: Cost, other: Cost) -> Cost:
    """The lesser wall clock and the lesser processor time; threads of the try with the lesser wall clock."""
    first = one if one.wall <= other.wall else other
    return replace(first, processor=min(one.processor, other.processor))


def peak_megabytes() -> float:
    """The most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_bytes() -> int:
    """The memory this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def apart(
    function: Callable[..., dict[str, Any]], *, here: bool = False, tree: Path | None = None, **arguments: Any
) -> dict[str, Any]:
    """Call a function of a benchmark in a fresh process, so that its peak of memory is its own.

    Arguments and result travel as JSON. With `here` it is called in this process, for tiny sizes; with `tree` it uses
    the library of another checkout.
    """
    if here:
        return function(**arguments)
    script = (
        "import json, sys; from importlib import import_module; from benchmarks.sources import loaded_sources; "
        f"found = import_module({module_of(function)!r}).{function.__name__}(**json.loads(sys.argv[1])); "
        "print(json.dumps([found, loaded_sources()]))"
    )
    command = [sys.executable, "-c", script, json.dumps(arguments)]
    path = os.pathsep.join([str(tree / "src"), str(ROOT)]) if tree else os.environ.get("PYTHONPATH", "")
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    found: dict[str, Any]
    found, sources = json.loads(done.stdout.splitlines()[-1])
    _SOURCES_APART.update(sources)
    return found


def module_of(function: Callable[..., Any]) -> str:
    """Where a function can be imported from, also when its module is the one that was started."""
    if function.__module__ != "__main__":
        return function.__module__
    return ".".join(Path(function.__code__.co_filename).resolve().with_suffix("").relative_to(ROOT).parts)


def short(value: float) -> str:
    """A rate to three digits, as people write it: 5.31 million, 81,800, 42.3."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} million"
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    versions = {name: metadata.version(name) for name in ("numba", "numpy", "pyarrow")}
    return {"processor": _processor_name(), "cores": os.cpu_count(), "python": platform.python_version(), **versions}


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def parser(doc: str | None, *, data: str = "") -> argparse.ArgumentParser:
    """The options all benchmarks have; `data` says what a folder of real data must hold, where one is of use."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--tiny", action="store_true", help="sizes that end in a second: only to see that it runs")
    made.add_argument("--out", type=Path, help="folder for the results file (default: benchmarks/results, unless tiny)")
    if data:
        made.add_argument("--data", type=Path, help=f"folder with {data}; without it, synthetic data")
    return made


def parse(made: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the options; keep them as `words` too, without paths, which mean nothing on another machine."""
    given = made.parse_args(arguments)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "--out" in words:
        del words[words.index("--out") : words.index("--out") + 2]
    if "--data" in words:
        words[words.index("--data") + 1] = "FOLDER"
    given.words = words
    return given


class Report:
    """Tables of one benchmark: printed as they come, and written to a file that README and docs are filled from."""

    def __init__(self, module: str, given: argparse.Namespace, *, data: str = "synthetic") -> None:
        self._name = Path(module).stem
        self._given = given
        self._begun, self._load = time.perf_counter(), os.getloadavg()[0]
        self.data = data
        """Where the data come from; change it when it becomes clear."""
        self._blocks: dict[str, dict[str, Any]] = {}
        self.figures: dict[str, Any] = {}
        """Raw numbers worth keeping; nothing is rendered from them."""
        about = machine()
        print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table; cells are texts as the docs show them."""
        cells = [[str(cell) for cell in row] for row in rows]
        self._blocks[name] = {"columns": list(columns), "rows": cells}
        print(f"\n[{name}]\n" + markdown(self._blocks[name]), flush=True)

    def text(self, name: str, sentence: str) -> None:
        """A sentence with figures."""
        self._blocks[name] = {"text": sentence}
        print(f"\n[{name}]\n{sentence}", flush=True)

    def write(self) -> None:
        """Write the results file, unless sizes were tiny and no folder was named."""
        folder = self._given.out or (None if self._given.tiny else RESULTS)
        if folder is None:
            return
        sources = sorted({*loaded_sources(), *_SOURCES_APART})
        result = {
            "command": " ".join([f"python -m benchmarks.{self._name}", *self._given.words]),
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "load": round(self._load, 1),
            "data": self.data,
            "minutes": round((time.perf_counter() - self._begun) / 60, 1),
            "stamp": digest(sources),
            "blocks": self._blocks,
            "figures": self.figures,
            "sources": sources,
        }
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result, indent=1, ensure_ascii=False)
        (folder / f"{self._name}.json").write_text(text + "\n", encoding="utf-8")


def markdown(block: dict[str, Any]) -> str:
    """A table, or a sentence, as Markdown."""
    if "text" in block:
        return str(block["text"])
    lines = ["| " + " | ".join(block["columns"]) + " |", "|" + "---|" * len(block["columns"])]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in block["rows"])])
