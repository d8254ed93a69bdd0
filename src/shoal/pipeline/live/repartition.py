"""Write the messages of a topic to another one that is keyed by a column, exactly once.

It is a run like any other, with checkpoints and transactions, whose method passes messages through. Topics are merged
in event time, so messages of one key are in the order in which one process would have read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from shoal.crypto.keys import Secret
from shoal.errors import PolicyError
from shoal.methods.base import StreamMethod
from shoal.methods.settings import Duration
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.live.pass_through import PassThrough, PassThroughSection
from shoal.pipeline.live.wiring import WHOLE, sink_parts
from shoal.pipeline.outputs import Outputs
from shoal.pipeline.run import StreamRun
from shoal.pipeline.stopping import Stop
from shoal.policy import Policy
from shoal.policy.fields import Location
from shoal.policy.live.messages import MessageSink, default_letters
from shoal.policy.live.systems import KafkaSink, KafkaSource
from shoal.policy.policy import DeadLetters
from shoal.policy.tables import CheckpointSection, StreamSection
from shoal.policy.z import ZAnonymitySection

_EVERY: Final = Duration("10s")


@dataclass(frozen=True)
class Request:
    """What is asked for; None where the policy says it."""

    by: str | None = None
    """The column that the new topic is keyed by."""
    read: tuple[str, ...] = ()
    """Topics to read; by default those of the policy."""
    to: str | None = None
    """The topic to write; by default the one that the policy reads, if others are named in `read`."""
    partitions: int | None = None
    """Create the topic with this many partitions if it does not exist."""
    until_end: bool = False


def repartition(
    policy: Policy, request: Request, observer: Observer | None = None, *, stop: Stop | None = None,
    take_over: bool = False,
) -> RunSummary:  # fmt: skip
    """Write a topic that is keyed by a column; started again after a kill, it continues.

    The new topic has raw messages: protect it as the one that is read.
    """
    from shoal.pipeline.live.kafka import prepare_topic  # its client is an extra

    source, sink = _tables(policy, request)
    by = _column(policy, request)
    letters = default_letters(sink.topic)
    plan = replace(
        policy,
        stream=StreamSection(time=policy.stream.time, time_unit=policy.stream.time_unit),
        source=source,
        written_sink=sink,
        dead_letters=DeadLetters(None, keep_rows=False, name=letters),
        trace=None,
        sanitize=None,
        hierarchies={},
        warnings=(),
        checkpoint=_checkpoint(policy, sink),
    )
    parts = sink_parts(plan)
    prepare_topic(parts, letters, partitions=1 if request.partitions else None)
    count = prepare_topic(parts, sink.topic, partitions=request.partitions)
    keeps_keys = source.key_column not in (None, by)
    section = PassThroughSection(by=by, partitions=count, keeps_keys=keeps_keys)
    run = _Run(replace(plan, anonymize=section), observer or Observer(), stop=stop, take_over=take_over)
    return run.execute()


class _Run(StreamRun):
    """A run that passes messages through."""

    def _make_method(self, secret: Secret) -> StreamMethod:
        return cast(StreamMethod, PassThrough(self._section.by, self.policy.stream.time))

    def _make_outputs(self, *, resumable: bool) -> Outputs:
        from shoal.pipeline.live.kafka import make_keyed_sinks

        section = self._section
        sinks = make_keyed_sinks(sink_parts(self.policy), column=section.by, raw=WHOLE, keeps_keys=section.keeps_keys)
        return Outputs(self.policy, resumable=resumable, sinks=sinks)

    @property
    def _section(self) -> PassThroughSection:
        assert isinstance(self.policy.anonymize, PassThroughSection)
        return self.policy.anonymize


# ---- from the policy to what is read and written


def _tables(policy: Policy, request: Request) -> tuple[KafkaSource, KafkaSink]:
    given = policy.source
    if not isinstance(given, KafkaSource):
        raise PolicyError("[source] kind: shoal repartition reads and writes topics of Kafka; name topics")
    read = request.read or given.topics
    to = request.to or (given.topics[0] if request.read and len(given.topics) == 1 else None)
    if to is None:
        raise PolicyError("--to: name the topic to write; without it, name the topics to read with --from")
    _require_free(policy, to, read)
    changes: dict[str, Any] = {"topics": read, "workers": 1, "keyed_by": None, "group": f"{given.group}-to-{to}"}
    if request.until_end:
        changes["until"] = "end"
    return given.model_copy(update=changes), _sink(policy, given, to)


def _require_free(policy: Policy, to: str, read: tuple[str, ...]) -> None:
    """Raw messages must not go where published rows, or dead letters, are expected; nor where they are read."""
    if {to, default_letters(to)} & set(read):
        raise PolicyError(f"--to: {to} or its dead letters would be read again; name another topic")
    if isinstance(policy.written_sink, MessageSink):
        published = {policy.written_sink.name, policy.dead_letters.name}
        if {to, default_letters(to)} & published:
            raise PolicyError(
                f"--to: {to} is where the policy publishes, and these are raw messages of people; name another topic"
            )


def _sink(policy: Policy, source: KafkaSource, to: str) -> KafkaSink:
    """The new topic, at the brokers of the source and reached in the same way."""
    name = f"{to}-repartition"
    given = policy.written_sink
    if isinstance(given, KafkaSink) and given.brokers in (None, source.brokers):
        own = {"topic": to, "transactional_id": name, "brokers": source.brokers}
        plain = {"key": None, "format": "json", "registry": None, "schema_file": None}  # messages are not encoded
        return given.model_copy(update={**own, **plain})
    from shoal.sinks.kafka.topics import for_connections

    made = KafkaSink.checked({"kind": "kafka", "topic": to, "brokers": source.brokers, "transactional_id": name})
    reached = {"client": for_connections(source.client), "secrets": for_connections(source.secrets)}
    return made.model_copy(update={**reached, "give_up": source.give_up})


def _column(policy: Policy, request: Request) -> str:
    if request.by is not None:
        return request.by
    assert isinstance(policy.source, KafkaSource)
    if policy.source.keyed_by is not None:
        return policy.source.keyed_by
    if isinstance(policy.anonymize, ZAnonymitySection) and len(policy.anonymize.attribute) == 1:
        return next(iter(policy.anonymize.attribute))
    raise PolicyError("--by: name the column that the new topic is keyed by")


def _checkpoint(policy: Policy, sink: KafkaSink) -> CheckpointSection:
    if policy.checkpoint is None:
        raise PolicyError(
            "[checkpoint]: is missing; messages become visible with a checkpoint; add it, or --checkpoint"
        )
    given, every = policy.checkpoint.path, policy.checkpoint.every
    is_short = isinstance(every, Duration) and 2 * every.ns <= sink.transaction_ms * 1_000_000
    own = Location(f"{given.text.rstrip('/')}/to-{sink.topic}", given.path / f"to-{sink.topic}")
    return policy.checkpoint.model_copy(update={"path": own, "every": every if is_short else _EVERY})
