"""Count with pandas what a release shows, with nothing of shoal: source, policy, trace and release are read anew.

The trace lists decisions in the order of the release: its n-th released row tells whose row the n-th published one is.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.public_source import read_source, whose

FEW = 20
"""Fewer rows do not show that a column identifies: all values of any column may differ in them."""
SAMPLE = 2000
"""Published events whose crowd is counted."""
_RANGE = re.compile(r"^\[(.*), (.*)\]$")


def recount(folder: Path, source: Path, summary: Mapping[str, Any], audit: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a release in a folder, and the promises that it breaks as `problems`."""
    policy = tomllib.loads((folder / "policy.toml").read_text())
    truth = read_source(source, policy)
    released = pd.read_csv(folder / policy["sink"]["path"], dtype=str, keep_default_na=False, skip_blank_lines=False)
    trace = pd.read_parquet(folder / policy["trace"]["path"])
    if policy["anonymize"]["method"].startswith("k^m"):
        return _of_sets(folder, policy, truth, released)
    problems = list(_lost_rows(truth, released, trace, summary))
    rows = trace.loc[trace["verdict"] == "released", "row"]
    if len(released) != len(rows) or not rows.isin(truth.index).all():
        return {"problems": [*problems, "the trace does not list the rows of the release"]}
    records = truth.loc[rows].reset_index(drop=True)
    persons = whose(truth, policy).loc[rows].reset_index(drop=True)
    found: dict[str, Any] = {"person": policy["stream"].get("person"), "persons": int(persons.nunique())}
    if "quasi" in policy["anonymize"]:
        found |= _of_tuples(folder, policy, released, records, persons)
        problems += [*_broken_crowd(found["smallest"], policy["anonymize"]["k"], audit), *_filled_in(found, policy)]
    else:
        found |= {"smallest": _smallest_crowd(policy, truth, rows), "misses": []}
        found["misses"] += _unchanged(released, records, except_for=policy["stream"]["person"])
        if (least := found["smallest"]) is not None and least < policy["anonymize"]["z"]:
            problems.append(f"a value of {least} people was published, and z is {policy['anonymize']['z']}")
    problems += [*found.pop("misses"), *identifiers(truth, released, records, policy)]
    exact = _exact_sensitive(released, policy)
    own = {name: _of_one_person(truth[name], released[name], whose(truth, policy)) for name in exact}
    return {**found, "exact_sensitive": exact, "of_one_person": own, "problems": problems}


def _lost_rows(
    truth: pd.DataFrame, released: pd.DataFrame, trace: pd.DataFrame, summary: Mapping[str, Any]
) -> Iterator[str]:
    if len(truth) != summary["rows_in"]:
        yield f"pandas reads {len(truth)} records, the run {summary['rows_in']}"
    if len(released) != summary["released"]:
        yield f"the release has {len(released)} rows, the run says {summary['released']}"
    ended = sum(summary[name] for name in ("released", "suppressed", "dead", "pending"))
    if ended != summary["rows_in"]:
        yield f"{summary['rows_in']} rows in, but {ended} released, suppressed, refused or pending"
    if trace["row"].duplicated().any():
        yield "the trace decides a record twice"


def _of_tuples(
    folder: Path, policy: Mapping[str, Any], released: pd.DataFrame, records: pd.DataFrame, persons: pd.Series
) -> dict[str, Any]:
    """The smallest class, cells that miss their record's value, and cells that show what the record lacks.

    A missing value is one like any other: rows that show nothing are a class of their own.
    """
    quasi = policy["anonymize"]["quasi"]
    own_class = released.groupby(list(quasi), sort=False, dropna=False).ngroup()
    classes = persons.groupby(own_class).nunique()
    misses, invented, hidden, shown = [], 0, 0, 0
    for name, rule in quasi.items():
        pairs = pd.DataFrame({"cell": released[name], "value": records[name]})
        is_shown, is_known = pairs["cell"] != "", pairs["value"].notna()
        invented += int((is_shown & ~is_known).sum())
        hidden += int((~is_shown & is_known).sum())
        shown += int(is_shown.sum())
        both = pairs[is_shown & is_known].drop_duplicates()
        bad = both[~_covers(folder, rule, policy["stream"], both)]
        if len(bad):
            example = f"such as {bad.iloc[0]['cell']} for {bad.iloc[0]['value']}"
            misses.append(f"{len(bad)} ranges or labels of {name!r} do not cover the record's value, {example}")
    same = [*policy["anonymize"].get("sensitive", []), *policy["stream"].get("carry", [])]
    misses += _unchanged(released[[name for name in same if name in released and name not in quasi]], records)
    counts = {"classes": len(classes), "invented": invented, "hidden": hidden, "shown": shown}
    counts |= _exact_ends(released, records, own_class, quasi)
    return {"smallest": int(classes.min()) if len(classes) else None, **counts, "misses": misses}


def _filled_in(found: Mapping[str, Any], policy: Mapping[str, Any]) -> Iterator[str]:
    """Cells that show or hide what they should not by `missing`, where a record has no value or has one."""
    missing = policy["anonymize"].get("missing")
    if found["invented"] and missing not in ("covered", "paper"):
        yield f"{found['invented']} cells show what their record lacks"
    if found["hidden"] and missing == "own":
        yield f"{found['hidden']} cells hide what their record has, although each shows its own"


def _exact_ends(
    released: pd.DataFrame, records: pd.DataFrame, own_class: pd.Series, quasi: Mapping[str, Any]
) -> dict[str, int]:
    """How many ends of the ranges of numbers there are, and how many are the value of somebody in their class.

    A range over the whole domain says nothing, whoever is at its ends.
    """
    ends, exact = 0, 0
    for name, rule in quasi.items():
        if rule["kind"] != "numeric" or isinstance(rule["low"], str):
            continue
        values, both = _numbers(records[name]), released[name].str.extract(_RANGE).apply(_numbers)
        is_range = values.notna() & both.notna().all(axis=1)
        is_range &= (both[0] != rule["low"]) | (both[1] != rule["high"])
        for side in (0, 1):
            away = (values - both[side]).abs()[is_range].groupby(own_class[is_range]).min()
            ends, exact = ends + len(away), exact + int((away < natural_step(records[name]) / 2).sum())
    return {"ends": ends, "exact_ends": exact}


def natural_step(texts: pd.Series) -> float:
    """The unit that numbers are told in: 1 for ages, 1000 for rounded wages, 0.01 for metres."""
    known = texts.dropna()
    if known.str.fullmatch(r"[+-]?\d+(\.0*)?").all():
        numbers = _numbers(known)
        return float(next((tens for tens in (1000, 100, 10) if not (numbers % tens).any()), 1))
    return float(10.0 ** -known.str.extract(r"\.(\d*?)0*$")[0].str.len().max())


def _covers(folder: Path, rule: Mapping[str, Any], stream: Mapping[str, Any], pairs: pd.DataFrame) -> pd.Series:
    """Whether each published cell covers its record's value, after it was moved into the domain where the rule does."""
    if rule["kind"] == "numeric":
        values = pairs["value"]
        if isinstance(rule["low"], str) and (numbers := pd.to_numeric(values, errors="coerce")).notna().all():
            moments = pd.to_datetime(numbers, utc=True, unit=stream.get("time_unit", "s"))
            values = moments.map(lambda moment: moment.isoformat())
        is_moved = rule.get("outside") == "clamp"
        return ranges_cover(pairs["cell"], values, (rule["low"], rule["high"]) if is_moved else None)
    leaves = dict(_leaves(json.loads((folder / rule["hierarchy"]["path"]).read_text())))
    known = [
        cell == value or value in leaves.get(cell, ())
        for cell, value in zip(pairs["cell"], pairs["value"], strict=True)
    ]
    return pd.Series(known, pairs.index, dtype=bool)


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """Every label with the values below it."""
    for label, below in tree.items():
        if not below:
            yield label, {label}
            continue
        inner = list(_leaves(below))
        yield label, set().union(*(values for name, values in inner if name in below))
        yield from inner


def ranges_cover(cells: pd.Series, values: pd.Series, domain: tuple[Any, Any] | None = None) -> pd.Series:
    """Whether each `[low, high]`, or single value, covers a number or moment; values are moved into a `domain`."""
    ends = cells.str.extract(_RANGE)
    low, high = (ends[side].fillna(cells) for side in (0, 1))
    is_covered = pd.Series(data=False, index=cells.index)
    for read in (_numbers, _moments):
        points = read(values)
        if domain is not None:
            bounds = read(pd.Series([str(end) for end in domain]))
            points = points.clip(*bounds) if bounds.notna().all() else points
        is_covered |= (read(low) <= points) & (points <= read(high))
    return is_covered


def _numbers(texts: pd.Series) -> pd.Series:
    return pd.to_numeric(texts, errors="coerce")


def _moments(texts: pd.Series) -> pd.Series:
    is_number = _numbers(texts).notna()
    return pd.to_datetime(texts.mask(is_number), utc=True, errors="coerce", format="ISO8601")


def _broken_crowd(smallest: int | None, k: int, audit: Mapping[str, Any]) -> Iterator[str]:
    if smallest is None:
        return
    if smallest < k:
        yield f"a class has {smallest} people, and k is {k}"
    if audit["metrics"].get("smallest_k") not in (None, smallest):
        yield f"the smallest class has {smallest} people, the audit says {audit['metrics']['smallest_k']}"


def _unchanged(released: pd.DataFrame, records: pd.DataFrame, *, except_for: str | None = None) -> list[str]:
    """Columns that are published unchanged must be those of the record; numbers and times may be spelled anew."""
    found = []
    for name in released.columns.drop(except_for, errors="ignore").intersection(records.columns):
        differs = released[name] != records[name].fillna("")
        pairs = pd.DataFrame({"cell": released[name], "value": records[name].fillna("")})[differs].drop_duplicates()
        if not ranges_cover(pairs["cell"], pairs["value"]).all():
            found.append(f"{name!r} is published unchanged, but not as its record has it")
    return found


def identifiers(
    truth: pd.DataFrame, released: pd.DataFrame, records: pd.DataFrame, policy: Mapping[str, Any]
) -> Iterator[str]:
    """Published columns that name the person, or that name one row: exact values of a column in which all differ."""
    person = policy.get("stream", {}).get("person")
    for name in released.columns.intersection(truth.columns):
        if name == person:
            if policy["anonymize"]["method"] != "z-anonymity" or set(released[name]) & set(truth[name].dropna()):
                yield f"the person {name!r} is published"
            continue
        known = truth[name].dropna()
        exact = (released[name] == records[name]) & (released[name] != "")
        if len(known) >= FEW and known.is_unique and exact.any() and not _is_measure(name, known, policy):
            yield f"{name!r} has another value in every row and is published exactly in {int(exact.sum())} of them"


def _is_measure(name: str, known: pd.Series, policy: Mapping[str, Any]) -> bool:
    """Sensitive numbers with a fraction are counted by `exact_sensitive`; time is what events are published with."""
    if name == policy["stream"].get("time"):
        return True
    return name in policy["anonymize"].get("sensitive", []) and known.str.contains(r"\d\.\d").any()


def _exact_sensitive(released: pd.DataFrame, policy: Mapping[str, Any]) -> dict[str, int]:
    """Different values that sensitive and carried numbers are published with, unchanged."""
    named = [*policy["anonymize"].get("sensitive", []), *policy.get("stream", {}).get("carry", [])]
    numbers = {name: pd.to_numeric(released[name], errors="coerce") for name in named if name in released}
    return {name: int(found.nunique()) for name, found in numbers.items() if found.notna().mean() > 0.5}


def _of_one_person(truth: pd.Series, released: pd.Series, persons: pd.Series) -> int:
    """How many of the published numbers only one person has."""
    owners = persons.groupby(_numbers(truth)).nunique()
    return int(owners[owners == 1].index.isin(_numbers(released)).sum())


def _smallest_crowd(policy: Mapping[str, Any], truth: pd.DataFrame, rows: pd.Series) -> int | None:
    """Events: the fewest people that exposed a published value within the window up to it, of a sample of events."""
    stream, rule = policy["stream"], policy["anonymize"]
    times = truth[stream["time"]]
    if (numbers := pd.to_numeric(times, errors="coerce")).notna().any():
        at = pd.to_datetime(numbers, utc=True, unit=stream.get("time_unit", "s"))
    else:
        at = pd.to_datetime(times, utc=True, errors="coerce", format="ISO8601")
    all_events = pd.DataFrame({"at": at, "person": truth[stream["person"]], "value": truth[rule["attribute"]]})
    by_value = dict(list(all_events.groupby("value")))
    published = all_events.loc[rows].drop_duplicates(["at", "value"])
    crowds = []
    for event in published.sample(min(len(published), SAMPLE), random_state=0).itertuples():
        same = by_value[event.value]
        crowds.append(
            same.loc[same["at"].between(event.at - pd.Timedelta(rule["window"]), event.at), "person"].nunique()
        )
    return min(crowds, default=None)


def _of_sets(folder: Path, policy: Mapping[str, Any], truth: pd.DataFrame, released: pd.DataFrame) -> dict[str, Any]:
    """Sets: whether labels are those of the record's items, and how many records share a label or a pair of them."""
    rule, separator = policy["anonymize"], policy["source"].get("separator")
    sink = folder / policy["sink"]["path"]
    label_of = {
        item: label for label, items in json.loads(Path(f"{sink}.blocks.json").read_text()).items() for item in items
    }
    items = truth[rule["item"]].str.split(separator) if separator else truth[rule["item"]].map(lambda item: [item])
    labels = items.explode().str.strip().map(label_of).dropna()
    owners = whose(truth, policy)
    records = labels.groupby(owners.loc[labels.index].to_numpy(), sort=False).agg(set)
    published = released.iloc[:, 0].str.split("|", regex=False).map(set)
    problems = []
    if sorted(map(sorted, records)) != sorted(map(sorted, published)):
        problems.append("the published sets are not those of the records")
    together = Counter(known for one in published for size in (1, 2) for known in combinations(sorted(one), size))
    rare = sum(count < rule["k"] for count in together.values())
    if rare > (1 - rule.get("sigma", 0.99)) * len(together):
        problems.append(f"{rare} of {len(together)} labels and pairs of labels are in fewer than {rule['k']} records")
    if released.shape[1] != 1:
        problems.append("more than the sets is published")
    person = policy.get("stream", {}).get("person")
    return {"person": person, "smallest": min(together.values(), default=None), "problems": problems}
