"""A release as anybody reads it, counted again with pandas: crowds, identifiers, and what is true of its rows."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from itertools import combinations
from pathlib import Path

import pandas as pd
from pyarrow import parquet

from tests.first_release.cases import Case
from tests.first_release.names import as_read, names_read

LOG_LINE = re.compile(r'(\S+) (\S+) (\S+) \[([^]]+)\] "([^"]*)" (\d+) (\d+|-)(?: "([^"]*)" "([^"]*)")?')
RANGE = re.compile(r"\[(.+), (.+)\]")
LONG = 5
"""Signs from which on a value that is found elsewhere is not found there by chance."""
IDENTIFYING = {"person", "row number", "identifier", "drop"}
MISSING = "\x00"
"""In place of a cell that is not there."""


class Published:
    """What init, run and the truth of one file say, without any code of shoal."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.expected = case, as_read(case)
        self.policy = tomllib.loads((folder / "policy.toml").read_text())
        self.rules = self.policy["anonymize"]
        self.truth = truth_of(case)
        person = self.policy["stream"]["person"]
        self.person = pd.Series(range(len(self.truth))) if person == "row" else self.truth[person]
        self.rows = read_rows(folder / self.policy["sink"]["path"])
        trace = pd.read_parquet(folder / "trace.parquet")
        if "position" in trace:
            self.place = trace
        else:
            self.place = trace[trace["verdict"] == "released"]["row"].to_numpy()

    @property
    def owners(self) -> pd.Series:
        """Whose each released row is."""
        return self.person.iloc[self.place].reset_index(drop=True)

    def too_few(self) -> int:
        """Rows, values or pairs of items that fewer people share than the policy promises."""
        if "item" in self.rules:
            return self._rare_items()
        return self._rare_values() if "attribute" in self.rules else self._rare_classes()

    def _rare_classes(self) -> int:
        """Rows whose quasi-identifiers fewer than k people share."""
        names = list(self.rules["quasi"])
        classes = self.rows[names].fillna(MISSING).agg(tuple, axis=1)
        people = self.owners.groupby(classes).nunique()
        return int((classes.map(people) < self.rules["k"]).sum())

    def _rare_values(self) -> int:
        """Events whose value fewer than z people had in the window up to it."""
        value = self.truth[self.rules["attribute"]]
        unit, name = self.policy["stream"].get("time_unit", "s"), self.policy["stream"]["time"]
        time = moments(self.truth[name], unit, self.policy["source"].get("dates", {}).get(name))
        window = pd.Timedelta(self.rules["window"].replace("d", "D"))
        found = 0
        for row in self.place:
            is_near = (value == value[row]) & (time > time[row] - window) & (time <= time[row])
            found += self.person[is_near].nunique() < self.rules["z"]
        return found

    def _rare_items(self) -> int:
        """Labels, and pairs of labels, that fewer than k records have."""
        (column,) = self.rows.columns
        sets = [set(one if isinstance(one, list) else str(one).split("|")) for one in self.rows[column]]
        counted = Counter(part for own in sets for size in (1, 2) for part in combinations(sorted(own), size))
        return sum(count < self.rules["k"] for count in counted.values())

    def identifiers(self) -> set[str]:
        """Columns that must not be published and are, and those of which a value is in another column."""
        hidden = {column.name for column in self.expected.columns if {*column.roles} <= IDENTIFYING}
        pseudonyms = {self.policy["stream"]["person"]} if "z" in self.rules else set()
        shown = {*self.rows.columns} & hidden - pseudonyms
        shown -= {column.name for column in self.expected.columns if column.roles == ("drop",)}
        cells = {str(cell) for name in self.rows.columns for cell in self.rows[name].dropna().map(str).unique()}
        known = {str(cell) for name in self.truth if name not in hidden for cell in self.truth[name].map(str).unique()}
        for column in self.expected.columns:
            if {"person", "identifier"} >= {*column.roles} and column.name in self.truth:
                own = {str(cell) for cell in self.truth[column.name].dropna()}
                shown |= {column.name} if any(len(one) >= LONG for one in (own & cells) - known) else set()
        return shown

    def untrue(self) -> Counter[str]:
        """Published cells, by column, that are not true of the record of their row."""
        found: Counter[str] = Counter()
        if "item" in self.rules:
            return found
        for name in {*self.rows.columns} & {*self.truth.columns} - {self.policy["stream"]["person"]}:
            pairs = zip(self.rows[name], self.truth[name].iloc[self.place], strict=True)
            found[name] = sum(not _fits(shown, true) for shown, true in pairs)
        return +found

    def invented(self) -> Counter[str]:
        """Published cells, by column, where the record of their row has none."""
        found: Counter[str] = Counter()
        words = {column.name: column.missing for column in self.expected.columns}
        nulls = self.policy["source"].get("nulls", ())
        for name in self.rules.get("quasi", {}):
            true = self.truth[name].iloc[self.place]
            is_there = self.rows[name].notna().to_numpy()
            known = {*words[name]} & {*(nulls.get(name, ()) if isinstance(nulls, dict) else nulls)}
            is_gap = [is_missing(cell) or str(cell) in known for cell in true]
            found[name] = int((is_there & is_gap).sum())
        return +found


def _fits(shown: object, true: object) -> bool:
    """Whether a range contains the number, or a value that was not generalized is the same."""
    ends = RANGE.fullmatch(str(shown))
    if ends is None or pd.isna(shown) or is_missing(true):
        return True
    try:
        low, high, number = float(ends[1]), float(ends[2]), float(str(true))
    except ValueError:
        return True  # moments
    return low <= number <= high


def is_missing(cell: object) -> bool:
    """Whether a cell of a file has nothing."""
    return cell is None or cell == "" or (not isinstance(cell, list) and pd.isna(cell))


def moments(column: pd.Series, unit: str, dates: str | None) -> pd.Series:
    """Times, written (as dates of a country: in the form that the policy names) or in numbers since 1970."""
    if dates is not None:
        form = dates.replace("DD", "%d").replace("MM", "%m").replace("YYYY", "%Y")
        return pd.to_datetime(column, format=form, utc=True)
    if pd.api.types.is_numeric_dtype(column):
        return pd.to_datetime(column, unit=unit, utc=True)
    form = "%d/%b/%Y:%H:%M:%S %z" if column.iloc[0].count(":") == 3 else "ISO8601"
    return pd.to_datetime(column, format=form, utc=True)


def truth_of(case: Case) -> pd.DataFrame:
    """The records as they were made; those of item lists and access logs from their lines."""
    made, names = case.make(), names_read(case)
    if isinstance(made, list) and isinstance(made[0], str):
        if case.reading.format == "items":
            return pd.DataFrame({names[0]: made[int(bool(case.reading.has_header)) :]})
        cells = [LOG_LINE.fullmatch(line).groups() for line in made]
        return pd.DataFrame([row[: len(names)] for row in cells], columns=names)
    pairs = list(made.items()) if not isinstance(made, list) else made
    values = [column.to_pylist() if hasattr(column, "to_pylist") else list(column) for _, column in pairs]
    return pd.DataFrame(dict(zip(names, values, strict=True)))


def read_rows(path: Path) -> pd.DataFrame:
    """The released rows; ranges as text."""
    if path.suffix == ".parquet":
        frame = parquet.read_table(path).to_pandas()
        return frame.map(_as_text)
    if path.suffix == ".jsonl":
        return pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()]).map(_as_text)
    return pd.read_csv(path, dtype=str, keep_default_na=False).replace("", None)


def _as_text(cell: object) -> object:
    if isinstance(cell, dict):
        return f"[{cell['lo']}, {cell['hi']}]"
    return cell
