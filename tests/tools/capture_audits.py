"""Run tests and keep every call of the auditor: what it was given, and what it answered.

    python -m tests.tools.capture_audits OUT                              all default tests
    python -m tests.tools.capture_audits OUT tests/auditor -n 2           with arguments for pytest

OUT is a folder outside of the repository; a second run adds to it. A case has the name of its test and a number. Equal
cases are kept once. Afterwards every new case is replayed: one that gets another answer depends on more than its inputs
(a test patches the auditor, say) and is moved to OUT/apart. `tests.tools.compare_audits` compares the others.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.tools.audit_case import LEFT_OUT, list_only, listed, read_case
from tests.tools.audit_differences import Difference, described
from tests.tools.compare_audits import ROOT, compare

APART = "apart"
_DEFAULT = ("-m", "not slow and not exhaustive and not brokers and not spark")
_OPTIONS = ("-q", "-p", "tests.tools.capture_plugin", "--hypothesis-seed=0")


def drop_equal(folder: Path, names: Iterable[str]) -> int:
    """Keep one of several cases with the same inputs and answer, the first by name; return how many were dropped."""
    first: dict[str, str] = {}
    twice = []
    for name in sorted(names):
        if first.setdefault(read_case(folder / name)["digest"], name) != name:
            twice.append(name)
    for name in twice:
        shutil.rmtree(folder / name)
    list_only(folder, sorted(first.values()))
    return len(twice)


def set_apart(folder: Path, names: Sequence[str]) -> list[Difference]:
    """Move away what gets another answer when it is replayed; return the differences."""
    found = compare(folder, names)
    away = {one.case for one in found}
    for name in away:
        shutil.rmtree(folder / APART / name, ignore_errors=True)
        (folder / APART).mkdir(exist_ok=True)
        shutil.move(folder / name, folder / APART / name)
    list_only(folder, [name for name in listed(folder) if name not in away])
    return found


def _reasons(folder: Path) -> list[str]:
    """Why calls were not kept: how many, and the tests."""
    place = folder / LEFT_OUT
    tests: dict[str, Counter[str]] = defaultdict(Counter)
    for line in place.read_text(encoding="utf-8").splitlines() if place.exists() else ():
        why, _, test = line.partition("\t")
        tests[why][test] += 1
    return [
        f"    {own.total():>5}  {why}: {', '.join(sorted(own)[:3])}{' …' if len(own) > 3 else ''}"
        for why, own in sorted(tests.items())
    ]


def main(arguments: list[str]) -> int:
    """Capture and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.capture_audits", description="Capture audits.")
    parser.add_argument("out", type=Path, help="a folder outside of the repository")
    parser.add_argument("tests", nargs=argparse.REMAINDER, help="arguments for pytest; the default tests without")
    given = parser.parse_args(arguments)
    folder = given.out.resolve()
    if folder.is_relative_to(ROOT):
        parser.error(f"{folder} is inside of the repository; choose a folder outside, cases may be large")
    before = set(listed(folder))
    (folder / LEFT_OUT).unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *_OPTIONS, "--audits-to", str(folder), *(given.tests or _DEFAULT)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    equal = drop_equal(folder, listed(folder))
    new = [name for name in listed(folder) if name not in before]
    apart = set_apart(folder, new)
    moved = len({one.case for one in apart})
    lines = [
        f"kept {len(listed(folder)):,} cases, {len(new) - moved:,} of them new; dropped {equal:,} equal to another",
        f"set apart {moved:,} that get another answer when they are replayed",
        *(f"    {line}" for line in described(apart)),
        "not stored:",
        *(_reasons(folder) or ["    none"]),
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
