"""Runs of `shoal` on Spark in processes of their own, to be killed."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import shoal

EXECUTOR = "CoarseGrainedExecutorBackend"
WORKER = "pyspark.daemon"
CLUSTER = "local-cluster[2,1,1024]"
_CONNECTED, _LISTENS = "01", "0A"
"""States of sockets, in /proc/net/tcp."""
_PATIENCE = 900
"""Seconds until a run counts as hanging."""


class Run:
    """A run in a process group of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait_for_file(self, folder: Path, pattern: str, *, besides: Collection[Path] = ()) -> None:
        """Wait until a folder has such a file, hidden ones included, and not one of these; fails if the run ends."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            if any(path not in besides for path in folder.glob(pattern)):
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.01)
        raise AssertionError(f"no file {pattern}: {self.end()}")

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the driver."""
        self._process.terminate()

    def wait_for(self, name: str) -> int:
        """The number of the first process of the group whose command contains a name; fails if the run ends before."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            for number, command in self._group():
                if name in command:
                    return number
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        raise AssertionError(f"no process {name}: {self.end()}")

    def wait_for_connection(self) -> None:
        """Wait until a task is connected to the driver; fails if the run ends before.

        The first port on which the driver listens is PySpark's own, for accumulators.
        """
        first: set[str] = set()
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            own = _inodes(self._process.pid)
            sockets = [(port, state) for port, state, inode in _sockets() if inode in own]
            ports = {port for port, state in sockets if state == _LISTENS}
            first = first or ports
            if any(port in ports - first for port, state in sockets if state == _CONNECTED):
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.005)
        raise AssertionError(f"no connection to the driver: {self.end()}")

    def kill_all(self) -> None:
        """Kill the driver and everything that it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> tuple[int, str]:
        """The exit code and what was printed as errors."""
        _, errors = self._process.communicate(timeout=_PATIENCE)
        return self._process.returncode, errors

    def _group(self) -> Iterator[tuple[int, str]]:
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if os.getpgid(int(folder.name)) == self._process.pid:
                    yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has ended


def _sockets() -> Iterator[tuple[str, str, str]]:
    """The port, state and inode of all TCP sockets of this machine."""
    for path in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            words = line.split()
            yield words[1].rpartition(":")[2], words[3], words[9]


def _inodes(process: int) -> set[str]:
    """The inodes of the sockets of a process."""
    found = set()
    with suppress(OSError):  # it may have ended
        for path in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                found.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
    return found


@contextmanager
def start(policy: Path, key: Path | None, *options: str, master: str = CLUSTER) -> Iterator[Run]:
    """`shoal run` on Spark with more options; what is left of it is killed at the end."""
    env = {**os.environ, "PYTHONPATH": str(Path(shoal.__file__).parents[1]), "SPARK_LOCAL_IP": "127.0.0.1"}
    env["SPARK_HOME"] = str(_own_home())
    env.pop("SHOAL_KEY_FILE", None)
    if key is not None:
        env["SHOAL_KEY_FILE"] = str(key)
    command = [
        sys.executable,
        "-m",
        "shoal.cli",
        "run",
        str(policy),
        "--quiet",
        "--engine",
        "spark",
        "--master",
        master,
        *options,
    ]
    with _started(command, env) as process:
        yield Run(process)


@contextmanager
def start_twice(policy: Path, key: Path, master: str) -> Iterator[Run]:
    """A run of which chosen tasks are run twice at the same time (tests.spark.speculation)."""
    env = {**_with_tests(), "SHOAL_KEY_FILE": str(key)}
    with _started([sys.executable, "-m", "tests.spark.speculation", master, str(policy)], env) as process:
        yield Run(process)


@contextmanager
def submit(job: Path, key: Path, *words: str, settings: Mapping[str, str], master: str = "local[2]") -> Iterator[Run]:
    """A job of Python with some words, run by the spark-submit of PySpark."""
    from shoal.spark.cluster.session import _find_java

    _find_java()
    home = Path(_origin("pyspark")).parent
    env = {**_with_tests(), "SPARK_HOME": str(home), "SHOAL_KEY_FILE": str(key), "PYSPARK_PYTHON": sys.executable}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", master, *options, str(job), *words]
    with _started(command, env) as process:
        yield Run(process)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A standalone cluster of two machines with one core each; both are this one, under two addresses.

    Spark runs no speculative task on the machine of the first attempt, so `local-cluster` has none.
    """
    from shoal.spark.cluster.session import _find_java

    _find_java()
    home = Path(_origin("pyspark")).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    launch = [str(home / "bin" / "spark-class")]
    daemons = [
        ("127.0.0.1", ["org.apache.spark.deploy.master.Master", "--port", str(port)], []),
        *((host, ["org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", "-d", str(folder / host)], [master])
          for host in ("127.0.0.1", "127.0.0.2")),
    ]  # fmt: skip
    with ExitStack() as stack:
        for host, words, last in daemons:
            env = {**_with_tests(), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "PYSPARK_PYTHON": sys.executable}
            stack.enter_context(_started([*launch, *words, "--host", host, "--webui-port", "0", *last], env, log=False))
        yield master


def _with_tests() -> dict[str, str]:
    """The environment of processes that import shoal and its tests."""
    paths = [str(Path(shoal.__file__).parents[1]), str(Path(__file__).parents[2])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SPARK_LOCAL_IP": "127.0.0.1"}


@cache
def _own_home() -> Path:
    """What PySpark has, in a folder of this process: a local cluster writes the logs of its executors into it."""
    home = Path(tempfile.mkdtemp(prefix="spark-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for path in Path(_origin("pyspark")).parent.iterdir():
        (home / path.name).symlink_to(path)
    return home


def _origin(module: str) -> str:
    found = find_spec(module)
    assert found is not None
    return str(found.origin)


@contextmanager
def _started(command: list[str], env: dict[str, str], *, log: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own; what is left of the group is killed at the end."""
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if log else subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
