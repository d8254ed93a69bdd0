"""Digests of all that shoal gives for fixed inputs, so that no change of behaviour goes unnoticed.

    python -m tests.golden.digests [WORD ...]                        what differs from digests.json; 1 if anything does
    python -m tests.golden.digests [WORD ...] --write --because "Clusters of one person are refused."

With words, only cases whose names contain one of them. What is digested: rows, traces, dead letters and their reasons,
what a snapshot holds, what the auditor finds. A path or a duration never is, a sentence only as the reason of a dead
letter. An *outcome* is one digest of several ways to the same output, which must agree: uninterrupted, restored from
snapshots, in threads and without (`ways.py`), and for files also killed and resumed (`files.py`). `parameters.py` gives
every parameter of every method a value that is not its default.

A recorded digest may change only with a sentence that says why. `--because` adds it to `changes.md`, with a mark; the
test fails while the marks there do not add up to the digests. After a merge of two changes keep both lines; they add
up, unless both changed the same case: then record that case again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.golden import runs
from tests.golden.comparison import FAILED, Recorded, described, differences, line_of, unusable
from tests.golden.files import file_runs
from tests.golden.fingerprints import Digests
from tests.golden.options import option_runs
from tests.golden.parameters import CHANGES, parameter_digests
from tests.golden.sets import SET_METHODS, local_digests, set_digests, unique_digests
from tests.golden.streams import CASES, stream_digests

GOLDEN = Path(__file__).with_name("digests.json")
REASONS = Path(__file__).with_name("changes.md")

RUNS: dict[str, runs.Run] = {
    "demo": runs.demo,
    "example-measurements": runs.example_measurements,
    "example-sets": runs.example_sets,
    "example-tuples": runs.example_tuples,
    "sanitize": runs.sanitized,
    "sanitize-flexible": partial(runs.sanitized, flexible=True),
    "sanitize-refusing": partial(runs.sanitized, refuses=True),
    **file_runs(),
    **option_runs(),
}
ENTRIES: dict[str, Callable[[], Digests]] = {
    **{f"stream {case.name}": partial(stream_digests, case) for case in CASES},
    **{f"parameters {method}": partial(parameter_digests, method) for method in CHANGES},
    **{f"sets {name}": partial(set_digests, name) for name in SET_METHODS},
    "sets local": local_digests,
    "sets that are unique": unique_digests,
    **{f"run {name}": partial(runs.with_key, run) for name, run in RUNS.items()},
}


def recorded() -> dict[str, Digests]:
    """The digests of digests.json."""
    found: dict[str, Digests] = json.loads(GOLDEN.read_text())
    return found


def made(names: list[str]) -> dict[str, Digests]:
    """The digests of now; a case that raises an error has that as its only part."""
    return {name: _made(ENTRIES[name]) for name in names}


def _made(entry: Callable[[], Digests]) -> Digests:
    try:
        return entry()
    except Exception as error:
        return {FAILED: f"{type(error).__name__}: {error}"}


def record(before: Recorded, after: Recorded, because: str) -> None:
    """Replace the recorded digests, and say why."""
    text = REASONS.read_text()
    REASONS.write_text(f"{text}{line_of(before, after, because)}\n")
    GOLDEN.write_text(json.dumps(after, indent=1, sort_keys=True) + "\n")


def main(arguments: list[str], entries: Mapping[str, object] = ENTRIES) -> int:
    """Compare, or record."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.digests", description="Compare golden digests.")
    parser.add_argument("words", nargs="*", help="parts of names of cases; all by default")
    parser.add_argument("--write", action="store_true", help="record the digests of now")
    parser.add_argument("--because", help="the sentence that says why they change")
    given = parser.parse_args(arguments)
    if given.write and not (given.because or "").strip():
        parser.error('--write needs --because "a sentence that says why they change"')
    kept = recorded()
    names = [name for name in sorted({*kept, *entries}) if not given.words or any(one in name for one in given.words)]
    now = made([name for name in names if name in entries])
    found = differences({name: kept[name] for name in names if name in kept}, now)
    broken = unusable(now)
    lines = [*described(found), *(f"not to be recorded: {one}" for one in broken)]
    cases, parts = len({one.case for one in found}), sum(map(len, now.values()))
    lines.append(f"{len(found)} parts of {cases} cases differ; compared {parts:,} parts of {len(now)} cases")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if given.write and found and not broken:
        record(kept, {**{name: kept[name] for name in kept if name not in names}, **now}, given.because.strip())
        return 0
    return int(bool(found or broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
