"""Transactions of one Kafka producer: everything that a run writes becomes visible with the name of its checkpoint.

A transaction holds the messages of one epoch, to all topics, and a marker: an offset of a consumer group of its own,
with the number of messages as the offset and the name of the checkpoint as its metadata. Readers with
``isolation.level = read_committed`` see all of it or nothing. The next run reads the marker, so it continues with the
checkpoint that belongs to what readers have seen.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from shoal.clients.background import Background
from shoal.clients.kafka import (
    FENCED,
    REQUEST_SECONDS,
    STEP_SECONDS,
    FatalAsException,
    Settings,
    as_error,
    insist,
    is_refused,
    make_client,
    reason,
)
from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable, persist
from shoal.errors import OutputError
from shoal.sinks.base import Aborted
from shoal.sinks.kafka.topics import PROBE_SECONDS, for_connections, make_producer, no_topic, probe, topic_partitions
from shoal.sinks.kafka.watch import Watch

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition, libversion  # isort: skip

_DEFAULTS: Final = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.kbytes": 131_072,
    "partitioner": "murmur2",  # the one of Java's clients, so that topics can be joined by key
}
_FIXED: Final = {"enable.idempotence": True, "delivery.report.only.error": True}
_WITH_RECOVERY: Final = 0x020B0000
_TOPIC_SECONDS: Final = 10.0
"""How long brokers may take to create a topic on first use."""
_HUNG_SECONDS: Final = 3 * REQUEST_SECONDS
"""A call that returns later than this never returns: its own time-out is a third of it."""
_CLOSE_SECONDS: Final = 15.0


class KafkaTransactions:
    """The producer of a run. `start` shuts out an earlier process that still writes under the same name.

    A transaction that fails for a reason that may pass raises :class:`~shoal.sinks.base.Aborted`; it is then over, and
    so is this object. The next `start`, of another one, makes the outcome certain.

    Parameters
    ----------
    name
        The transactional id.
    settings
        Of the client, by librdkafka's names, secrets included.
    give_up
        Seconds after which unreachable brokers are an error.
    """

    def __init__(self, brokers: str, name: str, *, settings: Settings | None = None, give_up: float = 600.0) -> None:
        self.brokers, self.name = brokers, name
        self._given = {**(settings or {}), "bootstrap.servers": brokers}
        self._give_up = give_up
        self._patience = Patience(give_up)
        self._producer: Producer | None = None
        self._explain: Callable[[], None] = lambda: None
        self._group: Any = None
        self._is_begun = self._is_lost = False
        self._background: Background[bool] = Background(f"Kafka transactions {name}")
        self._watch = Watch(self._answers, lambda: probe(brokers, self._given) is None)
        self._undelivered: KafkaError | None = None
        self._markers: dict[str, int] = {}
        self.published: tuple[str, ...] = ()
        """The checkpoint published last and the one before it."""

    # ---- start

    def start(self, topics: Iterable[str]) -> None:
        """Connect, shut out an earlier process, and read what it published to these topics."""
        if self._producer is not None:
            return
        settings = {**_DEFAULTS, **_recovery(), **self._given, "transactional.id": self.name, **_FIXED}
        settings["on_delivery"] = self._note_delivery
        producer, explain = make_producer(settings, self._failure)
        insist(lambda: producer.init_transactions(REQUEST_SECONDS), self._patience, self._failure, explain)
        self._producer, self._explain = producer, explain
        self._read_markers(list(topics))

    def _read_markers(self, topics: list[str]) -> None:
        """The client has no other way to name a group than a consumer of it."""
        group = {"group.id": f"shoal-{self.name}", "enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = make_client(Consumer, {**for_connections(self._given), **group}, self._failure)
        try:
            asked = [TopicPartition(topic, 0) for topic in topics]
            found = insist(lambda: consumer.committed(asked, timeout=REQUEST_SECONDS), self._patience, self._failure)
            self._group = consumer.consumer_group_metadata()
        finally:
            consumer.close()
        marked = [one for one in found if one.offset >= 0]
        self._markers = {one.topic: one.offset for one in marked}
        if marked:
            self.published = tuple(filter(None, json.loads(marked[0].metadata or "{}")["checkpoints"]))

    def insist(self, call: Callable[[], None]) -> None:
        """Repeat a call while it raises Unreachable, as long as unreachable brokers are waited for."""
        persist(call, self._patience, self._failure)

    def held(self, topic: str) -> int:
        """How many messages of this run a topic holds."""
        return self._markers.get(topic, 0)

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; OutputError if there is no such topic."""
        patience = Patience(min(_TOPIC_SECONDS, self._give_up))
        while True:
            count = persist(
                lambda: topic_partitions(self._open_producer, topic, self._failure, self._explain),
                self._patience,
                self._failure,
            )
            if count:
                return count
            if patience.fail():
                raise no_topic(topic, self.brokers)
            patience.wait()

    # ---- writing

    def send(self, topic: str, messages: Iterable[tuple[Any, ...]]) -> None:
        """Write messages inside the open transaction: value, key, partition, and more as the client takes it."""
        self._begin()
        produce = self._open_producer.produce
        try:
            for message in messages:
                try:
                    produce(topic, *message)
                except BufferError:
                    self._produce_when_there_is_room(topic, *message)
        except KafkaException as error:
            raise self._broken(error) from None
        self._serve(self._open_producer.poll, 0)

    def _produce_when_there_is_room(self, topic: str, *message: Any) -> None:
        """Wait until messages before this one are delivered, or fail because they expire."""
        self._watch.restart()
        while True:
            self._serve(self._open_producer.poll, STEP_SECONDS / 4)
            with contextlib.suppress(BufferError):
                self._open_producer.produce(topic, *message)
                return
            self._require_connected()

    def flush(self) -> None:
        """Wait until brokers have acknowledged every message; OutputError if one of them expired, or none is."""
        self._watch.restart()
        before = left = self._serve(self._open_producer.flush, STEP_SECONDS)
        while left:
            left = self._serve(self._open_producer.flush, STEP_SECONDS)
            if left < before:
                self._patience.succeed()
                self._watch.restart()
                before = left
                continue
            self._explain()
            self._require_connected()
            if self._patience.fail():
                self._is_lost = True  # closing it would wait for the same messages
                raise self._failure("brokers acknowledge nothing; the same command continues before these messages")
        self._patience.succeed()

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Let the client report what happened to messages; OutputError if one of them was not delivered."""
        try:
            with FatalAsException():
                left = call(seconds)
        except KafkaException as error:
            raise self._broken(error) from None
        except SystemError:  # the client reports a delivery while it raises a fatal error
            if self._undelivered is None:
                raise
        if self._undelivered is not None:
            raise self._broken(KafkaException(self._undelivered))
        return left

    def publish(self, checkpoint: str, written: Mapping[str, int]) -> None:
        """Commit the transaction with the marker: this checkpoint, and how many messages each topic has."""
        if self.published[:1] == (checkpoint,):
            return
        names = (checkpoint, *self.published[:1])
        text = json.dumps({"checkpoints": names})
        marks = [TopicPartition(topic, 0, count, text) for topic, count in written.items()]
        producer = self._open_producer
        self._begin()
        self._call(producer.send_offsets_to_transaction, marks, self._group, REQUEST_SECONDS)
        self._call(producer.commit_transaction, REQUEST_SECONDS)
        self._is_begun = False
        self.published = names

    def _begin(self) -> None:
        if not self._is_begun:
            self._call(self._open_producer.begin_transaction)
            self._is_begun = True

    def _call(self, call: Callable[..., Any], *args: Any) -> None:
        """Repeat a call as long as the client says that it may be repeated."""
        self._watch.restart()
        try:
            persist(lambda: self._once(partial(call, *args)), self._patience, self._failure)
        except KafkaException as error:
            raise self._broken(error) from None

    def _once(self, call: Callable[[], Any]) -> None:
        """Call the client in the background: some calls hang, whatever their time-out, if brokers were replaced."""
        begun = time.monotonic()
        try:
            while not self._background.call(lambda: _done(call), STEP_SECONDS):
                self._require_connected()
                if time.monotonic() - begun >= _HUNG_SECONDS:
                    raise self._lost("the client does not return")
        except KafkaException as error:
            found = as_error(error)
            if found.retriable() and not found.txn_requires_abort() and not found.fatal():
                self._explain()
                self._require_connected()
                raise Unreachable(reason(found)) from None
            raise

    # ---- errors

    def _require_connected(self) -> None:
        """Raise Aborted if only another client can reach the brokers."""
        if self._watch.is_cut_off():
            raise self._lost("brokers answer, but not to this client")

    def _answers(self) -> bool:
        try:
            with FatalAsException():
                self._open_producer.list_topics(timeout=PROBE_SECONDS)
        except KafkaException:
            return False
        return True

    def _lost(self, why: str) -> Aborted:
        """The client cannot be used any more, not even to abort."""
        self._is_lost = True
        return Aborted(f"Kafka at {self.brokers}: {why}, so the transaction was given up")

    def _note_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and self._undelivered is None:
            self._undelivered = error

    def _broken(self, error: KafkaException) -> OutputError:
        found, is_aborted = self._abort(as_error(error))
        if found.name() in FENCED and not is_aborted:
            return OutputError(
                f"Kafka at {self.brokers}: another run with the transactional id {self.name} has taken over; this one "
                "stops and has published nothing since"
            )
        if is_refused(found):
            return self._failure(f"the transaction failed ({reason(found)}); the same command continues before it")
        return Aborted(f"Kafka at {self.brokers}: the transaction was aborted ({reason(found)})")

    def _abort(self, error: KafkaError) -> tuple[KafkaError, bool]:
        """Abort the transaction after an error; its cause, and whether brokers have aborted it.

        If that fails for good, its error is the cause of others, such as purged messages. A transaction that was open
        for too long has the same error as one of a process that was shut out, but only the former can be aborted.
        """
        if not self._is_begun or error.fatal():
            return error, False
        abort = partial(self._open_producer.abort_transaction, REQUEST_SECONDS)
        try:
            is_aborted = self._background.call(lambda: _done(abort), _HUNG_SECONDS) is not None
        except KafkaException as worse:
            return (as_error(worse) if as_error(worse).fatal() else error), False
        self._is_lost, self._is_begun = not is_aborted, False
        return error, is_aborted

    def _failure(self, why: str) -> OutputError:
        return OutputError(f"Kafka at {self.brokers}: cannot be written: {why}")

    def close(self) -> None:
        """Abort what was not published, so that readers do not wait for it; a client that hangs is left behind."""
        self._background.close()
        producer, self._producer = self._producer, None
        if producer is None:
            return
        closing = threading.Thread(target=_close, args=(producer, self._is_begun), daemon=True)
        with warnings.catch_warnings(action="ignore"):
            closing.start()
            closing.join(0 if self._is_lost else _CLOSE_SECONDS)

    @property
    def _open_producer(self) -> Producer:
        if self._producer is None:
            raise RuntimeError("the sink is not open")
        return self._producer


def _recovery() -> dict[str, str]:
    """Do not start over with the addresses of the policy when all brokers are down for a moment.

    The client would never find the group's coordinator again (librdkafka issue 5511). Without it, a client that is told
    of no brokers at all, as by one that is not registered yet, forgets them: `Watch` notices that.
    """
    return {"metadata.recovery.strategy": "none"} if libversion()[1] >= _WITH_RECOVERY else {}


def _close(producer: Producer, is_begun: bool) -> None:  # noqa: FBT001
    # If this fails, brokers abort the transaction when it expires, or when the next one starts.
    with contextlib.suppress(KafkaException), FatalAsException():
        producer.purge()
        if is_begun:
            producer.abort_transaction(REQUEST_SECONDS)
        producer.close()


def _done(call: Callable[[], Any]) -> bool:
    with FatalAsException():
        call()
    return True
