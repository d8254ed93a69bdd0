"""Checks across tables for systems of messages: what would never end, leak, or feed itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.methods.settings import Duration
from shoal.policy.fields import Section
from shoal.policy.live.messages import MessageSink, MessageSource, default_letters
from shoal.policy.live.systems import KafkaSink
from shoal.policy.live.workers import worker_problems
from shoal.policy.method_base import MethodSection
from shoal.policy.methods import section_for
from shoal.policy.tables import CheckpointSection, DeadLettersSection

Table = Mapping[str, Any]
_FILES_ONLY: Final = "decides all records at once, so it reads files only; name files"


def live_problems(table: Table, sections: Mapping[str, Section | None]) -> list[str]:
    """All of them; sections that are wrong in themselves are None and were reported."""
    source, sink = sections["source"], sections["sink"]
    found: list[str] = []
    if isinstance(source, MessageSource):
        found += _source_problems(source, sections)
        found += worker_problems(source, sections)
    if isinstance(sink, MessageSink):
        found += _key_problems(sink, table)
        found += _address_problems(sink, source)
        if isinstance(source, MessageSource):
            found += _loop_problems(source, sink, sections["dead_letters"])
    if isinstance(sink, KafkaSink):
        found += _transaction_problems(sink, sections["checkpoint"], source)
    found += _letter_problems(sections["dead_letters"], sink)
    return found


def _source_problems(source: MessageSource, sections: Mapping[str, Section | None]) -> Iterator[str]:
    method = sections["anonymize"]
    if sections["sanitize"] is not None:
        yield "[source] kind: shoal sanitize reads files only; name files"
    if not isinstance(method, MethodSection):
        return
    if not method.IS_STREAM:
        yield f"[source] kind: {method.METHOD} {_FILES_ONLY}"
    elif source.until is None and sections["checkpoint"] is None and sections["sanitize"] is None:
        yield (
            "[checkpoint]: is missing; a live run does not end, so it needs a folder for its state; add the section, "
            'or set until = "end" in [source]'
        )
    if source.until is None and method.counts_arrivals:
        yield (
            "[anonymize] deadline: counts arrivals, so it would never end on a silent stream; give a duration such as "
            '"30min" and name [stream] time, or set until = "end" in [source]'
        )


def _key_problems(sink: MessageSink, table: Table) -> Iterator[str]:
    stream, anonymize = table.get("stream"), table.get("anonymize")
    if sink.key is None or not isinstance(stream, Mapping) or not isinstance(anonymize, Mapping):
        return
    method = section_for(anonymize.get("method"))
    if method is None:
        return
    if sink.key == stream.get("person"):
        yield "[sink] key: is the person's column, which would group messages by person; name another column"
        return
    carry = stream.get("carry")
    published = {name for _, name in method.named_columns(anonymize)} | set(carry if isinstance(carry, list) else [])
    if method.PUBLISHES_TIME:
        published.add(str(stream.get("time")))
    if sink.key not in published:
        yield f'[sink] key: the column "{sink.key}" is not published; name one that is, or leave it out'


def _address_problems(sink: MessageSink, source: Section | None) -> Iterator[str]:
    if (
        source is not None
        and sink.address is None
        and not (isinstance(source, MessageSource) and source.kind == sink.kind)
    ):
        yield f"[sink] {sink.ADDRESS}: is missing; say where the system is"


def _loop_problems(source: MessageSource, sink: MessageSink, dead: Section | None) -> Iterator[str]:
    """What is written must not be read again."""
    if source.kind != sink.kind or sink.address not in (None, source.address):
        return
    if sink.name in source.logs:
        yield f'[sink]: "{sink.name}" is read by [source], so the output would become input; write somewhere else'
    if isinstance(dead, DeadLettersSection | None):
        letters = default_letters(sink.name) if dead is None or dead.name is None else dead.name
        if (dead is None or dead.path is None) and letters in source.logs:
            yield f'[dead_letters] name: "{letters}" is read by [source]; write somewhere else'


def _letter_problems(dead: Section | None, sink: Section | None) -> Iterator[str]:
    if not isinstance(dead, DeadLettersSection) or dead.name is None:
        return
    if dead.path is not None:
        yield "[dead_letters] name: give either a name (of a topic or stream) or a path (of a file)"
    if sink is not None and not isinstance(sink, MessageSink):
        yield "[dead_letters] name: is for sinks of messages; name a file in path"
    if isinstance(sink, MessageSink) and dead.name == sink.name:
        yield "[dead_letters] name: is where the rows go; name another"


def _transaction_problems(sink: KafkaSink, checkpoint: Section | None, source: Section | None) -> Iterator[str]:
    """Messages become visible with a checkpoint, and Kafka does not wait for it forever."""
    is_live = isinstance(source, MessageSource) and source.until is None
    if not isinstance(checkpoint, CheckpointSection):
        if not is_live:  # a live run without one was reported
            yield "[checkpoint]: is missing; what is written to Kafka becomes visible with a checkpoint; add it"
        return
    if isinstance(checkpoint.every, Duration):
        if 2 * checkpoint.every.ns > sink.transaction_ms * 1_000_000:
            yield (
                f"[checkpoint] every: is longer than half the time for which Kafka keeps a transaction open "
                f"({sink.transaction_ms / 1_000:g} s); shorten it, or raise transaction.timeout.ms in [sink.client]"
            )
    elif is_live:
        yield (
            "[checkpoint] every: counts rows, but on a slow stream Kafka would not keep the transaction open for so "
            'long; give a duration such as "30s"'
        )
