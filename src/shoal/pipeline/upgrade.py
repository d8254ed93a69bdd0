"""A changed policy on a stream that goes on: keep the state if it fits, else decide pending records as promised.

An upgrade continues at the position of the last checkpoint. If method and settings are unchanged, the state is kept.
Otherwise everything pending is decided as the old policy promised, and the method of the new policy starts over with
the next record. Nothing is read twice or left out. The key may change too: `SHOAL_OLD_KEY_FILE` then names the old one.

The decision to upgrade is recorded in a checkpoint before anything is flushed, so a killed upgrade can only be
completed, not forgotten.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from shoal.crypto.keys import old_secret_from_environment
from shoal.crypto.sealing import WrongKey
from shoal.errors import CheckpointError, InputError, VaultError
from shoal.methods.base import StreamMethod
from shoal.methods.registry import restore
from shoal.methods.release import Release
from shoal.observe.observer import Observer
from shoal.pipeline.checkpoints import Checkpoint, CheckpointFolder, Progress, require_same_sources
from shoal.pipeline.dead_letters import LetterWriter
from shoal.pipeline.key_changes import require_same_keys
from shoal.pipeline.learning import learn
from shoal.pipeline.outputs import Outputs, dead_trace
from shoal.pipeline.wiring import make_anonymizer, make_source
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink
from shoal.sources.base import Source

SECTIONS: Final = ("stream", "source", "anonymize", "sink", "dead_letters", "trace")
"""Sections of the policy that must be unchanged to resume a run."""
_CHANGEABLE: Final = ("stream", "anonymize")


def section_marks(policy: Policy) -> dict[str, str]:
    """A fingerprint of each section that a run depends on."""
    return {name: policy.fingerprint(name) for name in SECTIONS}


class Upgrade:
    """Brings the checkpoints of a stopped run to a changed policy; the run itself follows."""

    def __init__(
        self, policy: Policy, observer: Observer, source: Source | None = None, *, take_over: bool = False
    ) -> None:
        self._policy, self._observer, self._given_source = policy, observer, source
        self._takes_over = take_over
        self._mark = policy.fingerprint(*SECTIONS)

    def execute(self) -> None:
        """Upgrade if there is something to upgrade; report what is kept and why before anything changes."""
        if self._policy.checkpoint is None:
            raise CheckpointError("[checkpoint]: is missing; only a run with checkpoints can be upgraded")
        with ExitStack() as stack:
            path = self._policy.checkpoint.path.path
            self._folder = CheckpointFolder(path, warn=self._observer.warn, take_over=self._takes_over)
            stack.callback(self._folder.release)
            if self._policy.worker is not None:
                require_same_keys(path.parent, self._folder.secret, old=old_secret_from_environment())
            self._source = self._given_source or make_source(self._policy)
            stack.callback(self._source.close)
            self._outputs = Outputs(self._policy, resumable=True)
            stack.callback(self._outputs.close)
            decides = self._outputs.decides
            found = self._folder.load(self._outputs.published()) if decides else self._folder.latest()
            if found is not None and self._is_other(found.progress):
                self._require_possible(found.progress)
                self._upgrade(found)
            else:
                self._observer.warn("nothing to upgrade: there is no checkpoint of another policy or key")

    def _is_other(self, progress: Progress) -> bool:
        return progress.policy != self._mark or progress.upgrade_to is not None or self._folder.has_old_key

    def _require_possible(self, progress: Progress) -> None:
        """Refuse what would need more than a new state."""
        where = self._folder.path
        if progress.phase != "reading":
            raise CheckpointError(f"{where}: this run has ended; start the new policy with a new folder and output")
        if not progress.sections:
            raise CheckpointError(
                f"{where}: an earlier version of shoal wrote these checkpoints, which do not say what has changed; run "
                "the old policy once more, stop it, and upgrade then"
            )
        if progress.upgrade_to not in (None, self._mark):
            raise CheckpointError(f"{where}: an upgrade to another policy was begun; complete that one first")
        marks = section_marks(self._policy)
        self._changed = [name for name in SECTIONS if progress.sections.get(name) != marks[name]]
        others = [name for name in self._changed if name not in _CHANGEABLE]
        if others:
            raise CheckpointError(
                f"[{others[0]}]: has changed; --upgrade changes [stream] and [anonymize] only. Put it back, or start "
                "over with a new checkpoint folder and another place to write to"
            )
        require_same_sources(progress, self._source.identity())

    def _upgrade(self, found: Checkpoint) -> None:
        new = make_anonymizer(self._policy, self._folder.secret)
        old = self._restored(found.snapshot)
        keeps = self._can_restore(new, found.snapshot)
        missing = [name for name in new.columns if name not in old.columns]
        if missing:
            raise CheckpointError(
                f"column {missing[0]!r}: the new policy needs it, but the stream was not read with it; start over with "
                "a new checkpoint folder and another place to write to"
            )
        self._source.open(new.columns, found.progress.position)
        try:
            new.bind(self._source.schema)
        except InputError as error:
            raise InputError(f"{self._source.name}: {error}") from None
        if not keeps:
            learn(self._policy, new)
        self._require_same_columns(old, new)
        self._observer.warn(self._sentence(old, keeps=keeps))
        self._outputs.open(old, found.progress.receipts)
        if keeps:
            self._finish(found.snapshot, found.progress)
            return
        self._commit(found.snapshot, replace(found.progress, upgrade_to=self._mark))
        self._flush(old, found.progress)
        since = datetime.now(UTC).isoformat(timespec="seconds") if self._source.is_live else None
        rows = found.progress.rows_before + old.counts["pushed"]
        fresh = replace(self.progress, advance_to=None, upgrade_to=None, near={}, since=since, rows_before=rows)
        self._finish(new.snapshot(), fresh)

    def _restored(self, snapshot: bytes) -> StreamMethod:
        """The old method; an upgrade that was killed has sealed its state under the new key a second time."""
        try:
            return restore(snapshot, self._folder.opened_with)
        except WrongKey:
            return restore(snapshot, old_secret_from_environment() or self._folder.secret)

    def _can_restore(self, method: StreamMethod, snapshot: bytes) -> bool:
        try:
            method.restore(snapshot)
        except (CheckpointError, VaultError):
            return False
        return True

    def _require_same_columns(self, old: StreamMethod, new: StreamMethod) -> None:
        """Every message describes itself; a file has one header."""
        if old.output_schema != new.output_schema and not isinstance(self._policy.sink, MessageSink):
            raise CheckpointError(
                f"{self._policy.sink.name}: the columns of the output change, and a file has the same columns "
                "throughout; start over with a new checkpoint folder and another output"
            )
        if self._policy.trace is not None and old.trace_schema != new.trace_schema:
            raise CheckpointError(
                "[trace] path: the columns of the trace change, and a file has the same columns throughout; start over "
                "with a new checkpoint folder and another output"
            )

    def _sentence(self, old: StreamMethod, *, keeps: bool) -> str:
        what = " and ".join([*(f"[{name}]" for name in self._changed), *["the key"] * self._folder.has_old_key])
        if keeps:
            return f"upgrade: {what} changed, the method and its settings did not; its state is kept"
        pending = f"{old.pending:,} pending records are decided under the old promise ({old.guarantee.statement})"
        return f"upgrade: {what} changed; {pending}, then the method starts over with the next record"

    def _flush(self, old: StreamMethod, progress: Progress) -> None:
        """Decide what is pending, as the old policy would."""
        letters = LetterWriter(
            self._outputs.letters, self._source, old, sorts_rows=True, rows_before=progress.rows_before
        )
        releases: list[Release] = []
        if progress.advance_to is not None:  # this was recorded, and may have been shown
            releases.append(old.advance(np.datetime64(progress.advance_to, "ns")))
        for release in (*releases, old.flush()):
            self._outputs.write(release)
            letters.write(dead_trace(release), None, 0)

    def _finish(self, snapshot: bytes, progress: Progress) -> None:
        marks, later = section_marks(self._policy), self._folder.secret.later_marks
        self._commit(snapshot, replace(progress, policy=self._mark, sections=marks, later_keys=later))

    def _commit(self, snapshot: bytes, progress: Progress) -> None:
        self._folder.require_own()
        receipts = self._outputs.commit(progress.epoch)
        position = self._source.position
        self.progress = replace(progress, receipts=receipts, position=position, epoch=progress.epoch + 1)

        def show(name: str) -> None:
            self._outputs.publish(name)
            self._source.keep(position)

        self._folder.commit(Checkpoint(self.progress, snapshot), show, copies=1 if self._outputs.decides else 2)
