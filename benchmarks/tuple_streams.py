"""Data sets as tuple streams for benchmarks, with their columns, domains and trees; and columns with values missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from benchmarks.real_data import folder_with
from shoal.reproduce.data.adult import read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.pm25 import FILES as PM25_FILES
from shoal.reproduce.data.pm25 import read_pm25
from shoal.reproduce.data.pm25_imitation import imitate_pm25
from shoal.reproduce.data.streams import PERSON, Stream, numbered

_HOUR = 3600
_DAY = 24 * _HOUR


def real_streams(folder: Path, rows: int) -> dict[str, Stream]:
    """Every data set found in a folder or one below, as streams of at most `rows` rows."""
    found = {}
    for name, (file, read) in _READERS.items():
        place = folder_with(folder, file)
        if place is not None:
            found[name] = read(place, rows).head(rows)
    return found


def synthetic_streams(rows: int) -> dict[str, Stream]:
    """Imitations of Adult and of PM2.5."""
    return {"adult": imitate_adult(rows, seed=1), "pm25": imitate_pm25(rows, seed=1)}


def without(stream: Stream, shares: Mapping[str, float], *, seed: int = 1) -> Stream:
    """Remove a share of the values of some columns, at random."""
    draw, table = np.random.default_rng(seed), stream.table
    for name, share in shares.items():
        column = table.column(name)
        gone = pa.array(draw.random(len(stream)) < share)
        kept = pc.if_else(gone, pa.scalar(None, column.type), column)
        table = table.set_column(table.schema.get_field_index(name), name, kept)
    return stream.with_table(table)


def first_columns(stream: Stream, count: int = 7) -> Stream:
    """Keep at most `count` quasi-identifiers, ranges and labels in turn."""
    numbers, labels = list(stream.domains), list(stream.trees)
    longest = max(len(numbers), len(labels))
    mixed = [names[place] for place in range(longest) for names in (numbers, labels) if place < len(names)]
    kept = set(mixed[:count])
    return stream.narrowed([name for name in stream.quasi if name in kept], ())


# ---- the files


def _read(folder: Path, name: str) -> pa.Table:
    path = next(path for path in (folder / name, folder / f"{name}.gz") if path.is_file())
    return csv.read_csv(path, convert_options=csv.ConvertOptions(null_values=[""], strings_can_be_null=True))


def _stream(
    name: str, columns: Mapping[str, Any], numbers: Sequence[str], trees: Mapping[str, Any], people: Any = None
) -> Stream:
    """A stream whose numeric domains are those of its values."""
    columns = {column: pa.array(values) for column, values in columns.items()}
    domains = {column: (_float(pc.min(columns[column])), _float(pc.max(columns[column]))) for column in numbers}
    rows = len(next(iter(columns.values())))
    table = numbered(columns, rows)
    if people is not None:
        table = table.set_column(0, PERSON, pa.array(people))
    return Stream(name, name, table, domains, trees)


def _float(value: pa.Scalar) -> float:
    return float(value.as_py())


def _tree(pairs: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """A tree of (group, leaf) pairs, or of (leaf,) alone, below one root."""
    if len(pairs[0]) == 1:
        return {"*": sorted({str(pair[0]) for pair in pairs})}
    groups: dict[str, set[str]] = defaultdict(set)
    for group, leaf in pairs:
        groups[str(group)].add(str(leaf))
    return {"*": {f"{group}/": sorted(leaves) for group, leaves in sorted(groups.items())}}


def _checkins(folder: Path, rows: int) -> Stream:
    found = _read(folder, "checkins.csv").slice(60_000, rows)
    seconds = found["time"].cast(pa.timestamp("s", tz="UTC")).cast(pa.int64()).to_numpy()
    columns = {
        "lat": found["lat"].to_numpy(), "lon": found["lon"].to_numpy(), "hour": seconds % _DAY / _HOUR,
        "weekday": (seconds // _DAY % 7).astype(np.float64),
    }  # fmt: skip
    return _stream("check-ins", columns, list(columns), {}, found["user"].to_numpy())


def _taxi(folder: Path, rows: int) -> Stream:
    found = _read(folder, "taxi-10000.csv").slice(0, rows)
    start, end = (found[f"tpep_{event}_datetime"].to_numpy() for event in ("pickup", "dropoff"))
    zones = _read(folder, "zone_lookup.csv").to_pylist()
    borough = {row["Zone"]: row["Borough"] for row in zones}
    columns: dict[str, Any] = {
        "passengers": found["passenger_count"].to_numpy().astype(np.float64),
        "miles": found["trip_distance"].to_numpy(),
        "hour": start % _DAY / _HOUR,
        "minutes": np.clip((end - start) / 60, 0, 120),
        "fare": found["fare_amount"].to_numpy(),
        "from": found["PULocationID"].to_pylist(),
        "to": found["DOLocationID"].to_pylist(),
        "payment": found["payment_type"].to_pylist(),
    }
    leaves = sorted({*columns["from"], *columns["to"]})
    places = _tree([(borough.get(leaf, "elsewhere"), leaf) for leaf in leaves])
    trees = {"from": places, "to": places, "payment": _tree([(one,) for one in set(columns["payment"])])}
    return _stream("taxi", columns, ["passengers", "miles", "hour", "minutes", "fare"], trees)


def _charging(folder: Path, rows: int) -> Stream:
    found = _read(folder, "ev_charging.csv").slice(0, rows)
    start = pc.strptime(found["Start_Date___Time"], format="%m/%d/%Y %H:%M", unit="s", error_is_null=True)
    if start.null_count:
        start = pc.strptime(
            pc.utf8_slice_codeunits(pc.replace_substring(found["Start_Date___Time"], "-", "/"), 0, 16),
            format="%Y/%m/%d %H:%M", unit="s", error_is_null=True,
        )  # fmt: skip
    seconds = pc.fill_null(start.cast(pa.int64()), 0).to_numpy()
    columns: dict[str, Any] = {
        "hour": seconds % _DAY / _HOUR,
        "day": seconds // _DAY % 7 * 1.0,
        "minutes": np.minimum([_minutes(text) for text in found["Total_Duration__hh_mm_ss_"].to_pylist()], 1440.0),
        "charging": np.minimum([_minutes(text) for text in found["Charging_Time__hh_mm_ss_"].to_pylist()], 1440.0),
        "energy": found["Energy__kWh_"].to_numpy(),
        "station": found["Station_Name"].to_pylist(),
    }
    code_of = dict(zip(columns["station"], found["Zip_Postal_Code"].to_pylist(), strict=True))
    numbers = ["hour", "day", "minutes", "charging", "energy"]
    return _stream("charging", columns, numbers, {"station": _tree([(code, one) for one, code in code_of.items()])})


def _minutes(text: str) -> float:
    hours, minutes, seconds = [*text.split(":"), "0", "0"][:3]
    return int(hours) * 60 + int(minutes) + float(seconds) / 60


def _flights(folder: Path, rows: int) -> Stream:
    found = parquet.read_table(folder / "flights-3m.parquet").slice(0, 40 * rows).take(np.arange(0, 40 * rows, 40))
    seconds = found["date"].cast(pa.timestamp("s")).cast(pa.int64()).to_numpy()
    columns: dict[str, Any] = {
        "hour": seconds % _DAY / _HOUR,
        "delay": np.clip(found["delay"].to_numpy(), -60, 180).astype(np.float64),
        "distance": found["distance"].to_numpy().astype(np.float64),
        "origin": found["origin"].to_pylist(),
        "destination": found["destination"].to_pylist(),
    }
    airports = _tree([(code[0], code) for code in sorted({*columns["origin"], *columns["destination"]})])
    return _stream("flights", columns, ["hour", "delay", "distance"], {"origin": airports, "destination": airports})


def _phones(folder: Path, rows: int) -> Stream:
    found = _read(folder, "uji_stream.csv").slice(0, rows)
    columns: dict[str, Any] = {
        "longitude": found["LONGITUDE"].to_numpy(),
        "latitude": found["LATITUDE"].to_numpy(),
        "hour": found["TIMESTAMP"].to_numpy() % _DAY / _HOUR,
        "networks": found["n_aps"].to_numpy().astype(np.float64),
        "model": found["model"].to_pylist(),
        "version": [str(version) for version in found["android_version"].to_pylist()],
        "floor": [f"{b}.{f}" for b, f in zip(found["BUILDINGID"].to_pylist(), found["FLOOR"].to_pylist(), strict=True)],
    }
    trees = {
        "model": _tree([(model.split()[0], model) for model in set(columns["model"])]),
        "version": _tree([(version[:1], version) for version in set(columns["version"])]),
        "floor": _tree([(floor[0], floor) for floor in set(columns["floor"])]),
    }
    return _stream("phones", columns, ["longitude", "latitude", "hour", "networks"], trees)


def _browsers(folder: Path, rows: int) -> Stream:
    found = _read(folder, "intoli_user_agents.csv").slice(0, rows)
    numbers = [
        "screenHeight",
        "screenWidth",
        "viewportHeight",
        "viewportWidth",
        "connection.downlink",
        "connection.rtt",
    ]
    columns: dict[str, Any] = {name: found[name].cast(pa.float64()) for name in numbers}
    columns = {name: pa.chunked_array(column).combine_chunks() for name, column in columns.items()}
    for name in ("platform", "language"):
        columns[name] = found[name].to_pylist()
    trees = {name: _tree([(str(one)[:2], str(one)) for one in set(columns[name])]) for name in ("platform", "language")}
    return _stream("browsers", columns, numbers, trees)


def _ratings(folder: Path, rows: int) -> Stream:
    found = _read(folder, "ratings.csv").sort_by("timestamp").slice(0, rows)
    genres = dict(zip(*(_read(folder, "movies.csv")[name].to_pylist() for name in ("movieId", "genres")), strict=True))
    columns: dict[str, Any] = {
        "rating": found["rating"].to_numpy(),
        "hour": found["timestamp"].to_numpy() % _DAY / _HOUR,
        "movie": np.log1p(found["movieId"].to_numpy()),
        "genre": [genres[movie].split("|")[0] for movie in found["movieId"].to_pylist()],
    }
    tree = {"genre": _tree([(genre,) for genre in set(columns["genre"])])}
    return _stream("ratings", columns, ["rating", "hour", "movie"], tree)


_READERS: dict[str, tuple[str, Callable[[Path, int], Stream]]] = {
    "adult": ("adult.data", lambda folder, rows: read_adult(folder)),
    "pm25": (PM25_FILES[0], lambda folder, rows: read_pm25(folder)),
    "check-ins": ("checkins.csv", _checkins),
    "taxi": ("taxi-10000.csv", _taxi),
    "charging": ("ev_charging.csv", _charging),
    "flights": ("flights-3m.parquet", _flights),
    "phones": ("uji_stream.csv", _phones),
    "browsers": ("intoli_user_agents.csv", _browsers),
    "ratings": ("ratings.csv", _ratings),
}
