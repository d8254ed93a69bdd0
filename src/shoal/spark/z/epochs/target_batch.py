"""target on Spark: how the driver chooses z epoch by epoch, by what shards counted.

Every z is chosen by what all z would have shown in earlier epochs. A task makes this profile of an epoch from the
largest crowds behind the pairs of people and values, which all shards send to it; only profiles reach the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from shoal.crypto.snapshots import pack_state, unpack_state
from shoal.methods.z.admission import Clock
from shoal.methods.z.epochs.closing import EpochEvents
from shoal.methods.z.epochs.follower import epochs_in, profile_of
from shoal.methods.z.epochs.peaks import EpochPeaks
from shoal.models.z.target.epoch_needs import EpochProfile
from shoal.models.z.windows import SetCurve
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import OpenBlocks, one_row, unpacked
from shoal.spark.records.frames import mapped
from shoal.spark.z.epochs.value_shard import EPOCH, PEAKS, STRETCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATE: Final = "_shoal_state"
_COUNTED: Final = pa.schema([(STRETCH, pa.int32()), (EPOCH, pa.int64()), (_STATE, pa.binary())])


@dataclass(frozen=True, slots=True)
class CountEvents:
    """Finds the first event of each epoch in a block."""

    recipe: Recipe
    opening: OpenBlocks
    admission: Any
    """Broadcast: what admission found out."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole: Any = self.recipe.make()
        method, found = whole.apart(), self.admission.value
        method.bind(self.opening.types)
        rotation_ns = method.settings.rotation_ns
        for block in self.opening.heads(batches):
            kept = ~np.isin(block.rows, found.refused)
            numbers = block.rows[kept]
            rows = block.batch.filter(pa.array(kept))
            times = method.read_admitted(rows, numbers, found.clock).times
            stretches = np.searchsorted(np.array(found.clock.restarts, dtype=np.int64), numbers, side="right")
            for stretch in np.unique(stretches).tolist():
                own = np.sort(times[stretches == stretch])
                for part in epochs_in(own, np.arange(len(own)), rotation_ns):
                    first = int(own[part.start])
                    state = pack_state({}, {"first": np.array([first])})
                    yield one_row(_COUNTED, {STRETCH: stretch, EPOCH: first // rotation_ns, _STATE: state})


@dataclass(frozen=True, slots=True)
class ProfileEpochs:
    """Makes the profiles of epochs on an executor, one after another; the crowds of each come together."""

    k: int
    keeps_blank: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = (batch.slice(at, 1) for batch in batches for at in range(batch.num_rows))
        for (stretch, epoch), own in groupby(messages, key=_place):
            peaks = EpochPeaks()
            for message in own:
                person, value, peak = (np.asarray(column) for column in unpacked(message.column(PEAKS)[0]).columns)
                peaks.note(person[:, np.newaxis], value[:, np.newaxis], peak)
            made = _profile(epoch, peaks, self.k, keeps_blank=self.keeps_blank)
            arrays = {
                "people": np.array([made.people]), "thresholds": made.curve.thresholds, "shown": made.curve.shown,
                "anonymous": made.curve.anonymous,
            }  # fmt: skip
            yield one_row(_COUNTED, {STRETCH: stretch, EPOCH: epoch, _STATE: pack_state({}, arrays)})


def _place(message: pa.RecordBatch) -> tuple[int, int]:
    return message.column(STRETCH)[0].as_py(), message.column(EPOCH)[0].as_py()


@dataclass(frozen=True, slots=True)
class FollowedEpochs:
    """The epochs of a stream, by stretches of its time, and the z of each."""

    z: Mapping[tuple[int, int], int]
    """By stretch and epoch."""
    epochs: tuple[tuple[EpochEvents, ...], ...]

    def metrics(self, method: Any, shown: Mapping[tuple[int, int], tuple[int, int]]) -> dict[str, Any]:
        """How epochs went, by the people shown and k-anonymous in each, as one machine counts it."""
        method.choose_z(
            [_with_shown(one, shown.get((stretch, one.profile.epoch), (0, 0))) for one in epochs]
            for stretch, epochs in enumerate(self.epochs)
        )
        found: dict[str, Any] = method.metrics
        return found


def _with_shown(events: EpochEvents, shown: tuple[int, int]) -> EpochEvents:
    return replace(events, profile=replace(events.profile, shown=shown[0], anonymous=shown[1]))


def followed_epochs(method: Any, counted: DataFrame, profiles: DataFrame, clock: Clock) -> FollowedEpochs:
    """Choose z for all epochs, one after another, on the driver."""
    settings, events, curves = method.settings, _by_epoch(counted), _by_epoch(profiles)
    stretches: list[list[EpochEvents]] = [[] for _ in range(len(clock.restarts) + 1)]
    judged = []
    for stretch, epoch in sorted(events):
        first = min(int(part["first"][0]) for part in events[stretch, epoch])
        if not _is_judged(clock, stretch, first, settings.lateness_ns):
            continue
        known = curves.get((stretch, epoch))
        if known is None:  # no event has a value
            profile = _profile(epoch, EpochPeaks(), settings.target.k, keeps_blank=keeps_blank(settings))
        else:
            curve = SetCurve(*(known[0][name] for name in ("thresholds", "shown", "anonymous")))
            profile = EpochProfile(epoch, int(known[0]["people"][0]), curve, 0, 0)
        stretches[stretch].append(EpochEvents(first, profile))
        judged.append((stretch, epoch))
    chosen = [z for epochs in method.choose_z(stretches) for z in epochs]
    return FollowedEpochs(dict(zip(judged, chosen, strict=True)), tuple(map(tuple, stretches)))


def _profile(epoch: int, peaks: EpochPeaks, k: int, *, keeps_blank: bool) -> EpochProfile:
    """The profile of an epoch whose rows are decided elsewhere."""
    return profile_of(epoch, peaks.pairs(), k, keeps_blank=keeps_blank, shown=0, anonymous=0)


def _is_judged(clock: Clock, stretch: int, time: int, lateness_ns: int) -> bool:
    """Whether an event was judged before time started over."""
    own = clock.stretches()[stretch]
    return stretch == len(clock.restarts) or time <= int(own.newest[-1]) - lateness_ns


def keeps_blank(settings: Any) -> bool:
    """Whether a row is published without its value if that is private."""
    return not settings.is_table and settings.attributes[0].on_private == "blank"


def _by_epoch(frame: DataFrame) -> dict[tuple[int, int], list[Any]]:
    found: dict[tuple[int, int], list[Any]] = {}
    for stretch, epoch, state in frame.collect():
        found.setdefault((stretch, epoch), []).append(unpack_state(bytes(state)).arrays)
    return found


def counted_events(heads: DataFrame, recipe: Recipe, opening: OpenBlocks, admission: Any) -> DataFrame:
    """The first events of all epochs, by block."""
    return mapped(heads, CountEvents(recipe, opening, admission), _COUNTED)


def profiles_of(peaks: DataFrame, method: Any) -> DataFrame:
    """The profiles of epochs; the crowds of an epoch are in one partition, one epoch after another."""
    settings = method.settings
    return mapped(peaks, ProfileEpochs(settings.target.k, keeps_blank(settings)), _COUNTED)
