"""What the modules of systems without transactions share: pace, failures, and what the doctor asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.clients.trouble import Unreachable
from shoal.errors import InputError, OutputError, RunError
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.sinks.base import Sink
from shoal.sinks.messages import MessageSink, Writer
from shoal.sources.live import FindMisplaced, LiveSource, Pace
from shoal.sources.reader import Needs, Reader

MakeWriter = Callable[[SinkParts, Output], Writer]


def live_source(parts: SourceParts, reader: Reader, find_misplaced: FindMisplaced | None = None) -> LiveSource:
    """The source with the policy's pace."""
    table = parts.table
    pace = Pace(table.lag.ns / 1e9, table.idle_partition.ns / 1e9, table.give_up.ns / 1e9)
    return LiveSource(reader, parts.open_decoder, pace, find_misplaced)


def both_sinks(parts: SinkParts, make: Callable[[Output], Sink]) -> Sinks:
    """The sink of rows and that of dead letters."""
    return Sinks(make(parts.rows), make(parts.letters) if parts.letters is not None else None)


def message_sinks(parts: SinkParts, make_writer: MakeWriter) -> Sinks:
    """Both sinks, of a system whose messages are numbered."""
    give_up = parts.table.give_up.ns / 1e9
    return both_sinks(
        parts, lambda output: MessageSink(make_writer(parts, output), output.encoder, give_up_seconds=give_up)
    )


def input_failure(name: str) -> Callable[[str], InputError]:
    """Makes errors of a source."""
    return lambda why: InputError(f"{name}: {why}")


def output_failure(name: str) -> Callable[[str], OutputError]:
    """Makes errors of a sink."""
    return lambda why: OutputError(f"{name}: {why}")


def check_reader(reader: Reader) -> Iterator[Finding]:
    """Whether a source can be read from its start."""
    try:
        reader.open([None] * len(reader.connect()), Needs())
    except (RunError, Unreachable) as error:
        yield Finding("wrong", f"[source] {named(reader.name, error)}")
    else:
        yield Finding("good", f"{reader.name} answers; {', '.join(reader.topics)} can be read")
    finally:
        reader.close()


def check_writers(parts: SinkParts, make_writer: MakeWriter) -> Iterator[Finding]:
    """Whether the logs of rows and dead letters can be written, and are empty."""
    for output in parts.outputs:
        yield from _check_writer(make_writer(parts, output))


def _check_writer(writer: Writer) -> Iterator[Finding]:
    name = writer.name
    try:
        held = writer.count()
    except (RunError, Unreachable) as error:
        yield Finding("wrong", f"[sink] {named(name, error)}")
    else:
        if held:
            yield Finding("look", f"{name}: messages: {held:,}; a first run needs an empty one")
        else:
            yield Finding("good", f"{name} answers" + ("; it is created by the first run" if held is None else ""))
    finally:
        writer.close()


def named(name: str, error: Exception) -> str:
    """The sentence of an error, with the name of the system and, if it does not answer, what to do."""
    if isinstance(error, Unreachable):
        return f"{name}: cannot be used now ({error}); is it running, and is the address right?"
    return str(error) if str(error).startswith(name) else f"{name}: {error}"
