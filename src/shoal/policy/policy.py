"""A checked policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.methods.settings import Duration
from shoal.policy.fields import Location, Section
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.policy.method_base import MethodSection
from shoal.policy.sanitize import SanitizeSection
from shoal.policy.tables import (
    CheckpointSection,
    FileSink,
    FileSource,
    SinkSection,
    SourceSection,
    StreamSection,
    TraceSection,
)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where refused rows are listed: in a file, or in a topic next to the rows'; and whether rows are kept."""

    file: Location | None
    keep_rows: bool
    name: str | None = None

    @property
    def path(self) -> Location:
        """The file; only where there is one."""
        assert self.file is not None
        return self.file

    @property
    def where(self) -> str:
        """The file or topic, for messages."""
        return str(self.file.path) if self.file is not None else str(self.name)


@dataclass(frozen=True)
class Policy:
    """A policy that was checked; see :func:`shoal.policy.load_policy`."""

    stream: StreamSection
    source: SourceSection
    anonymize: MethodSection
    written_sink: SinkSection | None
    """None in a policy with [sanitize]."""
    dead_letters: DeadLetters
    trace: TraceSection | None = None
    checkpoint: CheckpointSection | None = None
    sanitize: SanitizeSection | None = None
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    """Hierarchies and ontologies of the generalized columns."""
    warnings: tuple[str, ...] = ()
    """Sentences about settings that are allowed but rarely intended."""
    file: Path | None = None
    worker: int | None = None
    """Which of several workers this is for; None if there is one, or for what concerns all of them."""

    @property
    def sink(self) -> SinkSection:
        """Where rows go; PolicyError for a policy with [sanitize]."""
        if self.written_sink is None:
            raise PolicyError("[sink]: is missing; this policy has [sanitize], so run it with: shoal sanitize")
        return self.written_sink

    @property
    def message_source(self) -> MessageSource:
        """The source, for what works with messages only."""
        assert isinstance(self.source, MessageSource)
        return self.source

    @property
    def message_sink(self) -> MessageSink:
        """The sink, for what works with messages only."""
        assert isinstance(self.sink, MessageSink)
        return self.sink

    @property
    def file_source(self) -> FileSource:
        """The source, for what works with files only."""
        if not isinstance(self.source, FileSource):
            raise PolicyError("[source] kind: this command or method reads files only; name files")
        return self.source

    @property
    def file_sink(self) -> FileSink:
        """The sink, for what works with files only."""
        if not isinstance(self.sink, FileSink):
            raise PolicyError("[sink] kind: this command or method writes files only; name a file")
        return self.sink

    def fingerprint(self, *sections: str) -> str:
        """A hash of the policy, hierarchies included; of some sections only, if named.

        Comments, layout, the order of keys, explicit defaults and the folder of the policy do not matter.
        """
        content = {name: self._plain_section(name) for name in sections or _SECTIONS}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=32, person=b"shoal-policy-1").hexdigest()

    def parameters(self) -> dict[str, Any]:
        """Keyword arguments of the method, hierarchies included, without the key."""
        return self.anonymize.parameters(self.stream, self.hierarchies)

    def _plain_section(self, name: str) -> Any:
        section = _plain(self.written_sink if name == "sink" else getattr(self, name))
        if name != "anonymize":
            return section
        # What a hierarchy holds counts, not how it is described.
        trees = {column: hierarchy.to_dict() for column, hierarchy in self.hierarchies.items()}
        return {"method": _without_hierarchies(section), "hierarchies": trees}


_SECTIONS: Final = ("stream", "source", "anonymize", "sink", "dead_letters", "trace", "checkpoint", "sanitize")


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return _plain(value.plain_fields())
    if isinstance(value, DeadLetters):
        where = {"path": _plain(value.path)} if value.file is not None else {"name": value.name}
        return {**where, "keep_rows": value.keep_rows}
    if isinstance(value, Location):
        return value.text
    if isinstance(value, Duration):
        return {"ns": int(value)}
    if isinstance(value, Mapping):
        return {key: _plain(below) for key, below in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value


def _without_hierarchies(content: Any) -> Any:
    if not isinstance(content, dict):
        return content
    return {key: _without_hierarchies(below) for key, below in content.items() if key not in ("hierarchy", "ontology")}
