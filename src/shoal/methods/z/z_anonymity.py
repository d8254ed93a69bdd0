"""z-anonymity: publish an event at once if at least z people did the same within the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from shoal.crypto.keys import Secret, as_secret
from shoal.errors import InputError, PolicyError
from shoal.hierarchies import Hierarchy
from shoal.kernels import clock as clock_kernel
from shoal.methods.arrow_input import plain
from shoal.methods.base import StreamMethod
from shoal.methods.release import Release
from shoal.methods.text_keys import Ints
from shoal.methods.z.admission import Admitted, Clock
from shoal.methods.z.crowds.columns import OnPrivate, Residual
from shoal.methods.z.engine import ZEngine
from shoal.methods.z.epochs.closing import (
    ClosedEpoch,
    Ending,
    EpochEvents,
    combine_epoch,
    follow_epoch,
    follow_values,
)
from shoal.methods.z.settings import ZSettings
from shoal.methods.z.shards import join, owners_of_values, read_admitted, split
from shoal.methods.z.trace import Decisions
from shoal.models.z.target.controller import EpochOutcome
from shoal.models.z.target.epoch_needs import Lesson
from shoal.models.z.target.target import KTarget
from shoal.times import EARLIEST, now_ns


class ZAnonymity(StreamMethod):
    """Publish an event at once if at least z different people exposed the same value within the window.

    **Promise.** Every value published at time t was exposed by at least ``z`` different people, the row's own person
    among them, at times t' with ``t - window <= t' <= t``. People are counted, never events; the count is exact. With
    several attribute columns this holds for each column, not for the combination in one row.

    **Not protected** are people who can be singled out by the combination of all their published values (unless
    ``combine="k"``, see docs/guarantees), by the times and the order of rows, or across epochs by their behaviour or
    a carried column.

    Parameters
    ----------
    z
        The number of people who must have exposed a value, at least 1.
    window
        How far back they are counted: a duration such as ``"1h"``, or seconds. The window is closed.
    person, time, attribute
        Column names. ``attribute`` may be a table of columns, ``{"site": {"z": 20, "window": "1h"}, …}``; then private
        values are blanked, and a row is published unless all its values are private.
    hierarchy, on_private
        What to do with a private value: ``"drop"`` the row, ``"blank"`` the value, or ``"generalize"`` it up the
        hierarchy to the most specific label that passes.
    residual
        Who counts for a label when values are generalized: ``"strict"`` (the default) counts exposures that would be
        published at that label now, ``"loose"`` all that were not published below it.
    lateness
        How long events are buffered so that late ones can be sorted in. With 0 nothing is buffered, and an event older
        than the newest is refused.
    max_gap
        An event further ahead than this does not move time until a second person's event confirms it.
    rotation
        How long a pseudonym lasts; by default the (shortest) window.
    carry
        Columns that are published unchanged. They are not protected: a value that few people have singles them out.
        :func:`shoal.audit` measures them, and ``shoal run`` refuses such columns.
    target
        Instead of ``z``: a :class:`KTarget`. z then follows the stream, set again at every epoch's start, and values
        are withheld, so that a share of the people shown in an epoch is k-anonymous by all that was released of them.
        That is aimed at and measured, not promised; see docs/methods/z-following.md. ``take_changes()`` returns every z
        set, ``outcomes`` its results.
    combine, k
        With ``combine="k"`` and ``k=5`` rows wait to the end of their epoch, and values are removed until at least 5
        people share every set of values that a person shows in the epoch.
    key
        At least 16 secret bytes for pseudonyms and snapshots. By default those in the file that the environment
        variable ``SHOAL_KEY_FILE`` names, else random ones that end with the process.

    Examples
    --------
    A value is private until a second person shows it:

    >>> z = ZAnonymity(z=2, window="1h", person="user", time="ts", attribute="site", key=bytes(16))
    >>> z.push({"ts": 0, "user": "ann", "site": "a.example"})
    []
    >>> z.push({"ts": 60, "user": "bob", "site": "a.example"})
    [{'ts': 60, 'user': '...', 'site': 'a.example'}]
    >>> z.push({"ts": 4000, "user": "ann", "site": "a.example"})
    []
    >>> z.counts["suppressed"], z.counts["released"]
    (2, 1)

    With ``combine`` rows wait for the end of their epoch, and what only one person shows in addition is removed:

    >>> z = ZAnonymity(
    ...     z=1, window="1h", person="user", time="ts", attribute="site", combine="k", k=2, key=bytes(16)
    ... )
    >>> for ts, user, site in [(0, "ann", "a.example"), (1, "bob", "a.example"), (2, "bob", "b.example")]:
    ...     assert z.push({"ts": ts, "user": user, "site": site}) == []
    >>> [row["site"] for row in z.push({"ts": 3600, "user": "cat", "site": "c.example"})]
    ['a.example', 'a.example']

    References
    ----------
    Jha, Vassio, Trevisan, Leonardi, Mellia: Practical anonymization for data streams: z-anonymity and relation with
    k-anonymity. Performance Evaluation 159 (2023), doi:10.1016/j.peva.2022.102329; Algorithm 1.

    Notes
    -----
    One order of expiry for all attributes replaces the paper's list for each, which would keep idle attributes
    forever. Generalizing counts for a label only exposures that were not, and would not be now, released strictly below
    it: a simple count for each level can be undone by subtraction. Table keys are keyed 128-bit hashes; the guarantee
    page says what a collision would do.
    """

    method: ClassVar[str] = "z-anonymity"
    settings_class: ClassVar[type[ZSettings]] = ZSettings
    kernel: ClassVar[Any] = staticmethod(clock_kernel.admit)
    _settings: ZSettings
    _engine: ZEngine
    _is_apart: bool = False
    """Whether values are judged for epochs that another process closes."""
    _has_keys: bool = False
    """Whether that process follows the stream part by part."""

    def __init__(  # noqa: PLR0913 - the method's parameters, all by name
        self,
        *,
        z: int | None = None,
        window: str | float | None = None,
        person: str,
        time: str,
        attribute: str | Mapping[str, Mapping[str, Any]],
        hierarchy: Hierarchy | None = None,
        on_private: OnPrivate = "drop",
        residual: Residual | None = None,
        lateness: str | float = "0s",
        max_gap: str | float = "24h",
        rotation: str | float | None = None,
        carry: Sequence[str] = (),
        target: KTarget | None = None,
        combine: Literal["k"] | None = None,
        k: int | None = None,
        key: Secret | bytes | None = None,
    ) -> None:
        given = {
            "attribute": attribute, "z": z, "window": window, "on_private": on_private, "hierarchy": hierarchy,
            "residual": residual, "lateness": lateness, "max_gap": max_gap, "rotation": rotation, "target": target,
            "combine": combine, "k": k,
        }  # fmt: skip
        self._start(ZSettings.for_columns(person, time, carry, given), as_secret(key))

    def _make_engine(self, settings: ZSettings, secret: Secret) -> ZEngine:
        return ZEngine(settings, secret, is_apart=self._is_apart, has_keys=self._has_keys)

    @property
    def z(self) -> int | None:
        """The z in force; None where every column has its own."""
        if self._engine.follower is not None:
            return self._engine.follower.z
        return None if self._settings.is_table else self._engine.attributes[0].z

    # ---- the two steps of push_batch, for processes that share a stream

    def admit(self, batch: Any, *, refused: Sequence[int] = ()) -> Admitted:
        """Take the first step of :meth:`push_batch`: number records, move time, refuse what is late or unusable.

        ``push_batch(batch)`` is ``judge(admit(batch))``. One process admits a stream; any number of them may judge the
        parts that :meth:`split` makes of it, each with a method of its own. docs/architecture.md has an example.
        """
        with self._bound_batches(batch, refused) as batches:
            return self._engine.admit(batches)

    def admit_time(self, now: object) -> Admitted:
        """Take the first step of :meth:`advance`."""
        return self._engine.admission.admit_time(now_ns(now, name="now"))

    def admit_end(self) -> Admitted:
        """Take the first step of :meth:`flush`."""
        return self._engine.admission.admit_end()

    def refused(self, admitted: Admitted) -> pa.RecordBatch:
        """The trace of the records that :meth:`admit` refused, for dead letters."""
        return self._engine.refused(admitted)

    def split(self, admitted: Admitted, shards: int) -> list[Admitted]:
        """Assign what was admitted to shards by column and value; depends on key and settings, changes nothing."""
        self._require_shards()
        return split(admitted, shards, self._engine.attributes, self._engine.reader)

    def owners(self, batch: pa.RecordBatch, shards: int) -> Ints:
        """The shard that owns each value, a line for every attribute, -1 where a value is missing; as :meth:`split`."""
        columns = self._engine.attributes
        readings = [column.values.read(plain(batch.column(column.name))) for column in columns]
        return owners_of_values(columns, readings, shards)

    def read_admitted(self, batch: Any, numbers: Any, clock: Clock) -> Admitted:
        """Records that another process admitted and did not refuse, by number and in any order, and its clock."""
        self._require_shards()
        with self._bound_batches(batch, ()) as batches:
            return read_admitted(self._engine.reader, batches, np.asarray(numbers, dtype=np.int64), clock)

    def judge(self, admitted: Admitted) -> Release:
        """Take the second step: decide about every record whose turn has come, and publish those that pass."""
        schema, is_first = admitted.batch.schema, self._input_schema is None
        if schema != self._input_schema and (len(admitted) or (is_first and schema != self.input_schema)):
            self.bind(schema)
        return self._joined(self._engine.judge(admitted))

    def join(self, releases: Iterable[Release]) -> Release:
        """One release of those of all shards, by number of the record; changes nothing."""
        return join(releases, [column.name for column in self._engine.attributes])

    def _require_shards(self) -> None:
        option = "combine" if self._settings.k is not None else "target"
        if (self._settings.k is not None or self._settings.target is not None) and not self._is_apart:
            raise PolicyError(
                f"{option}: decides about all people of an epoch together, so it cannot be judged in shards; "
                "judge values with apart(), or run in one process"
            )

    # ---- combine and target: values are judged in shards, epochs are closed with the values of all shards

    def apart(self, *, has_keys: bool = False) -> ZAnonymity:
        """An empty method for a shard of a stream with combine or a target: it judges values and closes no epoch.

        Its releases are not for publishing. Their rows passed z (with a target: the lowest z there is), and their trace
        is for :func:`joined_values`, which joins what all shards say about the rows of an epoch. With a target,
        `has_keys` makes a trace for :meth:`follow_values`; without it, profiles of epochs are made of
        :meth:`take_peaks`.
        """
        made = ZAnonymity.__new__(ZAnonymity)
        made._is_apart, made._has_keys = True, has_keys  # noqa: SLF001 - the same class
        made._is_kept = True  # noqa: SLF001 - what is pending here is for the process that closes epochs to report
        made._start(self._settings, self._secret)  # noqa: SLF001
        return made

    def take_peaks(self, *, everything: bool = False) -> list[tuple[int, int, Ints]]:
        """With apart() and a target: the largest crowds behind (person, value) pairs, by stretch and epoch."""
        return [] if self._engine.sizes is None else self._engine.sizes.take_peaks(everything=everything)

    def close_epoch(self, values: Decisions, rows: pa.RecordBatch, clock: Clock, *, last: int) -> ClosedEpoch:
        """With combine: decide about rows of an epoch by a clock; `last` is the number after the last record's.

        All rows of the epoch are given if the clock closes it, else those that were judged by this clock.
        """
        combiner = self._engine.combiner
        assert combiner is not None, "only combine closes epochs"
        stretch = int(np.searchsorted(np.array(clock.restarts, dtype=np.int64), values.rows[0], side="right"))
        end_ns = combiner.epochs.end_of(int(values.times[0]))
        ending = Ending.of(clock, stretch, end_ns, lateness_ns=self._settings.lateness_ns, last=last)
        return combine_epoch(combiner, values, rows, ending)

    def follow_epoch(self, values: Decisions, rows: pa.RecordBatch, z: int) -> tuple[ClosedEpoch, int, int]:
        """With a target: decide about all rows of an epoch; how many people are shown, and k-anonymous."""
        follower, settings = self._engine.follower, self._settings
        assert follower is not None, "only a target follows"
        sets, names = follower.shown_sets(), (settings.person, [column.name for column in settings.attributes])
        end_ns = (int(values.times[0]) // settings.rotation_ns + 1) * settings.rotation_ns
        closed = follow_epoch(sets, values, rows, names, z=z, end_ns=end_ns)
        return closed, sets.shown, sets.anonymous

    def follow_values(self, stretches: Iterable[tuple[Decisions, pa.RecordBatch]]) -> list[ClosedEpoch]:
        """With a target: decide about the next rows of a stream; time starts over after each stretch but the last."""
        follower, settings, decided = self._engine.follower, self._settings, []
        assert follower is not None, "only a target follows"
        names = [column.name for column in settings.attributes]
        for number, (values, rows) in enumerate(stretches):
            if number:
                follower.forget()
            decided.append(follow_values(follower, values, rows, names))
        return decided

    def choose_z(self, stretches: Iterable[Iterable[EpochEvents]]) -> list[list[int]]:
        """With a target: z of every epoch of a stream; epochs are in order, and time starts over after each stretch."""
        follower, chosen = self._engine.follower, []
        assert follower is not None, "only a target chooses z"
        for epochs in stretches:
            follower.forget()
            chosen.append([follower.follow(epoch.first_ns, epoch.profile) for epoch in epochs])
        return chosen

    # ---- a z that follows the stream

    def learn(self, earlier: Any) -> int:
        """Begin with what an earlier stream of the same kind needed, such as the day before.

        Nothing of that stream is published. Needs ``KTarget(..., learn=True)``, and comes before the first record. z is
        then chosen from the second window on, and not only after it.

        Parameters
        ----------
        earlier
            A table or a batch with the columns of the stream (carried columns are not needed), or an iterator of them,
            in order of time. It should cover the times of day at which the stream begins.

        Returns
        -------
        int
            The number of epochs learnt from.
        """
        follower = self._engine.follower
        if follower is None or not follower.target.learn:
            raise PolicyError("target: learn is not set; give KTarget(..., learn=True)")
        if self.counts["pushed"]:
            raise InputError("learn: the stream has begun; learn before its first record")
        teacher = ZAnonymity.__new__(ZAnonymity)
        teacher._start(self._settings.without_carry(), self._secret)  # noqa: SLF001 - the same class
        lessons = teacher._taught(earlier if isinstance(earlier, Iterator) else iter([earlier]))  # noqa: SLF001
        if not lessons:
            raise InputError("learn: the earlier stream is too short; give at least a window and two epochs of it")
        follower.begin_with(lessons)
        return len(lessons)

    def _taught(self, batches: Iterator[Any]) -> tuple[Lesson, ...]:
        follower = self._engine.follower
        assert follower is not None, "learn asks for a target"
        follower.collect()
        for batch in batches:
            self.push_batch(batch)
        self.flush()
        return follower.collected(self._engine.admission.newest)

    @property
    def newest_ns(self) -> int | None:
        """The time of the stream; None before the first event."""
        newest = self._engine.admission.newest
        return newest if newest > EARLIEST else None

    @property
    def outcomes(self) -> tuple[EpochOutcome, ...]:
        """What z achieved in past epochs, the last thousand at most; empty where z is fixed."""
        return () if self._engine.follower is None else tuple(self._engine.follower.outcomes)

    @property
    def live_pairs(self) -> int:
        """(person, value) pairs inside the windows now: what the memory is for."""
        return sum(column.live_pairs for column in self._engine.attributes)
