"""Every attack on every method: python -m benchmarks.attack_matrix [--data FOLDER] [--anjana PYTHON] [--rows N]

Tuple methods and flexible k on Adult and on check-ins, z-anonymity on check-ins, k^m on baskets; in their default
settings apart from the size of the crowd. A tenth of the people is kept out of the data: the control group. K-VARP and
its kin read records with up to three missing values, also in the paper's mode. With --anjana (an interpreter that has
the package) also anjana's k-anonymity, with the hierarchies of its own example (`hierarchies_anjana` in the folder).
Without --data: imitations of the same streams.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

import shoal
from benchmarks.measure import Report, parse, parser
from benchmarks.real_data import folder_with
from benchmarks.sets_speed import data_files, tree_for
from benchmarks.tuple_streams import _READERS
from benchmarks.z_targets import checkins, visits
from shoal.auditor import AttackReport
from shoal.methods.registry import METHODS
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import PERSON, Stream, remove_values

KEY = bytes(16)
QUASI = ("age", "education-num", "hours-per-week", "marital-status", "workclass", "native-country", "race", "sex")
SENSITIVE = "occupation"
TUPLES: Mapping[str, Mapping[str, Any]] = {
    "least-loss": {}, "fads": {}, "fast": {}, "castle": {}, "k-varp": {}, "iot-anonymization": {},
    "k-varp, `missing = \"paper\"`": {"missing": "paper"},
}  # fmt: skip
OTHER = {"least-loss": "fads", "k-varp": "iot-anonymization", "iot-anonymization": "k-varp"}
"""The method of the second release; least-loss for all others."""
WITH_GAPS = ("k-varp", "iot-anonymization")
SHOWN = (
    "prosecutor", "marketer", "one unknown", "one wrong", "missing values", "predicate", "arrival",
    "arrival and values", "two windows", "several rows", "homogeneous class", "class mode",
    "rows that fit", "classifier", "range end", "range end, also shared", "two releases",
)  # fmt: skip
Z_SHOWN = (
    "whole released set", "1 known value", "2 known values", "4 known values", "one value and its time",
    "trajectory of 2", "trajectory of 4", "next epoch by behaviour", "value behind a label",
)  # fmt: skip
SET_SHOWN = (
    "1 known item", "2 known items", "3 known items", "5 known items", "whole record", "item behind a label",
    "minimality",
)  # fmt: skip


# ---- rows


def split(stream: Stream) -> tuple[pa.Table, pa.Table]:
    """The people in the data, and a tenth who are not."""
    people = np.array(stream.table.column(PERSON).to_pylist())
    names = np.random.default_rng(4).permutation(np.unique(people))
    outside = np.isin(people, names[: len(names) // 10])
    return stream.table.filter(pa.array(~outside)), stream.table.filter(pa.array(outside))


def publish(stream: Stream, method: str, settings: Mapping[str, Any]) -> list[Any]:
    """Publish the people of the stream who are in the data."""
    inside = split(stream)[0]
    made = METHODS[method].load()(stream.schema, key=KEY, **settings)
    return [made.push_batch(inside.select(made.input_schema.names)), made.flush()]


def attack_tuples(stream: Stream, method: str, settings: Mapping[str, Any], targets: int) -> AttackReport:
    """Publish the stream, by a second method, too, and attack the releases."""
    inside, outside = split(stream)
    parts = publish(stream, method, settings)
    other = publish(stream, OTHER.get(method, "least-loss"), {"k": settings["k"]})
    return shoal.attack(
        parts, inside, stream.policy(method, settings), trace=parts, other=other, control=outside, targets=targets
    )


def attack_flexible(stream: Stream, k: int, targets: int) -> AttackReport:
    """The same with flexible k, whose sparse attribute is the one with most labels, if there is one."""
    inside, outside = split(stream)
    sparse = [max(stream.trees, key=lambda name: len(str(stream.trees[name])))] if stream.trees else []
    method = shoal.FlexibleK(stream.schema, None, k=k, sparse=sparse, window=2000, key=KEY)
    parts = [method.push_batch(inside.select(method.input_schema.names)), method.flush()]
    policy = stream.policy("flexible-k", {"k": k, "sparse": sparse, "window": 2000})
    other = publish(stream, "least-loss", {"k": k})
    return shoal.attack(parts, inside, policy, trace=parts, other=other, control=outside, targets=targets)


def row_reports(stream: Stream, ks: Sequence[int], targets: int) -> Iterator[tuple[str, AttackReport]]:
    """Attack every method that publishes rows."""
    gaps = remove_values(stream, at_most=min(3, len(stream.quasi) - 1), seed=1)
    for name, settings in TUPLES.items():
        method = name.partition(",")[0]
        for k in ks:
            used = gaps if method in WITH_GAPS else stream
            yield f"{name} | {k}", attack_tuples(used, method, {"k": k, **settings}, targets)
            print(name, k, flush=True)
    for k in ks:
        yield f"flexible-k | {k}", attack_flexible(stream, k, targets)


def homes(stream: Stream) -> Stream:
    """Check-ins with the home of their person as the sensitive value: one of the 19 most common areas, or another."""
    table = stream.table
    person = np.unique(np.array(table.column(PERSON).to_pylist()), return_inverse=True)[1]
    lat, lon = (table.column(name).to_numpy() for name in ("lat", "lon"))
    middle = np.array(
        [[np.median(lat[person == one]), np.median(lon[person == one])] for one in range(person.max() + 1)]
    )
    area = np.unique(np.rint(middle * 40), axis=0, return_inverse=True)[1]
    order = np.argsort(-np.bincount(area[person]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    home = [f"area {one}" if one < 19 else "elsewhere" for one in rank[area[person]].tolist()]
    return replace(stream, table=table.append_column("home", pa.array(home)), sensitive=("home",))


def regions(stream: Stream) -> Stream:
    """The same with three regions, the largest of which has about 47% of the records, as in the hand-made figures."""
    home = np.array(stream.table.column("home").to_pylist())
    names, count = np.unique(home, return_counts=True)
    rank, shares = names[np.argsort(-count)], np.sort(count)[::-1].cumsum() / len(home)
    region = {name: "one" if share <= 0.47 else "two" if share <= 0.75 else "three"
              for name, share in zip(rank.tolist(), shares.tolist(), strict=True)}  # fmt: skip
    at = stream.table.column_names.index("home")
    column = pa.array([region[name] for name in home.tolist()])
    return replace(stream, table=stream.table.set_column(at, "home", column))


def imitated_checkins(rows: int) -> Stream:
    """People who are near a place of their own most of the time."""
    random = np.random.default_rng(2)
    person = random.integers(max(rows // 12, 2), size=rows)
    own = random.normal(size=(person.max() + 1, 2))
    place = own[person] + random.normal(scale=0.1, size=(rows, 2))
    columns = {
        PERSON: person, "lat": place[:, 0], "lon": place[:, 1], "hour": random.uniform(0, 24, rows),
        "weekday": random.integers(7, size=rows).astype(float),
    }  # fmt: skip
    domains = {name: (float(min(columns[name])), float(max(columns[name]))) for name in columns if name != PERSON}
    return Stream("check-ins", "synthetic check-ins", pa.table(columns), domains, {})


# ---- anjana, in an interpreter of its own

ANJANA = """
import json, sys
import pandas as pd
from anjana.anonymity import k_anonymity
order = json.load(sys.stdin)
data = pd.read_csv(order["path"], dtype=str, keep_default_na=False)
data["number"] = range(len(data))
trees = {name: pd.read_csv(path, header=None, dtype=str) for name, path in order["trees"].items()}
trees = {name: {level: table[level].to_numpy() for level in table} for name, table in trees.items()}
found = k_anonymity(data, [], list(trees), order["k"], order["suppressed"], trees)
found.to_csv(order["out"], index=False)
"""


def attack_anjana(python: str, folder: Path, k: int, targets: int) -> AttackReport:
    """Attack what anjana publishes of Adult, with at most 5% of the records suppressed."""
    trees = {
        "age": "age", "workclass": "workclass", "education": "education", "marital-status": "marital", "race": "race",
        "sex": "sex", "native-country": "country",
    }  # fmt: skip
    names = [
        "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
        "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "class",
    ]  # fmt: skip
    options = arrow_csv.ReadOptions(column_names=names)
    table = arrow_csv.read_csv(folder / "adult.data.gz", options).select([*trees, SENSITIVE])
    table = pa.table(
        {name: [str(one).strip() for one in table.column(name).to_pylist()] for name in table.column_names}
    )
    table = table.append_column(PERSON, pa.array([f"p{row}" for row in range(len(table))]))
    inside, outside = table.slice(0, 27_000), table.slice(27_000, 3_000)
    with tempfile.TemporaryDirectory() as made:
        path, out = Path(made) / "in.csv", Path(made) / "out.csv"
        arrow_csv.write_csv(inside.drop_columns([PERSON]), path)
        places = {name: str(folder / "hierarchies_anjana" / f"{file}.csv") for name, file in trees.items()}
        order = {"path": str(path), "out": str(out), "trees": places, "k": k, "suppressed": 5}
        subprocess.run(
            [python, "-c", ANJANA], input=json.dumps(order), text=True, check=True, stdout=subprocess.DEVNULL
        )
        shown = arrow_csv.read_csv(out, convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in (*trees, SENSITIVE)}, strings_can_be_null=False))  # fmt: skip
    quasi = {name: {"kind": "categorical", "hierarchy": {"kind": "csv", "path": place, "header": False}}
             for name, place in places.items()}  # fmt: skip
    rules = {"method": "least-loss", "k": k, "sensitive": [SENSITIVE], "quasi": quasi}
    rows = shown.column("number").to_numpy()
    trace = pa.table({"row": rows, "verdict": ["released"] * len(rows), "group": np.zeros(len(rows), np.int64)})
    policy = {"stream": {"person": PERSON}, "anonymize": rules}
    return shoal.attack(shown.drop_columns(["number"]), inside, policy, trace=trace, control=outside, targets=targets)


# ---- events and sets


def z_reports(
    table: pa.Table, windows: Sequence[str], zs: Sequence[int], targets: int
) -> Iterator[tuple[str, AttackReport]]:
    """Attack z-anonymity at several windows and z."""
    for window in windows:
        for z in zs:
            method = shoal.ZAnonymity(
                person="user", time="ts", attribute="site", z=z, window=window, max_gap="8760h", key=KEY
            )
            parts = [method.push_batch(table), method.flush()]
            policy = {
                "stream": {"person": "user", "time": "ts"},
                "anonymize": {
                    "method": "z-anonymity",
                    "attribute": "site",
                    "z": z,
                    "window": window,
                    "max_gap": "8760h",
                },
            }
            yield f"{window} | {z}", shoal.attack(parts, table, policy, trace=parts, targets=targets)
            print("z", window, z, flush=True)


def set_reports(path: Path, ks: Sequence[int], targets: int) -> Iterator[tuple[str, AttackReport]]:
    """Attack both methods on sets."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        records = [set(line.split()) for line in lines][:20_000]
    tree = tree_for(path)
    for name in ("k^m", "k^m-apriori"):
        for k in ks:
            method = METHODS[name].load()(k, 2, generalize=tree)
            result = method.anonymize(records)
            policy = {"stream": {"item": "items"}, "anonymize": {"method": name, "k": k, "m": 2}}
            yield f"{name} | {k}", shoal.attack(result, records, policy, targets=targets)
            print(name, k, flush=True)


# ---- tables

EXPECTED = (
    ("prosecutor", ".05–.08", "under .001", ""),
    ("arrival", ".21", ".03–.10", "measured before the order of rows was made secret"),
    ("range end", ".75", ".13–.21", "an end that no other of the class has"),
    ("range end, also shared", ".75", ".13–.21", ""),
    ("homogeneous class", ".05", "0", "three regions, the most common one about .47"),
    ("class mode", ".65", ".52", "the same"),
    ("several rows", ".91", ".06", "expected with a base of .05"),
)  # fmt: skip
"""Orders of magnitude from a first matrix made by hand, on other check-ins and logs: k = 5, k = 50, a remark."""


def compared(reports: Mapping[str, AttackReport], ks: Sequence[int]) -> list[list[str]]:
    """A line for every attack: what was expected, and the least and the most over some methods."""
    found = []
    for name, *expected, remark in EXPECTED:
        line = [name]
        for k, figure in zip(ks, expected, strict=False):
            rates = [one[name].success.value for what, one in reports.items() if what.endswith(f"| {k}")]
            line += [figure, f"{min(rates):.3f}–{max(rates):.3f}"]
        guess = max(one[name].guess or 0.0 for one in reports.values())
        found.append([*line, f"{guess:.3f}", remark])
    return found


def lines(reports: Sequence[tuple[str, AttackReport]], shown: Sequence[str]) -> list[list[str]]:
    """A line for every release; below, the least and the most that guessing, the control group and raw data give."""
    found = [[*name.split(" | "), *(_cell(report, attack) for attack in shown)] for name, report in reports]
    for title, side in (("*guess*", "guess"), ("*control*", "control"), ("*raw data*", "raw")):
        found.append([title, "", *(_side(reports, attack, side) for attack in shown)])
    return found


def _cell(report: AttackReport, name: str) -> str:
    try:
        rate = report[name].success
    except KeyError:
        return "–"
    return "–" if rate is None else f"{rate.value:.3f}"


def _side(reports: Sequence[tuple[str, AttackReport]], name: str, side: str) -> str:
    values = [getattr(report[name], side) for _, report in reports if any(one.name == name for one in report.attacks)]
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "–"
    low, high = f"{min(numbers):.3f}", f"{max(numbers):.3f}"
    return low if low == high else f"{low}–{high}"


def write(
    report: Report, name: str, title: Sequence[str], reports: Sequence[tuple[str, AttackReport]], shown: Sequence[str]
) -> None:
    """Add a table, and all rates with their intervals."""
    report.table(name, [*title, *shown], lines(reports, shown))
    report.figures[name] = {what: [attack.to_dict() for attack in one.attacks] for what, one in reports}


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack everything and print the matrix."""
    options = parser(__doc__, data="adult.data, checkins.csv and BMS-WebView-2.dat")
    options.add_argument("--rows", type=int, help="rows of each stream (default: 30,000; 400 when tiny)")
    options.add_argument("--anjana", help="an interpreter that has the package anjana")
    given = parse(options, arguments)
    given.words = ["PYTHON" if word == given.anjana else word for word in given.words]
    rows = given.rows or (400 if given.tiny else 30_000)
    targets, ks = (40, (5,)) if given.tiny else (1000, (5, 50))
    folder = folder_with(given.data, "adult.data")
    adult = (_READERS["adult"][1](folder, rows) if folder else imitate_adult(rows, seed=1)).head(rows)
    report = Report(
        __file__, given, data=f"{adult.origin}" + ("; Gowalla check-ins, New York; BMS-WebView-2" if given.data else "")
    )
    found = list(row_reports(adult.narrowed(QUASI, [SENSITIVE]), ks, targets))
    if given.anjana and folder:
        found += [(f"anjana | {k}", attack_anjana(given.anjana, folder, k, targets)) for k in ks]
    write(report, "adult", ["method", "k"], found, SHOWN)
    place = folder_with(given.data, "checkins.csv")
    stream = _READERS["check-ins"][1](place, rows) if place else imitated_checkins(rows)
    write(report, "checkins", ["method", "k"], list(row_reports(homes(stream), ks, targets)), SHOWN)
    few = {f"{name} | {k}": attack_tuples(regions(homes(stream)), name, {"k": k}, targets)
           for name in ("least-loss", "fads", "castle") for k in ks}  # fmt: skip
    title = [f"{what}k = {k}" for k in ks for what in ("expected, ", "found, ")]
    report.table("expected", ["attack", *title, "guess up to", "remark"], compared(few, ks))
    events = checkins(given.data) if given.data else visits(60, 1500)
    assert events is not None
    windows, zs = (("1h",), (3,)) if not place else (("24h", "168h"), (5, 20, 100))
    write(report, "z", ["window", "z"], list(z_reports(events, windows, zs, targets)), Z_SHOWN)
    with data_files(given.data, ["BMS-WebView-2"], tiny=given.tiny) as paths:
        write(report, "sets", ["method", "k"], list(set_reports(paths[0], ks, targets)), SET_SHOWN)
    report.write()


if __name__ == "__main__":
    main()
