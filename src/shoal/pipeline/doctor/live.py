"""The doctor's remarks about systems of messages: do they answer, what is promised, how late messages are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import RunError, ShoalError
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.doctor.times import duration_text
from shoal.pipeline.live.wiring import make_registry, sink_parts, source_parts, system
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.times import column_ns

_AHEAD_NS: Final = 60 * 10**9
_QUANTILE: Final = 0.999


def connection_remarks(policy: Policy) -> Iterator[Remark]:
    """Whether the systems answer and topics exist, and what is promised."""
    source, sink = policy.source, policy.written_sink
    kinds = [one.kind for one in (source, sink) if isinstance(one, MessageSource | MessageSink)]
    try:
        for kind in dict.fromkeys(kinds):
            yield Remark("good", "promise", system(kind).PROMISE)
        if isinstance(source, MessageSource):
            for finding in system(source.kind).check_source(source_parts(policy)):
                yield Remark(finding.level, "source", finding.sentence)
            yield from _type_remarks(source)
            yield from _registry_remarks(source, "source")
        if isinstance(sink, MessageSink):
            for finding in system(sink.kind).check_sinks(sink_parts(policy)):
                yield Remark(finding.level, "sink", finding.sentence)
            yield from _registry_remarks(sink, "sink")
    except ShoalError as error:
        yield Remark("wrong", "connection", str(error))


def _registry_remarks(section: MessageSource | MessageSink, name: str) -> Iterator[Remark]:
    registry = make_registry(section, name)
    if registry is None:
        return
    try:
        registry.check()
    except RunError as error:
        yield Remark("wrong", name, str(error))
    else:
        yield Remark("good", name, f"the schema registry {section.registry} answers")


def _type_remarks(source: MessageSource) -> Iterator[Remark]:
    if not source.types and source.format == "json":
        yield Remark(
            "look", "source",
            "types are not declared: a run waits for the first messages and takes them from there, and refuses later "
            "messages that do not fit; declare them in [source] types",
        )  # fmt: skip


def lag_remarks(policy: Policy, batch: pa.RecordBatch, arrived: npt.NDArray[np.int64]) -> Iterator[Remark]:
    """How long after its own time a message reaches the broker, compared with `lag`."""
    column, section = policy.stream.time, policy.message_source
    if column is None or column not in batch.schema.names or not policy.anonymize.runs_on_time:
        return
    times, usable = column_ns(batch.column(column))
    known = usable & (arrived > 0)
    if not known.any():
        return
    after = arrived[known] - times[known]
    if int(after.min()) < -_AHEAD_NS:
        yield Remark(
            "look", "time",
            f"column {column!r}: times are up to {duration_text(-int(after.min()))} ahead of the broker's clock; check "
            "the clocks of the producers, and [stream] time_unit",
        )  # fmt: skip
    lateness = getattr(policy.anonymize, "lateness", None)
    allowed = section.lag.ns + (lateness.ns if lateness is not None else 0)
    usual = max(int(np.quantile(after, _QUANTILE)), 0)
    reach = f"99.9% of the messages reach the broker within {duration_text(usual)} of their time"
    if usual <= allowed:
        yield Remark("good", "time", f"{reach}; lag is long enough")
        return
    late = np.count_nonzero(after > allowed) / len(after)
    yield Remark(
        "look", "time",
        f"{reach}, {late:.1%} later than lag allows: while the stream is silent these would be late; set "
        f'lag = "{duration_text(usual)}" in [source], unless they were sent again later',
    )  # fmt: skip
