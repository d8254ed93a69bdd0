"""Read with pandas the file that a policy names, with nothing of shoal: its records as texts, as a run reads them.

Missing values are None; numbers with a decimal comma have a point, and dates of a declared form are ISO 8601.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

_FORMS = {
    "DD.MM.YYYY": "%d.%m.%Y", "DD/MM/YYYY": "%d/%m/%Y", "MM/DD/YYYY": "%m/%d/%Y", "DD-MM-YYYY": "%d-%m-%Y",
    "YYYY/MM/DD": "%Y/%m/%d", "YYYYMMDD": "%Y%m%d",
}  # fmt: skip


def read_source(path: Path, policy: Mapping[str, Any]) -> pd.DataFrame:
    """All records as texts, under the names that the policy uses; None where a value is missing."""
    given = policy.get("source", {})
    encoding = given.get("encoding", "utf-8").replace("utf-8", "utf-8-sig")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding=encoding, errors="replace", newline="") as file:
        first = next(csv.reader(file, delimiter=given.get("delimiter", ",")))
    header = given.get("header")
    width = len(first) + (header == "short")
    read = pd.read_csv(
        path, sep=given.get("delimiter", ","), header=None, names=range(width), index_col=False, dtype=str,
        keep_default_na=False, encoding=encoding, encoding_errors="replace", skip_blank_lines=True,
    )  # fmt: skip
    if isinstance(header, list):
        read.columns = header
    else:
        cells = ["", *first] if header == "short" else first
        read = read.iloc[1:].set_axis(_names([cell.strip() for cell in cells]), axis=1)
    read = read.apply(lambda column: column.str.strip())
    read = read.apply(lambda column: column.where(~column.isin(_nothing(given, column.name)) & column.notna(), None))
    for name in read.columns.intersection(_numeric(policy)) if given.get("decimal") == "," else ():
        read[name] = _with_points(read[name])
    for name, form in given.get("dates", {}).items():
        read[name] = _as_iso(read[name], form)
    return read.reset_index(drop=True)


def whose(records: pd.DataFrame, policy: Mapping[str, Any]) -> pd.Series:
    """Whose record each is: the person column, or the record itself where rows are counted."""
    person = policy.get("stream", {}).get("person", "row")
    if person == "row" and "row" not in records:
        return pd.Series(records.index)
    return records[person]


def _names(cells: list[str]) -> list[str]:
    """As docs/reference/policy.md names columns whose cell is empty or repeated."""
    names: list[str] = []
    for place, cell in enumerate(cells, 1):
        base = cell or f"column{place}"
        several = (f"{base}_{number}" for number in range(2, len(cells) + 2))
        is_free = base not in names and (cell or base not in cells)
        names.append(base if is_free else next(one for one in several if one not in {*cells, *names}))
    return names


def _nothing(source: Mapping[str, Any], column: Any) -> list[str]:
    """What means that a value is missing in a column."""
    words = source.get("nulls", [])
    return ["", *(words.get(column, []) if isinstance(words, Mapping) else words)]


def _numeric(policy: Mapping[str, Any]) -> list[str]:
    """The columns whose numbers are read: declared ones, and quasi-identifiers with a domain of numbers."""
    types = policy["source"].get("types", {})
    quasi = policy.get("anonymize", {}).get("quasi", {})
    ranges = [name for name, rule in quasi.items() if isinstance(rule.get("low"), int | float)]
    return [*ranges, *(name for name, kind in types.items() if kind in ("int64", "float64"))]


def _with_points(texts: pd.Series) -> pd.Series:
    is_number = texts.str.fullmatch(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?([eE][+-]?\d+)?", na=False)
    bare = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return texts.mask(is_number, bare)


def _as_iso(texts: pd.Series, form: str) -> pd.Series:
    """What has another form stays as it is; a time of day may follow."""
    parts = texts.str.extract(r"^([^ ,T]+)(?:,?[ T]+(\d.*))?$")
    days = pd.to_datetime(parts[0], format=_FORMS[form], errors="coerce")
    found = days.dt.strftime("%Y-%m-%d") + ("T" + parts[1]).fillna("")
    return texts.mask(days.notna(), found)
