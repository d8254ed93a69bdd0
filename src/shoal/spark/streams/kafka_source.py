"""Topics of Kafka as a stream: a micro-batch reads a range of offsets of every partition.

The driver plans a micro-batch in steps. It shares the bound among the partitions with new messages; executors read and
decode that much and keep it (:class:`~shoal.spark.streams.kafka_messages.Survey`); the times found give the frontier
(:mod:`shoal.spark.streams.frontier`), and the frontier the offset at which the micro-batch ends in every partition.
These offsets are recorded. Only then is anything decided, so that a repeated micro-batch has the same messages.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from shoal.decode.messages import MessageDecoder
from shoal.errors import CheckpointError, InputError, PolicyError
from shoal.methods.arrow_input import plain_type
from shoal.methods.base import StreamMethod
from shoal.pipeline.live.wiring import message_decoder
from shoal.policy import Policy
from shoal.policy.live.systems import KafkaSource
from shoal.sources.merging import NO_TIME
from shoal.spark.dead_letters import Letter, dead_letters
from shoal.spark.outcome import Outcome
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.streams.bounds import shares
from shoal.spark.streams.frontier import EVERYTHING, Frontier, Log, Place, Silence, frontier
from shoal.spark.streams.kafka_messages import Cut, Range, ReadOffsets, Survey, code_of, in_order, open_reader, place_of
from shoal.spark.streams.micro_batches import Taken
from shoal.spark.streams.state import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST_AHEAD: Final = 50_000
"""Messages that are read at least of a partition that was ahead of the others in the micro-batch before."""


class TopicOffsets:
    """The topics of a policy.

    Parameters
    ----------
    until_end
        Read up to the ends as they are when the run begins.
    finishes
        The stream ends there, so that no partition is waited for at its end.
    most
        Messages of a micro-batch.
    """

    def __init__(
        self,
        policy: Policy,
        method: StreamMethod,
        head: tuple[str, ...],
        *,
        until_end: bool,
        finishes: bool,
        most: int,
    ) -> None:
        assert isinstance(policy.source, KafkaSource)
        if policy.source.start == "group":
            raise PolicyError('[source] start: on Spark a stream starts "earliest" or "latest"; set one of them')
        self._policy, self._section, self._method, self._head = policy, policy.source, method, head
        self._reader = open_reader(policy)
        self._until_end, self._finishes, self._most = until_end, finishes, most
        self._ends: dict[Place, int] | None = None
        self._first: dict[Place, int] = {}
        """Where a stream starts that begins with new messages."""
        self._silence = Silence(policy.source.idle_partition.ns / 1e9)
        self._ahead: dict[Place, tuple[int, int, int]] = {}
        """Of partitions that were ahead of the others: the next offset, its time, and how much to read of it."""
        self._surveyed: tuple[Mapping[str, Any], DataFrame] | None = None
        """A plan and its messages, which are stored on the executors."""
        self.is_held = False
        """Whether there are messages that only wait for silent partitions to become idle."""

    # ---- plans

    def plan(self, session: SparkSession, before: Commit | None) -> dict[str, Any] | None:
        """The offsets that are next; None if there are none, or if all have to wait for a partition that is behind."""
        self._surveyed = None
        logs = self._logs(before)
        self._share(logs)
        if any(log.start < log.until for log in logs):
            decoder = self._learnt(logs, before.more.get("types") if before else None)
            found = self._planned(session, logs, decoder)
            if found is not None:
                self.is_held = False
                return found
        holder = _holder(logs)
        self.is_held = any(log.is_pending for log in logs) and holder is not None and holder.is_silent
        return None

    def _logs(self, before: Commit | None) -> list[Log]:
        """All partitions, in the order of the stream."""
        more = before.more if before else {}
        known = {(topic, number): offset for topic, number, offset in more.get("offsets", ())}
        newest = {(topic, number): time for topic, number, time in more.get("newest", ())}
        idle = {(topic, number) for topic, number in more.get("idle", ())}
        limits = self._limits()
        if self._until_end:
            self._ends = self._ends or {place: high for place, (_, high) in limits.items()}
        if self._section.start == "latest" and before is None:
            self._first = self._first or {place: high for place, (_, high) in limits.items()}
        logs = []
        for place, (low, high) in limits.items():
            start = known.get(place, self._first.get(place, low))
            _require_there(self._reader.name, place, start, low, high)
            end = high if self._ends is None else max(start, min(high, self._ends.get(place, start)))
            number = code_of(self._section.topics, place)
            logs.append(
                Log(
                    place, number, start, end, newest.get(place, NO_TIME),
                    is_idle=place in idle, has_ended=self._finishes, is_silent=start == high,
                )
            )  # fmt: skip
        self._declare_idle(logs)
        return logs

    def _limits(self) -> dict[Place, tuple[int, int]]:
        found = self._reader.limits(self._section.topics)
        if self._reader.had_trouble:
            self._reader.had_trouble = False
            self._silence.restart()
        self._silence.note({place: high for place, (_, high) in found.items()}, time.monotonic())
        return found

    def _declare_idle(self, logs: list[Log]) -> None:
        """Stop waiting for partitions that have been silent for too long, if others have messages."""
        now = time.monotonic()
        if any(log.is_pending for log in logs):
            for log in logs:
                log.is_idle |= log.is_silent and self._silence.is_over(log.place, now)

    def _share(self, logs: list[Log]) -> None:
        """Up to where each partition is read: not at all if what is next in it is behind the frontier anyway."""
        limit = frontier(log for log in logs if not log.is_pending)
        counts = []
        for log in logs:
            offset, next_time, most = self._ahead.get(log.place, (-1, 0, 0))
            available = log.end - log.start
            if offset == log.start:
                least = min(_LEAST_AHEAD, max(1, self._most // (4 * len(logs))))
                log.read, available = next_time, min(available, max(least, most))
            counts.append(available if limit.passes(log.read, log.number) else 0)
        for log, count in zip(logs, shares(counts, self._most), strict=True):
            log.until = log.start + count

    def _planned(self, session: SparkSession, logs: list[Log], decoder: MessageDecoder) -> dict[str, Any] | None:
        """Read what may be next, and plan what is before the frontier."""
        survey = self._survey(session, logs, decoder)
        found = survey.found()
        for log in logs:
            if log.number in found:
                log.count, log.read = found[log.number]
        to = frontier(logs)
        cuts = survey.cuts(to) if any(not to.passes(log.read, log.number) for log in logs if log.count) else {}
        taken = [self._taken(log, cuts.get(log.number), to) for log in logs]
        if all(log.start == one.end for log, one in zip(logs, taken, strict=True)):
            survey.forget()
            return None
        plan = {
            "ranges": [(*log.place, log.start, one.end) for log, one in zip(logs, taken, strict=True)],
            "newest": [(*log.place, one.newest) for log, one in zip(logs, taken, strict=True)],
            "idle": [log.place for log in logs if log.is_idle and not log.count],
            "rows": sum(one.rows for one in taken),
            "types": decoder.types,
            "is_cut": (holder := _holder(logs)) is not None and holder.until < holder.end,
        }
        self._surveyed = plan, survey.before(to)
        return plan

    def _taken(self, log: Log, cut: Cut | None, to: Frontier) -> Cut:
        """What a micro-batch takes of a partition; what is left is remembered, so that it is not read too often."""
        if cut is None or to.passes(log.read, log.number):
            if log.until > log.start:
                self._ahead.pop(log.place, None)
            return Cut(log.count, log.until, log.read if log.count else log.newest, NO_TIME)
        end = max(log.start, cut.end)
        # Far ahead of the others: it leaves more of the bound to those that it waits for.
        most = self._most if 2 * cut.rows >= log.count else (log.until - log.start) // 2
        self._ahead[log.place] = (end, cut.next, most)
        return Cut(cut.rows, end, max(log.newest, cut.newest), cut.next)

    def _learnt(self, logs: list[Log], types: Mapping[str, str] | None) -> MessageDecoder:
        """A decoder that knows the types: of the micro-batches before, or by the first messages, log by log."""
        decoder = message_decoder(self._policy, self._method.columns, types)
        if not decoder.is_ready:
            for log in logs:
                found = self._reader.read(*log.place, log.start, log.end)
                if any(decoder.learn(message.value() for message in messages) for messages in found):
                    break
            decoder.learn((), is_last=True)
        return decoder

    # ---- messages

    def _survey(self, session: SparkSession, logs: list[Log], decoder: MessageDecoder) -> Survey:
        ranges = tuple((*log.place, log.start, log.until) for log in logs if log.start < log.until)
        return Survey(session, self._reading(ranges, decoder, {log.place: log.newest for log in logs}))

    def _reading(self, ranges: tuple[Range, ...], decoder: MessageDecoder, newest: Mapping[Place, int]) -> ReadOffsets:
        schema = pa.schema([(field.name, plain_type(field.type)) for field in decoder.schema])
        return ReadOffsets(self._policy, ranges, self._method.columns, decoder.types, schema, newest)

    def take(self, session: SparkSession, plan: Mapping[str, Any], before: Commit | None) -> Taken:
        """The planned messages, decoded and in order."""
        _require_current(plan)
        decoder = message_decoder(self._policy, self._method.columns, plan["types"])
        newest = {(topic, number): time for topic, number, time in (before.more.get("newest", ()) if before else ())}
        ranges = tuple((topic, number, start, end) for topic, number, start, end in plan["ranges"] if start < end)
        work = self._reading(ranges, decoder, newest)
        if self._surveyed is not None and self._surveyed[0] is plan:
            messages = self._surveyed[1]
        else:  # planned by a run that was killed
            messages = Survey(session, work).before(EVERYTHING)
        person = str(self._policy.stream.person) if decoder.numbers_rows else None
        rows = in_order(messages, plan["rows"], work.schema, self._head, before.end if before else 0, person)
        kept = {**places_after(plan, before), "types": decoder.types, "numbers_rows": decoder.numbers_rows}
        return Taken(rows, lambda outcome: self._letters(outcome, rows), kept)

    def _letters(self, outcome: Outcome, rows: NumberedRows) -> tuple[list[Letter], int]:
        def place(row: int, code: int | None) -> dict[str, Any]:
            if code is None:
                return {"row": row + 1}
            topic, number, offset = place_of(self._section.topics, code)
            return {"topic": topic, "partition": number, "offset": offset}

        keep_rows = self._policy.dead_letters.keep_rows
        return dead_letters(outcome, rows, self._method, place, keep_rows=keep_rows, is_live=True)

    def keep(self, commit: Commit) -> None:
        """Store the offsets of the group, for tools."""
        self._reader.keep({(topic, number): offset for topic, number, offset in commit.more["offsets"]})

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


def places_after(plan: Mapping[str, Any], before: Commit | None) -> dict[str, Any]:
    """Where partitions are after a micro-batch; one that it did not list is where it was."""
    more = before.more if before else {}
    offsets = {(topic, number): end for topic, number, end in more.get("offsets", ())}
    offsets |= {(topic, number): end for topic, number, _, end in plan["ranges"]}
    newest = {(topic, number): time for topic, number, time in more.get("newest", ())}
    newest |= {(topic, number): time for topic, number, time in plan["newest"]}
    return {
        "offsets": [(*place, offset) for place, offset in offsets.items()],
        "newest": [(*place, time) for place, time in newest.items()],
        "idle": plan["idle"],
    }


def _holder(logs: list[Log]) -> Log | None:
    """The partition that the others wait for."""
    number = frontier(logs).log
    return next((log for log in logs if log.number == number), None)


def _require_current(plan: Mapping[str, Any]) -> None:
    if "newest" not in plan:
        raise CheckpointError(
            "[checkpoint] path: the last micro-batch was planned by an older version of shoal, and nothing of it is "
            "published yet; delete the newest plan-*.json in that folder, then it is planned again"
        )


def _require_there(name: str, place: tuple[str, int], start: int, low: int, high: int) -> None:
    if low <= start <= high:
        return
    what = f"messages {start:,} to {low - 1:,} were deleted before they were read" if start < low else (
        f"it ends at message {high:,}, but {start:,} were read; it was deleted and created again"
    )  # fmt: skip
    raise InputError(
        f"{name}: topic {place[0]}, partition {place[1]}: {what}; start over with a new checkpoint folder and another "
        "place to write to"
    )
