"""target on Spark: shards count the people behind values, the driver chooses z epoch by epoch, ranges apply it.

Every z is chosen by what all z would have shown in earlier epochs. A task makes this profile of an epoch from the
largest crowds behind the pairs of people and values, which all shards send to it; only profiles reach the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.snapshots import pack_state, unpack_state
from shoal.methods.release import IS_DEAD, IS_RELEASED, IS_SUPPRESSED
from shoal.methods.z.admission import Clock
from shoal.methods.z.epochs.closing import EpochEvents
from shoal.methods.z.epochs.follower import EpochPeaks, epochs_in, profile_of, quarters_of
from shoal.models.z.target.epoch_needs import QUARTERS, EpochProfile
from shoal.models.z.windows import SetCurve
from shoal.spark.blocks import OpenBlocks, one_row, unpacked
from shoal.spark.frames import mapped
from shoal.spark.recipe import Recipe
from shoal.spark.z.pieces import CROWD
from shoal.spark.z.values import EPOCH, PEAKS, STRETCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = npt.NDArray[np.int64]
Trace = dict[str, npt.NDArray[Any]]
_STATE: Final = "_shoal_state"
_COUNTED: Final = pa.schema([(STRETCH, pa.int32()), (EPOCH, pa.int64()), (_STATE, pa.binary())])


@dataclass(frozen=True, slots=True)
class CountEvents:
    """Counts the events of a block by epoch and quarter, and finds the first event of each epoch."""

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
                    quarters = quarters_of(own[part], first // rotation_ns, rotation_ns)
                    state = pack_state({}, {"first": np.array([first]), "quarters": quarters})
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
            made = profile_of(epoch, peaks, np.zeros(QUARTERS, np.int64), self.k, keeps_blank=self.keeps_blank)
            arrays = {
                "people": np.array([made.people]), "thresholds": made.curve.thresholds, "shown": made.curve.shown,
                "anonymous": made.curve.anonymous,
            }  # fmt: skip
            yield one_row(_COUNTED, {STRETCH: stretch, EPOCH: epoch, _STATE: pack_state({}, arrays)})


def _place(message: pa.RecordBatch) -> tuple[int, int]:
    return message.column(STRETCH)[0].as_py(), message.column(EPOCH)[0].as_py()


@dataclass(frozen=True, slots=True)
class ChosenZ:
    """The z of every epoch, and which rows it releases; runs on executors."""

    z: Mapping[tuple[int, int], int]
    """By stretch and epoch."""
    rotation_ns: int
    attributes: tuple[str, ...]
    keeps_blank: bool

    def __call__(self, trace: Trace, rows: pa.RecordBatch) -> tuple[Trace, pa.RecordBatch]:
        """Decide about records by the people behind their values; shards passed all that the lowest z would release."""
        verdicts = trace["verdict"].copy()
        z = self._in_force(trace, verdicts != IS_DEAD)
        sizes = [trace.get(f"{CROWD}{at}", np.zeros(len(z), np.int64)) for at in range(len(self.attributes))]
        passes = [(size >= z) & (verdicts != IS_DEAD) for size in sizes]
        shown = (verdicts == IS_RELEASED) & (np.logical_or.reduce(passes) | self.keeps_blank)
        places = (np.cumsum(verdicts == IS_RELEASED) - 1)[shown]
        kept = rows.take(pa.array(places))
        for name, passed in zip(self.attributes, passes, strict=True):
            at = rows.schema.get_field_index(name)
            cells = rows.column(at).take(pa.array(places, mask=~passed[shown]))
            kept = kept.set_column(at, rows.schema.field(at), cells)
        verdicts[(verdicts == IS_RELEASED) & ~shown] = IS_SUPPRESSED
        return {**trace, "verdict": verdicts, "z": z}, kept

    def _in_force(self, trace: Trace, judged: npt.NDArray[np.bool_]) -> Ints:
        """The z of every record; -1 for those that are refused."""
        found = np.full(len(judged), -1, dtype=np.int64)
        if judged.any():
            places = np.stack((trace["stretch"][judged], trace["time"][judged] // self.rotation_ns))
            kinds, of = np.unique(places, axis=1, return_inverse=True)
            found[judged] = np.array([self.z[stretch, epoch] for stretch, epoch in kinds.T.tolist()])[of.ravel()]
        return found


def chosen_z(method: Any, counted: DataFrame, profiles: DataFrame, clock: Clock) -> ChosenZ:
    """Choose z for all epochs, one after another, on the driver; `method` remembers the outcomes."""
    settings, events, curves = method.settings, _by_epoch(counted), _by_epoch(profiles)
    stretches: list[list[EpochEvents]] = [[] for _ in range(len(clock.restarts) + 1)]
    judged = []
    for stretch, epoch in sorted(events):
        parts = events[stretch, epoch]
        first = min(int(part["first"][0]) for part in parts)
        if not _is_judged(clock, stretch, first, settings.lateness_ns):
            continue
        quarters = np.sum([part["quarters"] for part in parts], axis=0)
        known = curves.get((stretch, epoch))
        if known is None:  # no event has a value
            profile = profile_of(epoch, EpochPeaks(), quarters, settings.target.k, keeps_blank=keeps_blank(settings))
        else:
            curve = SetCurve(*(known[0][name] for name in ("thresholds", "shown", "anonymous")))
            profile = EpochProfile(epoch, int(known[0]["people"][0]), curve, quarters)
        stretches[stretch].append(EpochEvents(first, profile))
        judged.append((stretch, epoch))
    chosen = [z for epochs in method.choose_z(stretches) for z in epochs]
    names = tuple(column.name for column in settings.attributes)
    return ChosenZ(dict(zip(judged, chosen, strict=True)), settings.rotation_ns, names, keeps_blank(settings))


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
    """The events of all epochs, by block."""
    return mapped(heads, CountEvents(recipe, opening, admission), _COUNTED)


def profiles_of(peaks: DataFrame, method: Any) -> DataFrame:
    """The profiles of epochs; the crowds of an epoch are in one partition, one epoch after another."""
    settings = method.settings
    return mapped(peaks, ProfileEpochs(settings.target.k, keeps_blank(settings)), _COUNTED)
