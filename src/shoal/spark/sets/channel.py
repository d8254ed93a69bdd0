"""The driver's connection to the tasks that hold the parts of the sets, while a search lasts.

A job of Spark for every question would take longer than the answer. So one task for each part is started, connects to
the driver, and answers until the search has ended. Both sides prove that they have the key; messages hold numbers of
items and counts, and are not encrypted.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.errors import RunError
from shoal.spark.cluster.workers import InWorker
from shoal.spark.recipe import Recipe
from shoal.spark.sets.part import SetPart, Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PURPOSE: Final = "parts of sets"
_PATIENCE: Final = 0.5
_ATTEMPTS: Final = 4
SERVED: Final = pa.schema([("part", pa.int32())])
END: Final = "end"


class PartLost(RunError):
    """A task that held a part of the sets has died."""


def encoded(question: str, values: Values) -> bytes:
    """A question or an answer as bytes: names, whole numbers, and arrays as they are in memory."""
    arrays = {name: np.ascontiguousarray(value) for name, value in values.items() if isinstance(value, np.ndarray)}
    head = orjson.dumps([
        question, {name: int(value) for name, value in values.items() if name not in arrays},
        [(name, array.dtype.str, array.shape) for name, array in arrays.items()],
    ])  # fmt: skip
    return b"".join([len(head).to_bytes(8, "little"), head, *(array.tobytes() for array in arrays.values())])


def decoded(message: bytes) -> tuple[str, dict[str, Any]]:
    """The question and its values."""
    at = 8 + int.from_bytes(message[:8], "little")
    question, values, arrays = orjson.loads(message[8:at])
    for name, kind, shape in arrays:
        count = int(np.prod(shape, dtype=np.int64))
        # A copy: what comes from a message is read-only.
        values[name] = np.frombuffer(message, kind, count, at).reshape(shape).copy()
        at += values[name].nbytes
    return question, values


@dataclass(frozen=True, slots=True)
class ServePart:
    """Holds a part on an executor and answers the driver's questions about it."""

    address: tuple[str, int]
    nonce: bytes
    recipe: Recipe
    load: Callable[[Iterable[pa.RecordBatch]], Callable[[Any], SetPart]]
    """From the rows of a partition to what makes the part, given the numbers of its sets."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        context: Any = BarrierTaskContext.get()
        number, make = context.partitionId(), self.load(batches)
        attempt = min(map(int, context.allGather(str(context.taskAttemptId()))))  # the same in all tasks of an attempt
        with Client(self.address, authkey=self.recipe.secret().subkey(_PURPOSE, self.nonce)) as driver:
            driver.send_bytes(encoded("here", {"part": number, "attempt": attempt}))
            serve(driver, make)
        yield pa.RecordBatch.from_pylist([{"part": number}], schema=SERVED)


def serve(driver: Connection[Any, Any], make: Callable[[Any], SetPart]) -> None:
    """Answer questions until the driver says that it is the end.

    Raises PartLost if the driver has gone, because another task died: this one must fail too. If it ended well, Spark
    would start only the other one again, which would wait for this one for ever.
    """
    part: SetPart | None = None
    try:
        while True:
            question, values = decoded(driver.recv_bytes())
            if question == END:
                return
            if question == "begin":
                part = make(values["numbers"])
                continue
            assert part is not None
            answer = part.answer(question, values)
            if answer is not None:
                driver.send_bytes(encoded("answer", answer))
    except (EOFError, ConnectionError):
        raise PartLost("the driver has ended the connection: another task that held a part has died") from None


class RemoteParts:
    """The parts behind connections; see :class:`shoal.spark.sets.supports.Parts`."""

    def __init__(self, connections: list[Any]) -> None:
        self._connections = connections

    def begin(self, numbers: list[Any]) -> None:
        """Tell every part the numbers of its sets."""
        for connection, own in zip(self._connections, numbers, strict=True):
            self._send(connection, encoded("begin", {"numbers": own}))

    def tell(self, question: str, **values: Any) -> None:
        message = encoded(question, values)
        for connection in self._connections:
            self._send(connection, message)

    def ask(self, question: str, **values: Any) -> list[Values]:
        self.tell(question, **values)
        return [self._answer(connection) for connection in self._connections]

    @staticmethod
    def _send(connection: Any, message: bytes) -> None:
        try:
            connection.send_bytes(message)
        except OSError:
            raise PartLost("a task that held a part of the sets has died") from None

    @staticmethod
    def _answer(connection: Any) -> Values:
        try:
            return decoded(connection.recv_bytes())[1]
        except (EOFError, OSError):
            raise PartLost("a task that held a part of the sets has died") from None

    def end(self) -> None:
        """Let the tasks end, as far as they are there."""
        for connection in self._connections:
            with suppress(OSError):
                connection.send_bytes(encoded(END, {}))

    def close(self) -> None:
        """End all connections."""
        for connection in self._connections:
            connection.close()


class PartServers:
    """Starts a task for each partition of a frame and waits until all are connected.

    All tasks must run at the same time (a barrier stage of Spark): if one dies, Spark starts all of them again.
    """

    def __init__(self, frame: DataFrame, count: int, recipe: Recipe, load: Any) -> None:
        self._frame, self._recipe, self._load = frame, recipe, load
        self._count = count
        self._arrived: SimpleQueue[tuple[int, int, Any]] = SimpleQueue()
        self._failed: list[BaseException] = []

    def use(self, work: Callable[[RemoteParts], Any]) -> Any:
        """Do something with the parts; again from the start if a task has died in between."""
        nonce = secrets.token_bytes(16)
        key = self._recipe.secret().subkey(_PURPOSE, nonce)
        with Listener(driver_address(self._frame.sparkSession), backlog=1024, authkey=key) as listener:
            host, port = listener.address[:2]
            address = reachable(self._frame.sparkSession, str(host)), int(port)
            serve_part = ServePart(address, nonce, self._recipe, self._load)
            Thread(target=self._accept, args=(listener,), daemon=True).start()
            job = Thread(target=self._run, args=(serve_part,), daemon=True)
            job.start()
            for _ in range(_ATTEMPTS):
                with closing(self._connected(job)) as parts:
                    try:
                        return work(parts)
                    except PartLost:
                        parts.close()  # all tasks fail, and Spark starts every one of them again
                    finally:
                        parts.end()
            raise PartLost("tasks that held parts of the sets died again and again; give executors more memory")

    def _run(self, serve_part: ServePart) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        try:
            served = self._frame.mapInArrow(InWorker(serve_part), from_arrow_schema(SERVED), barrier=True)
            served.repartition(1).collect()  # Spark starts a barrier stage again only if another stage follows
        except BaseException as error:  # reported by the thread that waits
            self._failed.append(error)

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
                _, values = decoded(connection.recv_bytes())
                self._arrived.put((values["attempt"], values["part"], connection))
            except (AuthenticationError, EOFError, ConnectionError):  # another program, or a task that died
                continue
            except OSError:
                return  # closed

    def _connected(self, job: Thread) -> RemoteParts:
        """All parts of one attempt, in order."""
        here: dict[int, dict[int, Any]] = {}
        while True:
            try:
                attempt, part, connection = self._arrived.get(timeout=_PATIENCE)
            except Empty:
                if not job.is_alive():
                    raise self._failed[0] if self._failed else PartLost("the tasks ended too early") from None
                continue
            here.setdefault(attempt, {})[part] = connection
            if attempt == max(here) and len(here[attempt]) == self._count:
                return RemoteParts([here[attempt][number] for number in range(self._count)])


def driver_address(session: SparkSession) -> tuple[str, int]:
    """Where the driver listens: the address that Spark binds to, any free port."""
    settings = session.sparkContext.getConf()
    bound = settings.get("spark.driver.bindAddress") or settings.get("spark.driver.host")
    return str(bound or "127.0.0.1"), 0


def reachable(session: SparkSession, bound: str) -> str:
    """The name under which executors reach the driver."""
    return str(session.sparkContext.getConf().get("spark.driver.host") or bound)
