"""Releases as an attacker sees them, next to whose rows they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.reproduce.data.measurements import DEVICE, HOUR, NETWORK, PERSON, PLACE, SPEED, TIME, Measurements
from shoal.schema import Categorical

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
_KEY: Final = bytes(range(16))
"""Not secret: the study is the same in every run."""


@dataclass(frozen=True)
class Shown:
    """Rows as an attacker sees them, in the order of time, and whose they are."""

    name: str
    person: Ints
    place: Ints
    """A line of `places`."""
    places: Bools
    """By label and cell: whether the label covers the cell."""
    network: Ints
    device: Ints
    devices: Bools
    """By label and model."""
    begin: Ints
    """The first hour that the time covers, and the first one after it."""
    end: Ints
    speed: Floats
    has_pseudonyms: bool = False
    promised: tuple[int, int] | None = None
    """K and K_s."""

    def groups(self, *, with_device: bool) -> Ints:
        """A number for every row, equal where all labels are."""
        labels = [self.place, self.network, self.begin, self.end, *([self.device] if with_device else [])]
        return np.unique(np.stack(labels), axis=1, return_inverse=True)[1].ravel().astype(np.int64)

    def people_alike(self, *, with_device: bool) -> Ints:
        """For every row the number of people whose labels are equal."""
        group = self.groups(with_device=with_device)
        pairs = np.unique(np.stack((group, self.person)), axis=1)
        found: Ints = np.bincount(pairs[0], minlength=int(group.max(initial=-1)) + 1)[group]
        return found


@dataclass(frozen=True)
class Truth:
    """The measurements as numbers."""

    person: Ints
    cell: Ints
    model: Ints
    network: Ints
    hour: Ints
    speed: Floats
    cells: list[str]
    models: list[str]
    hours: int
    """Hours of the whole campaign."""

    @classmethod
    def of(cls, data: Measurements) -> Truth:
        """Number people, cells and models."""
        table = data.table
        person, _ = numbered(table[PERSON])
        cell, cells = numbered(table[PLACE])
        model, models = numbered(table[DEVICE])
        network, _ = numbered(table[NETWORK])
        hour = _hours(table[TIME], data.start)
        return cls(person, cell, model, network, hour, _speeds(table), cells, models, data.hours)


@dataclass(frozen=True)
class Release:
    """What was published, and how."""

    shown: Shown
    rows: pa.Table
    row: Ints
    """Row of the truth of each published row, in the order of `rows`."""
    pending: int
    loss: float | None
    """Of published rows; None where there are none."""
    k: int
    k_s: int
    shares: dict[str, float]
    """P(s) as calibrated, by column."""


def numbered(column: pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """Codes of a column, and what they stand for."""
    found = pc.dictionary_encode(column).combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0)
    return found.indices.to_numpy().astype(np.int64), found.dictionary.to_pylist()


def raw(truth: Truth, *, has_pseudonyms: bool) -> Shown:
    """The records themselves, without names."""
    name = "raw, pseudonyms" if has_pseudonyms else "pseudonyms removed"
    return Shown(
        name, truth.person, truth.cell, np.eye(len(truth.cells), dtype=np.bool_), truth.network, truth.model,
        np.eye(len(truth.models), dtype=np.bool_), truth.hour, truth.hour + 1, truth.speed, has_pseudonyms,
    )  # fmt: skip


def publish(data: Measurements, truth: Truth, k: int, *, name: str = "", **options: Any) -> Release:
    """Publish everything with flexible k-anonymity, with devices by the ontology."""
    made = FlexibleK(
        data.schema(device=Categorical(DEVICE)), data.ontology, k=k, sparse=[DEVICE], key=_KEY, **options
    )  # fmt: skip
    return _release(data, truth, made, name or f"k = {k}")


def publish_without_ontology(data: Measurements, truth: Truth, k: int, *, name: str) -> Release:
    """Treat the device as a normal column, whose values are published as they are or not at all."""
    models = Hierarchy.flat(sorted(truth.models), root="any device")
    made = FlexibleK(data.schema(device=Categorical(DEVICE, models)), None, k=k, key=_KEY)
    return _release(data, truth, made, name)


def publish_ignoring_device(data: Measurements, truth: Truth, k: int, *, name: str) -> Release:
    """Form groups without the device, and publish it as it is."""
    made = FlexibleK(data.schema(device=None), None, k=k, key=_KEY)
    return _release(data, truth, made, name)


def _release(data: Measurements, truth: Truth, made: FlexibleK, name: str) -> Release:
    columns = made.settings.schema.columns
    parts = [made.push_batch(data.table.select(columns)), made.flush()]
    rows = pa.Table.from_batches([part.rows for part in parts])
    trace = pa.Table.from_batches([part.trace for part in parts])
    row = trace["row"].to_numpy()[pc.equal(trace["verdict"].cast(pa.string()), "released").to_numpy()]
    if DEVICE not in rows.column_names:
        rows = rows.append_column(DEVICE, data.table[DEVICE].take(pa.array(row)))
    frozen = made.frozen
    assert frozen is not None
    k = made.settings.k
    shown = _shown(data, truth, rows, row, name, (k, frozen.k_s[k]))
    loss = float(made.metrics["loss"]) if len(row) else None
    return Release(shown, rows, row, made.pending, loss, k, frozen.k_s[k], dict(frozen.shares))


def _shown(
    data: Measurements, truth: Truth, rows: pa.Table, row: Ints, name: str, promised: tuple[int, int]
) -> Shown:  # fmt: skip
    begin, end = (_hours(pc.struct_field(rows[TIME], side), data.start, up=side == "hi") for side in ("lo", "hi"))
    place, place_labels = numbered(rows[PLACE])
    device, device_labels = numbered(rows[DEVICE])
    places = np.array([[label in data.places.path(cell) for cell in truth.cells] for label in place_labels], np.bool_)
    # Of rows that begin in the same hour any may be the next.
    order = np.lexsort((np.random.default_rng(promised[0]).permutation(len(row)), begin))
    return Shown(
        name, truth.person[row][order], place[order], places.reshape(-1, len(truth.cells)),
        numbered(rows[NETWORK])[0][order], device[order], _device_cover(data, truth, device_labels), begin[order],
        end[order], _speeds(rows)[order], promised=promised,
    )  # fmt: skip


def _device_cover(data: Measurements, truth: Truth, labels: list[str]) -> Bools:
    """By label and model; the label of unlisted values covers every model that the ontology does not list."""
    concepts = data.ontology.attribute(DEVICE)
    listed = set(concepts.values)
    unlisted = {model for model in truth.models if model not in listed}
    covered = [
        set(concepts.covered(label)) if label in concepts else {label} & unlisted or unlisted for label in labels
    ]  # fmt: skip
    found = np.array([[model in models for model in truth.models] for models in covered], dtype=np.bool_)
    return found.reshape(-1, len(truth.models))


def _hours(moments: pa.ChunkedArray, start: int, *, up: bool = False) -> Ints:
    """Hours from the start of the campaign, rounded down or up."""
    since = pc.cast(moments, pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64()).to_numpy() / 1000 - start
    found: Ints = (np.ceil(since / HOUR) if up else np.floor(since / HOUR)).astype(np.int64)
    return found


def _speeds(table: pa.Table) -> Floats:
    if SPEED not in table.column_names:
        return np.zeros(len(table))
    found: Floats = table[SPEED].to_numpy()
    return found
