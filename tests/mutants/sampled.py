"""Plant a sample of generated defects one by one, and run the tests that reach each: python -m tests.mutants.sampled

    --only PACKAGE   of one package of packages.toml
    --most 12        the first 12 of each package
    --seconds 600    stop after so long; the next run continues
    --limit 10       CPU seconds of tests for each, 60 by default; a later run with more tries survivors again
    --jobs 2         so many at the same time
    --at FILE:LINE   every defect of a line, or of a file of the source; nothing is recorded
    --write          record who kills which in killed.json

`python -m tests.mutants.reach` must have measured which tests reach what. Prints the share killed of each package and
fails if one is lower than recorded. What was tried stays in .cache/mutants: a killed defect counts until its file or
its test changes, any other is tried again as soon as tests change.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.mutants.forks import prepare, workplace
from tests.mutants.generate import Defect
from tests.mutants.places import ROOT, Places
from tests.mutants.reach import Reach
from tests.mutants.sample import drawn, in_turn
from tests.mutants.trial import KILLED, MOST_SECONDS, SURVIVED, VERDICTS, Trials, Verdict

Entry = dict[str, Any]
"""A defect that was tried, as it is kept."""
_RECORDED = ("package", "name", "line", "verdict", "by", "ran", "reaching", "reason")


class Tried:
    """The verdicts so far, in a file to which every trial adds a line."""

    def __init__(self, places: Places, reach: Reach) -> None:
        self._places = places
        self._path = places.cache / "tried.jsonl"
        self._tests = reach.digests()
        self._stamp = _digest(json.dumps(sorted(self._tests.items())).encode())
        self._entries: dict[str, Entry] = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else []:
            entry = json.loads(line)
            self._entries[entry["name"]] = entry

    def latest(self, defect: Defect) -> Entry | None:
        """The verdict on a defect, if its file has not changed."""
        entry = self._entries.get(defect.name)
        return entry if entry and entry["source"] == self._source(defect) else None

    def is_due(self, defect: Defect, limit: float) -> bool:
        """Whether there is no verdict, its tests have changed, or more time would help."""
        entry = self.latest(defect)
        if entry is None or entry["tests"] != self._tests_of(entry):
            return True
        is_final = entry["verdict"] == KILLED or entry["ran"] == entry["reaching"]
        return not is_final and entry["limit"] < limit

    def add(self, package: str, defect: Defect, verdict: Verdict) -> Entry:
        """Keep a verdict."""
        entry = {"package": package, "name": defect.name, "line": defect.line, **asdict(verdict)}
        entry |= {"source": self._source(defect), "tests": self._tests_of(entry)}
        self._entries[defect.name] = entry
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return entry

    def _source(self, defect: Defect) -> str:
        return _digest((self._places.source / defect.file).read_bytes())

    def _tests_of(self, entry: Entry) -> str:
        """What must not change: the test that kills, or else all tests."""
        if entry["verdict"] == KILLED and entry["by"]:
            return self._tests.get(entry["by"].partition("::")[0], "")
        return self._stamp


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


# ---- running


def run(places: Places, sample: Iterable[tuple[str, Defect]], *, seconds: float, limit: float, jobs: int) -> None:
    """Try what was not tried yet, in as many processes."""
    until = time.monotonic() + seconds
    reach = Reach(places.reach)
    tried = Tried(places, reach)
    reach.close()
    left = [(package, defect) for package, defect in sample if tried.is_due(defect, limit)]
    if jobs == 1:
        try_each(places, left, until, limit)
        return
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=try_each, args=(places, left[first::jobs], until, limit)) for first in range(jobs)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a process failed")


def try_each(places: Places, defects: Iterable[tuple[str, Defect]], until: float, limit: float) -> None:
    """Try one after another up to a time."""
    reach = Reach(places.reach)
    tried = Tried(places, reach)
    with workplace() as folder:
        trials = Trials(places, reach, folder, limit=limit)
        for package, defect in defects:
            if time.monotonic() > until:
                break
            _print(tried.add(package, defect, trials.try_one(defect)))
    reach.close()


def _print(entry: Entry) -> None:
    by = f" by {entry['by']}" if entry["by"] else f" by {entry['ran']} of {entry['reaching']} tests"
    sys.stdout.write(f"{entry['package']} {entry['verdict']}{by}: line {entry['line']} of {entry['name']}\n")
    sys.stdout.flush()


def run_at(places: Places, place: str, limit: float) -> None:
    """Try every defect of a file, or of one line of it."""
    file, _, line = place.partition(":")
    found = [one for package in places.table["packages"] for one in places.defects(package) if one.file == file]
    wanted = [one for one in found if not line or one.line <= int(line) <= one.last_line]
    if not wanted:
        raise SystemExit(f"{place}: no defect can be planted here")
    reach = Reach(places.reach)
    with workplace() as folder:
        trials = Trials(places, reach, folder, limit=limit)
        for defect in wanted:
            _print({"package": place, "name": defect.name, "line": defect.line, **asdict(trials.try_one(defect))})
    reach.close()


# ---- shares


def share(counts: Mapping[str, int]) -> float | None:
    """The share that is killed of those that a verdict was reached on."""
    decided = counts.get(KILLED, 0) + counts.get(SURVIVED, 0)
    return counts.get(KILLED, 0) / decided if decided else None


def counted(entries: Iterable[Entry]) -> dict[str, Counter[str]]:
    """The verdicts of each package."""
    found: dict[str, Counter[str]] = {}
    for entry in entries:
        found.setdefault(entry["package"], Counter())[entry["verdict"]] += 1
    return found


def table(now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """A line for each package."""
    titles = "".join(f"{verdict:>13}" for verdict in VERDICTS)
    yield f"{'package':12}{'tried':>7}{titles}{'share':>8}{'recorded':>10}"
    for package in {**before, **now}:
        counts = now.get(package, {})
        numbers = "".join(f"{counts.get(verdict, 0):13}" for verdict in VERDICTS)
        shares = f"{_percent(share(counts)):>8}{_percent(share(before.get(package, {}))):>10}"
        yield f"{package:12}{sum(counts.values()):7}{numbers}{shares}"


def lower(now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Packages of whose defects fewer are killed than recorded."""
    shares = {package: (share(counts), share(before.get(package, {}))) for package, counts in now.items()}
    return [name for name, (new, old) in shares.items() if new is not None and old is not None and new < old]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


# ---- the record


def recorded(places: Places) -> list[Entry]:
    """What killed.json states."""
    return json.loads(places.recorded.read_text())["defects"] if places.recorded.exists() else []


def write(places: Places, entries: list[Entry], measured: str) -> None:
    """Record verdicts, with the tests whose reach was known and the reasons given; other packages stay as they are."""
    before = recorded(places)
    reasons = {entry["name"]: entry["reason"] for entry in before if "reason" in entry}
    packages = {entry["package"] for entry in entries}
    kept = [entry for entry in before if entry["package"] not in packages]
    lines = [json.dumps(_to_record(entry, reasons), ensure_ascii=False) for entry in [*kept, *entries]]
    places.recorded.write_text(f'{{"reach of tests": "{measured}", "defects": [\n' + ",\n".join(lines) + "\n]}\n")


def _to_record(entry: Entry, reasons: Mapping[str, str]) -> Entry:
    """Only what is of use later; a test without its parameters."""
    found = {name: entry[name] for name in _RECORDED if name in entry}
    if found["verdict"] != SURVIVED:
        found = {name: value for name, value in found.items() if name not in ("ran", "reaching", "reason")}
    elif entry["name"] in reasons:
        found["reason"] = reasons[entry["name"]]
    if found.get("by"):
        found["by"] = found["by"].partition("[")[0]
    return {name: value for name, value in found.items() if value is not None}


# ---- the command


def main(words: Sequence[str] | None = None) -> int:
    given = _arguments(words)
    places = Places(given.root.resolve())
    if not places.reach.exists():
        raise SystemExit("which tests reach this source is not measured: python -m tests.mutants.reach")
    prepare(places.cache)
    if given.at:
        run_at(places, given.at, given.limit)
        return 0
    packages = [given.only] if given.only else list(places.table["packages"])
    samples = {
        package: drawn(places.defects(package), min(given.most, places.most()), f"{places.table['seed']} {package}")
        for package in packages
    }
    run(places, in_turn(samples), seconds=given.seconds, limit=given.limit, jobs=given.jobs)
    return report(places, samples, writes=given.write)


def report(places: Places, samples: Mapping[str, list[Defect]], *, writes: bool) -> int:
    """Print the shares and survivors; 1 if a share is lower than recorded, and is not to be recorded."""
    reach = Reach(places.reach)
    tried = Tried(places, reach)
    files, cut_off = reach.digests(), reach.cut_off()
    reach.close()
    entries = [entry for sample in samples.values() for one in sample if (entry := tried.latest(one)) is not None]
    now, before = counted(entries), counted(recorded(places))
    sys.stdout.writelines(f"{line}\n" for line in table(now, before))
    measured = f"{len(files)} of {len([*places.files_of_tests()])} files, {len(cut_off)} of them in part"
    sys.stdout.write(f"reach of tests: {measured}\n")
    if writes:
        write(places, entries, measured)
        return 0
    reasons = {entry["name"] for entry in recorded(places) if "reason" in entry}
    for entry in entries:
        if entry["verdict"] == SURVIVED and entry["name"] not in reasons:
            sys.stdout.write(f"survived, without a reason: line {entry['line']} of {entry['name']}\n")
    for package in lower(now, before):
        sys.stdout.write(f"{package}: a lower share is killed than recorded\n")
    return 1 if lower(now, before) else 0


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.sampled")
    parser.add_argument("--only", metavar="PACKAGE", help="one package of packages.toml")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="so many defects of each package")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many; the next continues")
    parser.add_argument("--limit", type=float, default=MOST_SECONDS, help="CPU seconds of tests for each")
    parser.add_argument("--jobs", type=int, default=1, help="try so many at the same time")
    parser.add_argument("--at", metavar="FILE[:LINE]", help="every defect of a file, or of a line; records nothing")
    parser.add_argument("--write", action="store_true", help="record the verdicts in killed.json")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
