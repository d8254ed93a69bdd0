"""UCI PM2.5 data of five Chinese cities: hourly readings, merged into one stream as the K-VARP paper does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from shoal.errors import InputError
from shoal.reproduce.data.streams import Stream, find_files, numbered, read_records
from shoal.reproduce.data.trees import PM25_DOMAINS, PM25_TREES

CITIES: Final = ("Beijing", "Chengdu", "Guangzhou", "Shanghai", "Shenyang")
FILES: Final = tuple(f"{city}PM20100101_20151231.csv" for city in CITIES)
PUBLISHER: Final = "UCI Machine Learning Repository, PM2.5 Data of Five Chinese Cities"
SEASONS: Final = {"1": "Spring", "2": "Summer", "3": "Autumn", "4": "Winter"}
_HOUR: Final = ("year", "month", "day", "hour")
_POST: Final = "PM_"
# Our names of the columns that all files share, and the names in the files.
_SHARED: Final = {
    "dew-point": "DEWP", "temperature": "TEMP", "humidity": "HUMI", "pressure": "PRES", "wind-speed": "Iws",
    "h-precipitation": "precipitation", "c-precipitation": "Iprec", "season": "season", "wind-direction": "cbwd",
}  # fmt: skip
_MISSING: Final = "NA"


@dataclass(frozen=True, slots=True)
class _Layout:
    """Positions of columns in a city's file."""

    width: int
    hour: tuple[int, ...]
    values: tuple[int, ...]
    """Positions of our columns, in our order."""


def read_pm25(folder: Path) -> Stream:
    """Read all rows of the five cities without a missing value, hour by hour, each a different person."""
    rows = [
        row for path in find_files(folder, FILES, publisher=PUBLISHER) for row in _read_city(path)
    ]  # fmt: skip
    if not rows:
        raise InputError(f"{folder}: the five files have no row without a missing value; download them again")
    rows.sort(key=lambda row: row[0])  # stable: within an hour the cities keep their order
    columns = dict(zip(_NAMES, zip(*(values for _, values in rows), strict=True), strict=True))
    return pm25_stream(
        {name: pa.array(column) for name, column in columns.items()}, origin=f"the five files of the {PUBLISHER}"
    )


_NAMES: Final = (*PM25_DOMAINS, *PM25_TREES)


def pm25_stream(columns: dict[str, pa.Array], *, origin: str) -> Stream:
    """Return the columns of PM2.5 as a stream with all twelve quasi-identifiers."""
    table = numbered(columns, len(columns["season"]))
    return Stream("PM2.5", origin, table, domains=PM25_DOMAINS, trees=PM25_TREES)


def _read_city(path: Path) -> Iterator[tuple[tuple[int, ...], list[float | str]]]:
    """Yield the hour and our columns of every complete row."""
    records = read_records(path)
    _, header = next(records, (0, []))
    layout = _layout(path, header)
    for line, fields in records:
        if len(fields) != layout.width:
            raise InputError(
                f"{path.name}, line {line}: {len(fields)} fields instead of {layout.width}; download the file again"
            )
        if _MISSING not in fields:
            try:
                yield _read_row(layout, fields)
            except (ValueError, KeyError):
                raise InputError(
                    f"{path.name}, line {line}: a field is not a valid reading; download the file again"
                ) from None


def _layout(path: Path, header: list[str]) -> _Layout:
    posts = [name for name in header if name.startswith(_POST)][:3]  # Beijing has a fourth
    wanted = [*posts, *_SHARED.values(), *_HOUR]
    if len(posts) < 3 or not set(wanted) <= set(header):
        raise InputError(
            f"{path.name}: the first line does not name the columns of this data set; download the file again"
        )
    at = {name: place for place, name in enumerate(header)}
    return _Layout(len(header), tuple(at[name] for name in _HOUR), tuple(at[name] for name in wanted[: -len(_HOUR)]))


def _read_row(layout: _Layout, fields: list[str]) -> tuple[tuple[int, ...], list[float | str]]:
    *numbers, season, wind = (fields[at] for at in layout.values)
    hour = tuple(int(fields[at]) for at in layout.hour)
    return hour, [*map(float, numbers), SEASONS[season], wind]
