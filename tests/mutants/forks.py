"""Processes that run pytest, forked from one that has imported other libraries already: that saves a second of each."""

from __future__ import annotations

import gc
import importlib
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pytest

_LIBRARIES = (
    "cryptography.hazmat.primitives.ciphers.aead", "cyclopts", "hypothesis.extra.numpy", "numba", "numpy", "orjson",
    "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "pydantic", "rich.table",
)  # fmt: skip
"""Of the tests and of what they test; nothing of the source, which differs in each process."""
_IMPORTED = "Module already imported so cannot be rewritten"
"""What pytest says about hypothesis, whose assertions need no explanation."""
_LEAST_SECONDS = 5
_TIMES_SLOWER = 10


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder for the source and the temporary files of tests, which ends with this process."""
    with TemporaryDirectory(prefix="mutants-") as folder:
        yield Path(folder)


def prepare(cache: Path) -> None:
    """Take the lowest priority and the environment of tests, and import what most of them need."""
    os.nice(19)
    os.environ.update(
        NUMBA_DISABLE_JIT="1",  # read when Numba is imported
        SHOAL_TESTS="mutants",
        PYTHONDONTWRITEBYTECODE="1",
        HYPOTHESIS_STORAGE_DIRECTORY=str(cache / "hypothesis"),
    )
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for name in _LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int
    """Negative if it was killed by a signal."""
    seconds: float
    """Without those in which it waited for a CPU."""
    is_late: bool
    """Whether it was killed because its time was up."""


class Fork:
    """A process of its own group that runs a function, whose result is its exit code."""

    def __init__(self, run: Callable[[], int], *, root: Path, source: Path, output: Path) -> None:
        self._started = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries hold no locks by now
            self.pid = os.fork()
        if self.pid == 0:
            _become(run, root, source, output)

    def wait(self, seconds: float) -> Ended:
        """Wait for its end; kill it if it takes longer, and what it started in any case."""
        number = os.pidfd_open(self.pid)
        ended: list[int] = []
        try:
            while not ended and (left := seconds - self._seconds()) > 0:
                ended, _, _ = select.select([number], [], [], left)
        finally:
            took = self._seconds()
            os.close(number)
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
        return Ended(os.waitstatus_to_exitcode(status), took, not ended)

    def _seconds(self) -> float:
        """Since the start, without the time in which it was ready to run and others had the CPU."""
        with suppress(OSError, IndexError):
            waited = int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e9
            return time.monotonic() - self._started - waited
        return time.monotonic() - self._started


def _become(run: Callable[[], int], root: Path, source: Path, output: Path) -> None:
    code = 3
    try:
        os.setpgid(0, 0)
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number in (1, 2):
            os.dup2(written, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(root)
        sys.path[:0] = [str(source), str(root)]
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{root}"
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_pytest(files: Sequence[str], markers: str, *plugins: object, stops: bool, temporary: Path) -> int:
    """Run tests in this process, up to the first that fails if it `stops`; every run tries the same examples."""
    words = ["-q", "--tb=short", "-p", "no:xdist", "--hypothesis-seed=0", "-W", f"ignore:{_IMPORTED}"]
    words += ["-m", markers, "--basetemp", str(temporary), *(["-x"] if stops else [])]
    return int(pytest.main([*words, *files], plugins=list(plugins)))


class TooSlow(BaseException):
    """A test takes much longer than it did; no Exception, which the code under test might catch."""


def limit_cpu(seconds: float) -> None:
    """Raise TooSlow once this process has used so many seconds more; 0 for no limit."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1 if seconds else 0)


def limit_of(cpu: float) -> float:
    """CPU seconds that a test may take that took so many before."""
    return max(_LEAST_SECONDS, _TIMES_SLOWER * cpu)
