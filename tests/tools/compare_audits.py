"""Run an auditor over captured cases and list everything that it answers differently.

    python -m tests.tools.compare_audits CASES                 the auditor of this tree
    python -m tests.tools.compare_audits CASES --tree PATH     that of another checkout

What is compared, and what is not, says `tests.tools.audit_differences`. The exit code is 1 if an answer differs or a
case of the list is missing. `tests.tools.capture_audits` makes the folder of cases.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic

from tests.tools.audit_case import Answer, listed, read_case, replayed
from tests.tools.audit_differences import Difference, described, differences

ROOT = Path(__file__).resolve().parents[2]
_PROCESSES = 2
_AT_ONCE = 16
"""Cases that a process is given at a time."""


def compare(folder: Path, names: Sequence[str], tree: Path = ROOT) -> list[Difference]:
    """Every difference between what the auditor of a tree answers and what was captured."""
    found = []
    for name, now in _answers(folder, names, tree):
        found += differences(name, read_case(folder / name)["answer"], now)
    return found


def _answers(folder: Path, names: Sequence[str], tree: Path) -> Iterator[tuple[str, Answer]]:
    """Answers of now, from processes that have not imported any other auditor."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_PROCESSES, fresh, _import_from, (str(tree / "src"),)) as pool:
        yield from pool.map(partial(_answer, folder), names, chunksize=_AT_ONCE)


def _import_from(source: str) -> None:
    sys.path.insert(0, source)


def _answer(folder: Path, name: str) -> tuple[str, Answer]:
    return name, replayed(folder / name)


def main(arguments: list[str]) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.compare_audits", description="Compare audits.")
    parser.add_argument("cases", type=Path, help="the folder that capture_audits wrote")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout of shoal")
    given = parser.parse_args(arguments)
    tree = given.tree.resolve()
    if not (tree / "src" / "shoal" / "auditor").is_dir():
        parser.error(f"--tree: no src/shoal/auditor in {tree}")
    names = listed(given.cases)
    if not names:
        parser.error(f"{given.cases}: no cases; python -m tests.tools.capture_audits writes them")
    begin = monotonic()
    there = [name for name in names if (given.cases / name / "case.json").is_file()]
    missing = sorted({*names} - {*there})
    found = compare(given.cases.resolve(), there, tree)
    lines = [*(f"missing: {name}" for name in missing), *described(found)]
    cases = len({one.case for one in found})
    lines.append(
        f"{len(found):,} differences in {cases:,} of {len(there):,} cases, {len(missing)} cases missing "
        f"({monotonic() - begin:.0f} s)"
    )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(found or missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
