"""Topics of Kafka as the output of a stream: what a commit names is published in one transaction, by the driver.

The transaction holds the rows and the dead letters of a micro-batch, and the name of its attempt. A micro-batch that is
repeated after a crash is produced again from the same files; messages that the topic holds already are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.crypto.keys import Secret
from shoal.encode.parquet import ParquetEncoder
from shoal.pipeline.dead_letters import LETTERS
from shoal.pipeline.live.wiring import make_live_sinks
from shoal.policy import Policy
from shoal.sinks.base import Sink
from shoal.spark.dead_letters import Letter
from shoal.spark.records.part_writer import PartWriter
from shoal.spark.streams.release_folder import Staging
from shoal.spark.streams.state import Commit
from shoal.spark.summary import shows_suppressed

_MESSAGES: Final = "messages"
"""In a commit: the numbers of the first message and behind the last one, of rows and of letters."""


class TopicOutput:
    """The topic of a policy's sink, and that of its dead letters."""

    def __init__(self, policy: Policy, folder: Path, secret: Secret) -> None:
        self._sinks, self._staging = make_live_sinks(policy), Staging(policy, folder, secret)
        self.shows_suppressed = shows_suppressed(policy)
        self._published: tuple[str, ...] = ()
        self._is_open = False

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that all machines must share: only that of the state."""
        return ()

    def start(self, last: Commit | None) -> None:
        """Shut out an earlier process, and read what it has published."""
        self._published = self._sinks.rows.published()

    def writer(self, attempt: str, published: pa.Schema) -> PartWriter:
        """Writes rows, hidden."""
        return PartWriter(self._staging.hidden(attempt), ParquetEncoder(), published)

    def trace(self, batch: int, attempt: str) -> Path | None:
        """The file for the trace, hidden."""
        return self._staging.trace(attempt)

    def stage(self, batch: int, attempt: str, letters: list[Letter], before: Commit | None) -> dict[str, Any]:
        """Write the dead letters, hidden; count the messages."""
        found = self._staging.stage(attempt, letters, before)
        rows = sum(pq.read_metadata(path).num_rows for path in self._parts(attempt))
        counts = {"rows": rows, "letters": len(letters)}
        earlier = before.more.get(_MESSAGES, {}) if before else {}
        starts = {name: earlier.get(name, (0, 0))[1] for name in counts}
        return {**found, _MESSAGES: {name: (start, start + counts[name]) for name, start in starts.items()}}

    def show(self, commit: Commit) -> None:
        """Publish rows and letters in one transaction, unless that was done."""
        parts = self._parts(commit.attempt)
        if not parts:
            return
        if not self._is_open:
            self._open(commit, pq.read_schema(parts[0]))
        for path in parts:
            for batch in pq.ParquetFile(path).iter_batches():
                self._sinks.rows.write(batch)
        if self._sinks.letters is not None:
            lines = self._staging.letters_file(commit.attempt)
            texts = lines.read_text().splitlines() if lines.exists() else []
            self._sinks.letters.write(pa.record_batch([pa.array(texts, pa.string())], schema=LETTERS))
        for sink in self._each:
            sink.commit(commit.batch)
        for sink in self._each:
            sink.publish(commit.attempt)
        self._staging.grow(commit)
        self._staging.clean()

    def _open(self, commit: Commit, schema: pa.Schema) -> None:
        is_first = all(start == 0 for start, _ in commit.more[_MESSAGES].values())
        for name, sink, kind in (("rows", self._sinks.rows, schema), ("letters", self._sinks.letters, LETTERS)):
            if sink is None:
                continue
            if is_first and commit.attempt not in self._published:
                sink.open(kind)
            else:
                sink.recover(kind, {_MESSAGES: commit.more[_MESSAGES][name][0]})
        self._is_open = True

    @property
    def _each(self) -> list[Sink]:
        return [sink for sink in self._sinks if sink is not None]

    def _parts(self, attempt: str) -> list[Path]:
        return sorted(self._staging.hidden(attempt).glob("part-*.parquet"))

    def close(self) -> None:
        """Undo what was not published, and close the connection."""
        for sink in self._each:
            sink.close()
