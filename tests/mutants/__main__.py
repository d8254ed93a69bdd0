"""Plant defects one by one in a copy of the source and run the default tests that must turn red.

python -m tests.mutants                 all of them, without JIT, so that nothing is compiled
python -m tests.mutants --only auditor  those whose file name contains the word
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.planted import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shoal"
FAILED = 1
"""Exit code of pytest if a test failed; 2 and more mean that it could not run."""


def caught_by(mutant: Mutant) -> str | None:
    """The first test that fails with the defect in place."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "shoal"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.file}: the text to replace occurs {text.count(mutant.old)} times: {mutant.old}")
        path.write_text(text.replace(mutant.old, mutant.new))
        return first_failure(Path(folder), [mutant.test])[0]


def first_failure(source: Path, tests: Iterable[str]) -> tuple[str | None, str]:
    """Run tests on a source tree up to the first that fails; return its name, if one does, and what pytest wrote."""
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "NUMBA_DISABLE_JIT": "1"}
    environment["SHOAL_TESTS"] = "mutants"
    wanted = ["-m", "not slow and not exhaustive and not compiled"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *wanted, *tests]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode > FAILED:
        raise SystemExit(ended.stdout + ended.stderr)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    return failed.group(1) if failed else None, ended.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    chosen = [mutant for mutant in MUTANTS if only in mutant.file]
    failed, output = first_failure(ROOT / "src", sorted({mutant.test for mutant in chosen}))
    if failed:
        raise SystemExit(f"{failed}: red without a defect\n{output[-2000:]}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = []
        for mutant, test in zip(chosen, pool.map(caught_by, chosen), strict=True):
            found.append(test)
            verdict = f"caught by {test}" if test else "MISSED"
            sys.stdout.write(f"{mutant.file}: {mutant.defect}: {verdict}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(found) - found.count(None)} of {len(found)} caught\n")
    return 1 if None in found else 0


if __name__ == "__main__":
    sys.exit(main())
