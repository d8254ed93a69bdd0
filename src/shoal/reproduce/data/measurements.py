"""Measurements of phones: a synthetic campaign, or a file of the same columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from shoal.errors import InputError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.reproduce.data.campaign import NETWORKS, campaign_places, make_campaign
from shoal.schema import Categorical, Numeric, Schema
from shoal.times import column_ns

PERSON, DEVICE, PLACE, NETWORK, TIME = COLUMNS = ("maid", "device", "place", "network", "time")
PROVIDER, SPEED = OPTIONAL = ("provider", "mbps_down")
HOUR: Final = 3600
_DAY: Final = 24 * HOUR
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Measurements:
    """Rows in the order of time, with the labels that may replace places and devices."""

    origin: str
    table: pa.Table
    """The columns `COLUMNS`, with times in UTC, and those of `OPTIONAL` that exist."""
    places: Hierarchy
    ontology: Ontology

    def __len__(self) -> int:
        return len(self.table)

    @property
    def people(self) -> int:
        """Number of different ids."""
        return pc.count_distinct(self.table[PERSON]).as_py()  # type: ignore[no-any-return]

    @property
    def has_speeds(self) -> bool:
        """Whether there is a result to publish."""
        return SPEED in self.table.column_names

    @property
    def start(self) -> int:
        """Midnight before the first row, in seconds."""
        return _seconds(pc.min(self.table[TIME])) // _DAY * _DAY

    @property
    def hours(self) -> int:
        """Hours from `start` to the midnight after the last row."""
        return -(-(_seconds(pc.max(self.table[TIME])) + 1 - self.start) // _DAY) * 24

    def schema(self, *, device: Categorical | None) -> Schema:
        """Place, network, hour and, if given, the device as quasi-identifiers; the speed is published as it is."""
        networks = sorted(set(self.table[NETWORK].unique().to_pylist()) | set(NETWORKS))
        normal: list[Any] = [
            Categorical(PLACE, self.places), Categorical(NETWORK, Hierarchy.flat(networks)),
            Numeric(TIME, low=float(self.start), high=float(self.start + self.hours * HOUR), grid=float(HOUR)),
        ]  # fmt: skip
        return Schema(
            person=PERSON,
            carry=[SPEED] if self.has_speeds else [],
            quasi=normal if device is None else [*normal, device],
        )

    def head(self, rows: int) -> Measurements:
        """The first rows."""
        return Measurements(self.origin, self.table.slice(0, rows), self.places, self.ontology)


def synthetic_measurements(people: int, records: int, seed: int = 0) -> Measurements:
    """A campaign of a week in a city that does not exist."""
    table = make_campaign(people, records, seed).select([*COLUMNS, *OPTIONAL])
    return Measurements("a synthetic campaign", table, campaign_places(), Ontology.devices())


def read_measurements(path: Path, *, places: Path | None = None, ontology: Path | None = None) -> Measurements:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path
        File with the columns `COLUMNS`; those of `OPTIONAL` are used if it has them.
    places
        Level file of the places, ``place;district;…;root``. Without it every place lies directly below the root.
    ontology
        RDF file with an attribute ``device``. Without it the ontology included in the package.
    """
    table = _checked(path, _read(path))
    order = pc.sort_indices(table[TIME])
    table = table.take(order)
    found = table[PLACE].unique().to_pylist()
    tree = Hierarchy.flat(sorted(found), root="any place") if places is None else _places(places)
    _require_listed(path, places, tree, table)
    devices = Ontology.devices() if ontology is None else Ontology.from_rdf(ontology)
    devices.attribute(DEVICE)
    return Measurements(path.name, table, tree, devices)


def _read(path: Path) -> pa.Table:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a CSV or Parquet file with the columns {', '.join(COLUMNS)}")
    try:
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            names = csv.open_csv(path).schema.names
            texts = {name: pa.string() for name in names if name != SPEED}
            table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=texts))
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path.name}: cannot be read as CSV or Parquet ({reason}); check the file") from None
    lacking = [name for name in COLUMNS if name not in table.column_names]
    if lacking:
        raise InputError(f"{path.name}: has no column {', '.join(lacking)}; rename the columns of the file")
    return table.select([*COLUMNS, *(name for name in OPTIONAL if name in table.column_names)])


def _checked(path: Path, table: pa.Table) -> pa.Table:
    """The table with texts, numbers and times; every cell must have a value."""
    if not len(table):
        raise InputError(f"{path.name}: has no rows")
    for at, name in enumerate(table.column_names):
        column = table[name].combine_chunks()
        if name == TIME:
            moments, is_usable = column_ns(column)
            column = pa.array(moments // (_NS // 1000), pa.timestamp("ms", tz="UTC"))
        else:
            column = _cast(column, pa.float64() if name == SPEED else pa.string())
            is_usable = np.asarray(_is_usable(column))
        if not is_usable.all():
            row = int(np.flatnonzero(~is_usable)[0]) + 1
            raise InputError(f"{path.name}, row {row}, column {name}: missing or not usable; remove the row or fix it")
        table = table.set_column(at, name, column)
    return table


def _is_usable(column: Any) -> Any:
    """Whether a text is not empty, or a number is finite."""
    is_good = pc.is_finite(column) if pa.types.is_floating(column.type) else pc.greater(pc.utf8_length(column), 0)
    return pc.fill_null(is_good, fill_value=False)


def _cast(column: Any, kind: pa.DataType) -> Any:
    try:
        return column.cast(kind)
    except pa.ArrowException:
        return pa.nulls(len(column), kind)


def _places(path: Path) -> Hierarchy:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the levels of every place, as place;district;city")
    return Hierarchy.from_csv(path)


def _require_listed(path: Path, places: Path | None, tree: Hierarchy, table: pa.Table) -> None:
    inner = set(tree.parents.tolist())
    listed = [label for node, label in enumerate(tree.labels) if node not in inner]
    is_known = np.asarray(pc.is_in(table[PLACE].combine_chunks(), pa.array(listed, pa.string())))
    if not is_known.all():
        count = int((~is_known).sum())
        raise InputError(f"{path.name}: the place of {count:,} rows is not in {places}; add these places to it")


def _seconds(moment: Any) -> int:
    return int(moment.cast(pa.int64()).as_py()) // 1000
