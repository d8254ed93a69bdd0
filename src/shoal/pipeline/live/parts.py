"""What a system of messages gets from the policy: addresses, settings, decoder and encoders, made ready.

One module per system, named like its ``kind``, connects it (`System`). It is imported when a policy names the
system, because its client library is an extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from shoal.decode.messages import OpenDecoder
from shoal.encode.messages import MessageEncoder
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.sinks.base import Sink
from shoal.sources.base import Source


@dataclass(frozen=True)
class SourceParts:
    """Everything a source is made of."""

    section: Any
    """The checked table: a :class:`~shoal.policy.live.messages.MessageSource` of this system."""
    settings: Mapping[str, Any] = field(repr=False)
    """Of the client library, secrets included: for the client only."""
    open_decoder: OpenDecoder = field(repr=False)
    folder: Path | None
    """The checkpoint folder, for a source that must keep something itself."""
    worker: int | None = None
    """Which of several workers this is for."""

    @property
    def table(self) -> MessageSource:
        """The section, by the keys that all systems have."""
        assert isinstance(self.section, MessageSource)
        return self.section


@dataclass(frozen=True)
class Output:
    """A topic or stream that is written."""

    name: str
    encoder: MessageEncoder


@dataclass(frozen=True)
class SinkParts:
    """Everything the sinks of one system are made of: that of the rows, and that of the dead letters."""

    section: Any
    """The checked table: a :class:`~shoal.policy.live.messages.MessageSink` of this system."""
    address: str
    """Where the system is, also if the table leaves that to the source's."""
    settings: Mapping[str, Any] = field(repr=False)
    """Of the client library, secrets included: for the client only."""
    rows: Output
    letters: Output | None
    """None: dead letters go to a file."""
    source: MessageSource | None
    """The table of the source if it is of the same kind and at the same address."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What is written: rows, and dead letters unless they go to a file."""
        return (self.rows,) if self.letters is None else (self.rows, self.letters)

    @property
    def table(self) -> MessageSink:
        """The section, by the keys that all systems have."""
        assert isinstance(self.section, MessageSink)
        return self.section


class Sinks(NamedTuple):
    """The sinks of a run. They share a connection, and a transaction where the system has them."""

    rows: Sink
    letters: Sink | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the doctor reports about a system; never a value."""

    level: Literal["good", "look", "wrong"]
    sentence: str


class System(Protocol):
    """What a module ``shoal.pipeline.live.<kind>`` has."""

    PROMISE: str
    """What is promised of every record, in one sentence: exactly once, or what exactly instead."""

    def make_source(self, parts: SourceParts) -> Source:
        """The source."""

    def make_sinks(self, parts: SinkParts) -> Sinks:
        """The sinks of rows and dead letters."""

    def check_source(self, parts: SourceParts) -> Iterator[Finding]:
        """Whether the system answers, and its topics exist and may be read. Returns within seconds."""

    def check_sinks(self, parts: SinkParts) -> Iterator[Finding]:
        """Whether the system answers, and its topics exist and may be written."""
