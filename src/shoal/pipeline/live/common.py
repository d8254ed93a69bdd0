"""What the modules of systems without transactions share: pace, failures, and what the doctor asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shoal.clients.trouble import Unreachable
from shoal.crypto.keys import old_secret_from_environment, secret_from_environment, secret_from_file
from shoal.errors import InputError, OutputError, RunError
from shoal.pipeline.checkpoints import KEY_NAME
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.sinks.base import Sink
from shoal.sinks.messages import MessageSink, Writer
from shoal.sources.live import FindMisplaced, LiveSource, Pace
from shoal.sources.logged.logged import LoggedMessages, Repeats
from shoal.sources.logged.message_log import MessageLog
from shoal.sources.reader import Needs, Reader

_MESSAGES: Final = "messages"
"""The folder of the message log."""
MakeWriter = Callable[[SinkParts, Output], Writer]


def live_source(parts: SourceParts, reader: Reader, find_misplaced: FindMisplaced | None = None) -> LiveSource:
    """The source with the policy's pace."""
    table = parts.table
    pace = Pace(table.lag.ns / 1e9, table.idle_partition.ns / 1e9, table.give_up.ns / 1e9)
    return LiveSource(reader, parts.open_decoder, pace, find_misplaced)


def logged_messages(name: str, folder: Path, repeats: str | None, window: int) -> LoggedMessages:
    """A log next to the checkpoints, sealed with their key; `repeats` names the id of messages, if they have one."""

    def open_log() -> MessageLog:
        secret = secret_from_environment() or secret_from_file(folder / KEY_NAME)
        return MessageLog(folder / _MESSAGES, secret, old=old_secret_from_environment())

    return LoggedMessages(name, open_log, repeats=Repeats(repeats, window=window) if repeats is not None else None)


def both_sinks(parts: SinkParts, make: Callable[[Output], Sink]) -> Sinks:
    """The sink of rows and that of dead letters."""
    return Sinks(make(parts.rows), make(parts.letters) if parts.letters is not None else None)


def message_sinks(parts: SinkParts, make_writer: MakeWriter) -> Sinks:
    """Both sinks, of a system whose messages are numbered."""
    give_up = parts.table.give_up.ns / 1e9
    return both_sinks(
        parts, lambda output: MessageSink(make_writer(parts, output), output.encoder, give_up_seconds=give_up)
    )


@dataclass(frozen=True)
class NumberedSystem:
    """A system without transactions, whose messages are numbered: the functions of its module, from two of them."""

    read: Callable[[SourceParts], Reader]
    write: MakeWriter

    def make_source(self, parts: SourceParts) -> LiveSource:
        """The logs of the policy."""
        return live_source(parts, self.read(parts))

    def make_sinks(self, parts: SinkParts) -> Sinks:
        """The log of rows and that of dead letters."""
        return message_sinks(parts, self.write)

    def check_source(self, parts: SourceParts) -> Iterator[Finding]:
        """Whether the server answers and has the logs."""
        return check_reader(self.read(parts))

    def check_sinks(self, parts: SinkParts) -> Iterator[Finding]:
        """Whether the server answers, and the logs are empty."""
        return check_writers(parts, self.write)


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
