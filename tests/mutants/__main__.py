"""Plant defects one by one in a copy of the source and run the default tests of their room; each must turn red.

python -m tests.mutants                 all of them, without JIT, so that nothing is compiled
python -m tests.mutants --only auditor  those whose file name contains the word
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.planted import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shoal"
FAILED = 1
"""Exit code of pytest if a test failed; 2 and more mean that it could not run."""


def is_caught(mutant: Mutant) -> bool:
    """Whether a test fails with the defect in place."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "shoal"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.file}: the text to replace occurs {text.count(mutant.old)} times: {mutant.old}")
        path.write_text(text.replace(mutant.old, mutant.new))
        return run_tests(Path(folder), mutant.tests).returncode == FAILED


def run_tests(source: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    """Run tests on a source tree up to the first that fails."""
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "NUMBA_DISABLE_JIT": "1"}
    wanted = ["-m", "not slow and not exhaustive and not compiled"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *wanted, *tests]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    if ended.returncode > FAILED:
        raise SystemExit(ended.stdout.decode() + ended.stderr.decode())
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", default="")
    chosen = [mutant for mutant in MUTANTS if parser.parse_args().only in mutant.file]
    for tests in sorted({mutant.tests for mutant in chosen}):
        ended = run_tests(ROOT / "src", tests)
        if ended.returncode == FAILED:
            raise SystemExit(f"{' '.join(tests)}: red without a defect\n{ended.stdout.decode()[-2000:]}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(is_caught, chosen))
    for mutant, caught in zip(chosen, found, strict=True):
        sys.stdout.write(f"{'caught' if caught else 'MISSED'}  {mutant.file}: {mutant.defect}\n")
    sys.stdout.write(f"{sum(found)} of {len(found)} caught\n")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
