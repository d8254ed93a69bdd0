"""The sanitization process: a source becomes an internal store with decoys and an external one without people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Self

from shoal.crypto.keys import secret_from_file
from shoal.crypto.private_files import only_one
from shoal.errors import PolicyError, StoreError
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.identifying import CarryCheck
from shoal.pipeline.warmup import WorkClock, must_compile, timed_compiling
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy, load_policy
from shoal.sanitize.audit import audit_stores
from shoal.sanitize.clearing import clear
from shoal.sanitize.intake import Intake
from shoal.sanitize.keyring import rotate_keyring
from shoal.sanitize.publish import Publisher
from shoal.sanitize.workspace import RUNS, TEMPORARY, House, master_key


@dataclass
class SanitizeSummary:
    """What one call did, and what is where now: counts, never values."""

    read: int = 0
    published: int = 0
    dead: int = 0
    seconds: float = 0.0
    """Without `compiling_seconds`."""
    compiling_seconds: float = 0.0
    cleared: int = 0
    status: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


class Sanitizer:
    """The process of a policy with [sanitize].

    Examples
    --------
    ``Sanitizer.from_policy("policy.toml").run()`` reads what is new, fills both stores and returns a summary; called
    again after a crash it goes on, called again with more input it takes that, too.
    """

    def __init__(self, policy: Policy) -> None:
        if policy.sanitize is None:
            raise PolicyError("[sanitize]: is missing; add this section, or use: shoal run")
        self.policy = policy
        self.reach: Callable[[str], None] = lambda _: None
        """Called at every step of the process, by its name; tests stop it there."""

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
        """Take in what is new, publish what may be, clear what is due.

        `now` is the time in seconds that clearing goes by, the clock's unless given. `whole_lines` leaves out the last
        line of a text file as long as it has no end.
        """
        observer = observer or Observer()
        with timed_compiling() as compiling, self._open() as house, self._working(house) as (intake, publisher):
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
            cleared = clear(house, _ns(now), publisher.state.consumed)
            if audit and (publisher.state.published > before[0] or publisher.state.audit == "never"):
                self._audit(house, publisher)
            return SanitizeSummary(
                read=read,
                published=publisher.state.published - before[0],
                dead=publisher.state.dead + intake.progress.dead - before[1],
                seconds=clock.seconds,
                compiling_seconds=clock.compiling_seconds,
                cleared=len(cleared),
                status=_status(house, intake, publisher),
            )

    def follow(
        self, wait: Callable[[], bool], observer: Observer | None = None, *, done: Callable[[SanitizeSummary], None]
    ) -> None:
        """Run again and again; `wait` says, when it returns, whether to go on. Unfinished lines wait for their end."""
        while True:
            done(self.run(observer, whole_lines=True, audit=False))
            if not wait():
                return

    def status(self) -> dict[str, Any]:
        """What is in each store."""
        with self._open(create=False) as house, self._working(house) as (intake, publisher):
            return _status(house, intake, publisher)

    def clear(self, *, now: float | None = None) -> int:
        """Clear the temporary rows and keys whose time has come at `now` (in seconds); give the number of runs."""
        with self._open(create=False) as house, self._working(house) as (_, publisher):
            return len(clear(house, _ns(now), publisher.state.consumed))

    def rotate_key(self, new: str | Path) -> None:
        """Have the key in another file open everything from now on, and the old one nothing."""
        section = self.policy.sanitize
        assert section is not None, "asked when it was made"
        old, sealed = master_key(), section.sealed.path
        with only_one(sealed.with_name(sealed.name + ".lock")):
            rotate_keyring(sealed.with_name(sealed.name + ".keys"), old, secret_from_file(new))

    def _open(self, *, create: bool = True) -> House:
        house = House(self.policy, create=create)
        house.reach = self.reach
        return house

    @contextmanager
    def _working(self, house: House) -> Iterator[tuple[Intake, Publisher]]:
        anonymizer = make_anonymizer(self.policy, house.ring.sealer("anonymizer"))
        letters = DeadLetters(self.policy.dead_letters.path.path)
        intake = Intake(house, anonymizer, letters)
        publisher = Publisher(house, anonymizer, letters, intake)
        if publisher.state.consumed > intake.progress.batch:
            raise StoreError(
                f"{house.internal.name}: is older than {house.external.name}, which has published more than is in it; "
                "restore the newer one"
            )
        # Both stores note how long the file was; the longer one is of the last transaction.
        letters.open(max(intake.progress.letters or 0, publisher.state.letters or 0))
        try:
            yield intake, publisher
        finally:
            letters.close()

    def _check_carried(self, intake: Intake, observer: Observer, *, whole_lines: bool) -> None:
        """Refuse carried columns that single people out, before the first record is read."""
        for sentence in CarryCheck(self.policy).on_files(intake.files(whole_lines=whole_lines)):
            observer.warn(sentence)

    def _audit(self, house: House, publisher: Publisher) -> None:
        publisher.state.audit = audit_stores(house, publisher.state.consumed)
        with house.external.transaction():
            house.write_note(house.external, "state", vars(publisher.state))


def _status(house: House, intake: Intake, publisher: Publisher) -> dict[str, Any]:
    """Counts only. Real records and decoys are one number: whoever sees the status need not know how many are real."""
    schema, state = house.schema_of(house.internal), publisher.state
    kept = house.temporary.execute(f"SELECT count(*), min(made) FROM {RUNS.name}")[0]
    return {
        "internal": {
            "store": house.internal.name,
            "records": house.internal.count(house.records(schema)) if schema else 0,
        },
        "temporary": {
            "store": house.temporary.name,
            "batches": house.temporary.count(TEMPORARY),
            "runs": int(kept[0]),
            "oldest": None if kept[1] is None else int(kept[1]) // 1_000_000_000,
        },
        "external": {"store": house.external.name, "published": state.published},
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
