"""Several workers on one stream: for which policies their union keeps the promise, and what each one gets.

Each worker reads partitions of its own and decides alone. What is published by all of them keeps the promise of the
policy if every record that a decision depends on is at the same worker, or if the promise holds for any part of the
stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from shoal.errors import PolicyError
from shoal.policy.fields import Location, Section
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.policy.live.systems import KafkaSink, KafkaSource
from shoal.policy.method_base import MethodSection
from shoal.policy.policy import Policy
from shoal.policy.tables import FileSink, StreamSection
from shoal.policy.tuples import TupleSection
from shoal.policy.z import ZAnonymitySection
from shoal.schema import ROWS

_ONE: Final = "or leave workers out"
_WORKERS: Final = "[source] workers"
_KEYED_BY: Final = "[source] keyed_by"


# ---- checks


def worker_problems(source: MessageSource, sections: Mapping[str, Section | None]) -> Iterator[str]:
    """Why a policy cannot be run by several workers."""
    if not isinstance(source, KafkaSource) or source.workers == 1:
        return
    if source.keyed_by is None:
        yield (
            f"{_KEYED_BY}: is missing; several workers need a topic whose messages are keyed by a column; name it, and "
            "write such a topic with shoal repartition if there is none"
        )
        return
    stream, sink = sections["stream"], sections["sink"]
    if isinstance(stream, StreamSection) and stream.person == ROWS:
        yield f'{_WORKERS}: person = "row" numbers rows, and each worker would begin with 0; name a column, {_ONE}'
    if isinstance(sink, MessageSink) and not isinstance(sink, KafkaSink):
        yield (
            f"[sink] kind: numbers of messages belong to one writer, so several workers cannot write one stream of "
            f'"{sink.kind}"; write to Kafka or to files, {_ONE}'
        )
    method, keyed_by = sections["anonymize"], source.keyed_by
    yield from (f"{key}: {text}" for key, text in _method_problems(keyed_by, method, stream))
    if isinstance(method, TupleSection) and keyed_by in method.column_types() and keyed_by not in source.types:
        yield f'[source] types: "{keyed_by}" has a text only as a whole number; declare it: {keyed_by} = "int64"'


def _method_problems(keyed_by: str, method: Section | None, stream: Section | None) -> Iterator[tuple[str, str]]:
    if isinstance(method, ZAnonymitySection):
        yield from _z_problems(keyed_by, method)
    elif isinstance(method, TupleSection):
        yield from _tuple_problems(keyed_by, method, stream)
    elif isinstance(method, MethodSection) and method.IS_STREAM:
        yield (
            _WORKERS,
            f"{method.METHOD} forms groups among all people of the stream, so it runs in one process; leave it out",
        )


def _z_problems(keyed_by: str, method: ZAnonymitySection) -> Iterator[tuple[str, str]]:
    if method.target is not None:
        yield "[anonymize] target", f"z follows all people of the stream, and a worker sees a part; give z, {_ONE}"
    if method.combine is not None:
        yield "[anonymize] combine", f"compares all values of a person, and a worker sees a part; leave it out, {_ONE}"
    names = list(method.attribute)
    if len(names) > 1:
        yield (
            "[anonymize] attribute",
            f"a topic is keyed by one column, so people who share a value of another are at several workers; name one "
            f"attribute, {_ONE}",
        )
    elif names != [keyed_by]:
        yield (
            _KEYED_BY,
            f'people who share a value of "{names[0]}" must be at one worker; name that column, and write a topic '
            "keyed by it with shoal repartition",
        )
    elif method.hierarchy_keys():
        yield (
            "[anonymize] on_private",
            f'generalizes to labels whose people are at several workers; choose "drop" or "blank", {_ONE}',
        )


def _tuple_problems(keyed_by: str, method: TupleSection, stream: Section | None) -> Iterator[tuple[str, str]]:
    carried = stream.carry if isinstance(stream, StreamSection) else ()
    if keyed_by not in (*method.quasi, *carried):
        yield (
            _KEYED_BY,
            f'the column "{keyed_by}" is neither a quasi-identifier nor carried; classes are formed among the rows of '
            "one worker, so name a column by which similar rows come together",
        )
    if method.t is not None and not isinstance(method.reference, Mapping):
        yield (
            "[anonymize] reference",
            "t compares with recent arrivals, and those of a worker are not those of the stream; give a table of "
            f"shares for each sensitive column, {_ONE}",
        )


# ---- what one worker gets


def for_worker(policy: Policy, worker: int | None) -> Policy:
    """The policy of one worker: partitions, checkpoints, files and a transactional id of its own."""
    workers = workers_of(policy)
    if worker is None:
        return policy
    if workers == 1:
        raise PolicyError("--worker: the policy has one worker; set [source] workers, or leave it out")
    if not 0 <= worker < workers:
        raise PolicyError(f"--worker: must be between 0 and {workers - 1}, because [source] workers is {workers}")
    letters, trace, checkpoint, sink = policy.dead_letters, policy.trace, policy.checkpoint, policy.sink
    if isinstance(sink, KafkaSink):
        name = f"{sink.transactional_id or sink.topic}-worker-{worker}-of-{workers}"
        sink = sink.model_copy(update={"transactional_id": name})
    elif isinstance(sink, FileSink):
        sink = sink.model_copy(update={"path": _own_place(sink.path, worker)})
    if trace is not None:
        trace = trace.model_copy(update={"path": _own_place(trace.path, worker)})
    if checkpoint is not None:
        place = checkpoint.path
        own = Location(f"{place.text.rstrip('/')}/worker-{worker}", place.path / f"worker-{worker}")
        checkpoint = checkpoint.model_copy(update={"path": own})
    if letters.file is not None:
        letters = replace(letters, file=_own_place(letters.file, worker))
    return replace(policy, worker=worker, written_sink=sink, dead_letters=letters, trace=trace, checkpoint=checkpoint)


def workers_of(policy: Policy) -> int:
    """How many workers share the stream."""
    return policy.source.workers if isinstance(policy.source, MessageSource) else 1


def _own_place(place: Location, worker: int) -> Location:
    """A file or folder that no other worker writes: ``out.worker-2.csv``, ``out/worker-2/``."""
    if place.is_standard:
        return place
    own = f"worker-{worker}"
    if place.is_folder:
        return Location(f"{place.text.rstrip('/')}/{own}/", place.path / own)
    stem, dot, ending = place.path.name.partition(".")
    name = f"{stem}.{own}{dot}{ending}"
    return Location(place.text[: len(place.text) - len(place.path.name)] + name, place.path.with_name(name))
