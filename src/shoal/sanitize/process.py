"""The sanitization process: from a source to an internal store with decoys and an anonymized external store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from glob import escape
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

from shoal.crypto.keys import secret_from_file
from shoal.crypto.private_files import only_one
from shoal.errors import PolicyError, StoreError, VaultError
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.checks.identifying import CarryCheck
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.warmup import WorkClock, must_compile, timed_compiling
from shoal.pipeline.wiring import make_anonymizer, make_file_source
from shoal.policy import Policy, load_policy
from shoal.sanitize.audit import audit_stores
from shoal.sanitize.intake import Intake
from shoal.sanitize.keyring import destroy_run_key, rotate_keyring, run_key_path
from shoal.sanitize.publish import Publisher
from shoal.sanitize.workspace import RUNS, TEMPORARY, Workspace, master_key


@dataclass
class SanitizeSummary:
    """What one call did, and the state of the stores: counts, never values."""

    read: int = 0
    published: int = 0
    dead: int = 0
    seconds: float = 0.0
    """Without `compiling_seconds`."""
    compiling_seconds: float = 0.0
    cleared: int = 0
    status: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)


class Sanitizer:
    """The process of a policy with [sanitize].

    Examples
    --------
    ``Sanitizer.from_policy("policy.toml").run()`` reads new records, fills both stores and returns a summary; called
    again after a crash it continues, called again with more input it reads that, too.
    """

    def __init__(self, policy: Policy) -> None:
        if policy.sanitize is None:
            raise PolicyError("[sanitize]: is missing; add this section, or use: shoal run")
        self.policy = policy
        self.reach: Callable[[str], None] = lambda _: None
        """Called with the name of every step; tests interrupt the process there."""

    @classmethod
    def from_policy(cls, path: str | PathLike[str]) -> Self:
        """Read and check a policy file."""
        return cls(load_policy(path))

    def run(
        self,
        observer: Observer | None = None,
        *,
        now: float | None = None,
        whole_lines: bool = False,
        audit: bool = True,
    ) -> SanitizeSummary:
        """Ingest new records, publish, and clear expired runs.

        `now` is the current time in seconds for clearing; by default the clock's. `whole_lines` ignores the last
        line of a text file until it has a line end.
        """
        observer = observer or Observer()
        with timed_compiling() as compiling, self._open() as workspace, self._working(workspace) as (intake, publisher):
            clock = WorkClock(compiling)
            if must_compile(self.policy.anonymize.METHOD):
                observer.compiling()
            if not intake.progress.arrived:
                self._check_carried(intake, observer, whole_lines=whole_lines)
            before = (publisher.state.published, publisher.state.dead + intake.progress.dead)
            read = intake.read(
                lambda rows: observer.progress(_progress(rows, publisher, clock.seconds)), whole_lines=whole_lines
            )
            publisher.restore()
            for _ in publisher.publish_all(_ns(now)):
                observer.progress(_progress(intake.progress.arrived, publisher, clock.seconds))
            cleared = clear_runs(workspace, _ns(now), publisher.state.consumed)
            if audit and (publisher.state.published > before[0] or publisher.state.audit == "never"):
                self._audit(workspace, publisher)
            return SanitizeSummary(
                read=read,
                published=publisher.state.published - before[0],
                dead=publisher.state.dead + intake.progress.dead - before[1],
                seconds=clock.seconds,
                compiling_seconds=clock.compiling_seconds,
                cleared=len(cleared),
                status=_status(workspace, intake, publisher),
            )

    def follow(
        self, wait: Callable[[], bool], observer: Observer | None = None, *, done: Callable[[SanitizeSummary], None]
    ) -> None:
        """Run repeatedly; `wait` blocks and returns whether to continue. Unfinished lines are read when they end."""
        while True:
            done(self.run(observer, whole_lines=True, audit=False))
            if not wait():
                return

    def status(self) -> dict[str, Any]:
        """Return the state of each store."""
        with self._open(create=False) as workspace, self._working(workspace) as (intake, publisher):
            return _status(workspace, intake, publisher)

    def clear(self, *, now: float | None = None) -> int:
        """Clear temporary rows and keys that have expired at `now` (in seconds); return the number of runs."""
        with self._open(create=False) as workspace, self._working(workspace) as (_, publisher):
            return len(clear_runs(workspace, _ns(now), publisher.state.consumed))

    def rotate_key(self, new: str | Path) -> None:
        """Replace the master key by the one in another file; the old one opens nothing any more."""
        section = self.policy.sanitize
        assert section is not None, "checked in __init__"
        old, sealed = master_key(), section.sealed.path
        with only_one(sealed.with_name(sealed.name + ".lock")):
            rotate_keyring(sealed.with_name(sealed.name + ".keys"), old, secret_from_file(new))

    def _open(self, *, create: bool = True) -> Workspace:
        workspace = Workspace(self.policy, create=create)
        workspace.reach = self.reach
        return workspace

    @contextmanager
    def _working(self, workspace: Workspace) -> Iterator[tuple[Intake, Publisher]]:
        anonymizer = make_anonymizer(self.policy, workspace.ring.sealer("anonymizer"))
        letters = DeadLetters(self.policy.dead_letters.path.path)
        intake = Intake(workspace, anonymizer, letters)
        publisher = Publisher(workspace, anonymizer, letters, intake)
        if publisher.state.consumed > intake.progress.batch:
            raise StoreError(
                f"{workspace.internal.name}: is older than {workspace.external.name}, which has published more; "
                "restore the newer one"
            )
        # Both stores record the file's length; the larger one is of the last transaction.
        letters.open(max(intake.progress.letters or 0, publisher.state.letters or 0))
        try:
            yield intake, publisher
        finally:
            letters.close()

    def _check_carried(self, intake: Intake, observer: Observer, *, whole_lines: bool) -> None:
        """Refuse identifying carried columns before the first record is read."""
        source = make_file_source(self.policy, intake.files(whole_lines=whole_lines))
        for sentence in CarryCheck(self.policy).before_run(source):
            observer.warn(sentence)

    def _audit(self, workspace: Workspace, publisher: Publisher) -> None:
        publisher.state.audit = audit_stores(workspace, publisher.state.consumed)
        with workspace.external.transaction():
            workspace.write_note(workspace.external, "state", vars(publisher.state))


def _status(workspace: Workspace, intake: Intake, publisher: Publisher) -> dict[str, Any]:
    """Return counts. Real records and decoys are one number: the status must not reveal how many are real."""
    schema, state = workspace.schema_of(workspace.internal), publisher.state
    kept = workspace.temporary.execute(f"SELECT count(*), min(made) FROM {workspace.temporary.place(RUNS)}")[0]
    return {
        "internal": {
            "store": workspace.internal.name,
            "records": workspace.internal.count(workspace.records(schema)) if schema else 0,
        },
        "temporary": {
            "store": workspace.temporary.name,
            "batches": workspace.temporary.count(TEMPORARY),
            "runs": int(kept[0]),
            "oldest": None if kept[1] is None else int(kept[1]) // 1_000_000_000,
        },
        "external": {"store": workspace.external.name, "published": state.published},
        "waiting_batches": intake.progress.batch - state.consumed,
        "pending": state.pending,
        "suppressed": state.suppressed,
        "dead": state.dead + intake.progress.dead,
        "audit": state.audit,
    }


def _progress(rows: int, publisher: Publisher, seconds: float) -> RunSummary:
    state = publisher.state
    return RunSummary(
        rows_in=rows,
        released=state.published,
        suppressed=state.suppressed,
        dead=state.dead,
        seconds=seconds,
        rows_per_second=rows / seconds if seconds else 0.0,
    )


def _ns(now: float | None) -> int:
    return time.time_ns() if now is None else round(now * 1e9)


_SAMPLED: Final = slice(64, 128)
"""A sample of a row's ciphertext, which must not be found after clearing."""


def clear_runs(workspace: Workspace, now_ns: int, consumed: int) -> list[str]:
    """Clear expired runs: delete their temporary rows and keys, and check that both are gone; return their names."""
    _destroy_strays(workspace)
    cleared = []
    for run, made in workspace.temporary.execute(
        f"SELECT run, made FROM {workspace.temporary.place(RUNS)} ORDER BY run"
    ):
        pending = workspace.temporary.count(TEMPORARY, "run = ? AND batch > ?", (run, consumed))
        if made + workspace.section.keep.ns <= now_ns and not pending:
            _clear_run(workspace, str(run))
            cleared.append(str(run))
    return cleared


def _destroy_strays(workspace: Workspace) -> None:
    """Destroy keys of runs that died before they had rows; no other process is running."""
    known = {str(run) for (run,) in workspace.temporary.execute(f"SELECT run FROM {workspace.temporary.place(RUNS)}")}
    for path in workspace.sealed.parent.glob(f"{escape(workspace.sealed.name)}.run-*.key*"):
        run = path.name.removeprefix(f"{workspace.sealed.name}.run-").partition(".")[0]
        if run not in known or path.suffix == ".tmp":
            destroy_run_key(path)


def _clear_run(workspace: Workspace, run: str) -> None:
    store = workspace.temporary
    contents = store.execute(f"SELECT content FROM {store.place(TEMPORARY)} WHERE run = ?", (run,))
    samples = [bytes(content)[_SAMPLED] for (content,) in contents]
    with store.transaction():
        store.delete(TEMPORARY, "run = ?", (run,))
    store.compact(TEMPORARY)
    workspace.reach("cleared-rows")
    path = run_key_path(workspace.sealed.parent, workspace.sealed.name, run)
    destroy_run_key(path)
    workspace.reach("cleared-key")
    if store.count(TEMPORARY, "run = ?", (run,)) or store.holds(samples):
        raise StoreError(f"{store.name}: temporary rows still exist after clearing; remove the store by hand")
    if path.exists():
        raise VaultError(f"{path}: the key of a cleared run still exists; remove it by hand")
    with store.transaction():
        store.delete(RUNS, "run = ?", (run,))
