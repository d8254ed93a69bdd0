"""The recount of releases of public files: it accepts a release that keeps its promises and reports each broken one."""

from __future__ import annotations

import json
from itertools import count

import pandas as pd
import pytest
from benchmarks.public_recount import natural_step, ranges_cover, recount
from benchmarks.public_source import read_source

POLICY = """
[stream]
person = "id"
[source]
kind = "csv"
path = "in.csv"
nulls = ["NA"]
[anonymize]
method = "least-loss"
k = 2
sensitive = ["illness"]
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 60
outside = "clamp"
[anonymize.quasi.town]
kind = "categorical"
hierarchy = {kind = "nested", path = "towns.json"}
[sink]
kind = "csv"
path = "released.csv"
[trace]
path = "trace.parquet"
"""
SOURCE = """,id,age,town,illness
1,a,30,Ulm,flu
2,b,34,Bonn,flu
3,a,31,Ulm,asthma
4,c,90,Ulm,flu
5,d,58, NA,asthma
6,e,12,Kiel,flu
"""
RELEASED = [
    ["[50, 60]", "Ulm", "flu"],
    ["[50, 60]", "", "asthma"],
    ["[30, 40]", "all", "flu"],
    ["[30, 40]", "all", "flu"],
    ["[30, 40]", "all", "asthma"],
]
ROWS = [3, 4, 0, 1, 2]
COLUMNS = ["age", "town", "illness"]


@pytest.fixture
def release(tmp_path):
    """A release of five of six records in two classes, which the recount is asked about with changes."""
    (tmp_path / "in.csv").write_text(SOURCE)
    (tmp_path / "towns.json").write_text(json.dumps({"all": {"south": {"Ulm": None}, "Bonn": None, "Kiel": None}}))

    def ask(cells=RELEASED, columns=COLUMNS, policy=POLICY, smallest=2, extra=None, **summary):
        (tmp_path / "policy.toml").write_text(policy)
        if extra is not None:
            records = zip(SOURCE.splitlines(), ["exact", *extra], strict=True)
            (tmp_path / "in.csv").write_text("\n".join(f"{line},{more}" for line, more in records))
        pd.DataFrame(cells, columns=columns).to_csv(tmp_path / "released.csv", index=False)
        verdicts = ["released"] * len(ROWS) + ["suppressed"]
        pd.DataFrame({"row": [*ROWS, 5], "verdict": verdicts}).to_parquet(tmp_path / "trace.parquet")
        told = {"rows_in": 6, "released": 5, "suppressed": 1, "dead": 0, "pending": 0, **summary}
        return recount(tmp_path, tmp_path / "in.csv", told, {"metrics": {"smallest_k": smallest}})

    return ask


def changed(row, column, cell):
    cells = [list(one) for one in RELEASED]
    cells[row][COLUMNS.index(column)] = cell
    return cells


TOGETHER = changed(0, "town", "")
"""The first two rows in one class, as the others are: two people each."""


def test_a_release_that_keeps_its_promises(release):
    found = release(TOGETHER)
    assert found["problems"] == []
    assert (found["smallest"], found["classes"], found["persons"], found["invented"]) == (2, 2, 4, 0)


def test_a_class_below_k(release):
    found = release(smallest=1)
    assert found["problems"] == ["a class has 1 people, and k is 2"]


def test_people_are_counted_and_not_rows(release):
    cells = changed(0, "town", "")
    cells[3][0] = "[31, 40]"  # leaves two rows of one person in their class
    found = release(cells, smallest=1)
    assert "a class has 1 people, and k is 2" in found["problems"]


def test_the_audit_says_another_figure(release):
    assert release(TOGETHER, smallest=3)["problems"] == ["the smallest class has 2 people, the audit says 3"]


def test_a_range_that_misses_its_value(release):
    cells = [["[32, 40]", *row[1:]] if row[0] == "[30, 40]" else row for row in TOGETHER]
    [problem] = release(cells)["problems"]
    assert "2 ranges or labels of 'age' do not cover" in problem


def test_a_value_is_covered_only_where_the_policy_moves_it_into_the_domain(release):
    [problem] = release(TOGETHER, policy=POLICY.replace('outside = "clamp"', ""))["problems"]
    assert "'age' do not cover the record's value, such as [50, 60] for 90" in problem


def test_a_label_that_misses_its_value(release):
    cells = [[row[0], "south", row[2]] if row[1] == "all" else row for row in TOGETHER]
    [problem] = release(cells)["problems"]
    assert "1 ranges or labels of 'town' do not cover" in problem


def test_an_invented_cell(release):
    cells = [[row[0], "Ulm", row[2]] if row[1] == "" else row for row in TOGETHER]
    assert release(cells)["problems"] == ["1 cells show what their record lacks"]
    allowed = release(cells, policy=POLICY.replace("k = 2", 'k = 2\nmissing = "covered"'))
    assert (allowed["problems"], allowed["invented"]) == ([], 1)


def test_a_cell_that_is_hidden_although_each_shows_its_own(release):
    own = POLICY.replace("k = 2", 'k = 2\nmissing = "own"')
    cells = [[*row[:1], "", row[2]] if row[1] == "all" else row for row in TOGETHER]
    assert release(cells)["problems"] == []
    assert release(cells, policy=own)["problems"] == ["4 cells hide what their record has, although each shows its own"]


def test_rows_that_show_nothing_are_a_class_of_their_own(release):
    cells = changed(3, "town", "")
    found = release(cells, smallest=1)
    assert (found["classes"], found["smallest"]) == (4, 1)


def test_a_sensitive_column_may_be_published_as_ranges(release):
    policy = POLICY.replace('"illness"]', '"illness", "age"]')
    found = release(TOGETHER, policy=policy)
    assert (found["problems"], found["exact_sensitive"]) == ([], {})


def test_exact_numbers_and_those_that_one_person_has(release):
    """Of 5, 6 and 7: 5 and 7 are of two people each, 6 is of one alone, and 9 was not published."""
    policy = POLICY.replace('"illness"]', '"illness", "exact"]')
    found = release([[*row, age] for row, age in zip(TOGETHER, [5, 6, 5, 7, 7], strict=True)], [*COLUMNS, "exact"],
                    policy=policy, extra=[5, 7, 7, 5, 6, 9])  # fmt: skip
    assert found["problems"] == []
    assert (found["exact_sensitive"], found["of_one_person"]) == ({"exact": 3}, {"exact": 1})


def test_ends_of_ranges_that_are_exact_values(release):
    """Of 50 to 60 (58 and 90) none is; of 30 to 40 (30, 34 and 31) the lower one is."""
    found = release(TOGETHER)
    assert (found["ends"], found["exact_ends"]) == (4, 1)


@pytest.mark.parametrize(
    ("texts", "step"), [(["1", "27"], 1), (["1000", "27000", None], 1000), (["1.5", "2.25", "3"], 0.01), (["4.0"], 1)]
)
def test_the_natural_step(texts, step):
    assert natural_step(pd.Series(texts)) == pytest.approx(step)


def test_a_sensitive_value_of_another_record(release):
    cells = [list(row) for row in TOGETHER]
    cells[0][2] = "asthma"
    assert release(cells)["problems"] == ["'illness' is published unchanged, but not as its record has it"]


def test_a_published_person(release):
    cells = [[*row, "abcde"[place]] for place, row in enumerate(TOGETHER)]
    assert "the person 'id' is published" in release(cells, [*COLUMNS, "id"])["problems"]


def test_a_published_column_that_names_rows(release, monkeypatch):
    monkeypatch.setattr("benchmarks.public_recount.FEW", 6)
    cells = [[*row, str(number + 1)] for row, number in zip(TOGETHER, ROWS, strict=True)]
    [problem] = release(cells, [*COLUMNS, "column1"])["problems"]
    assert problem == "'column1' has another value in every row and is published exactly in 5 of them"


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        ({"rows_in": 7, "suppressed": 2}, "pandas reads 6 records, the run 7"),
        ({"suppressed": 0}, "6 rows in, but 5 released, suppressed, refused or pending"),
        ({"released": 4, "dead": 1}, "the release has 5 rows, the run says 4"),
    ],
)
def test_rows_that_are_lost(release, summary, problem):
    assert release(TOGETHER, **summary)["problems"] == [problem]


@pytest.mark.parametrize(
    ("cell", "value", "clamp", "is_covered"),
    [
        ("[1, 2]", "2.0", None, True), ("[1, 2]", "2.1", None, False), ("[-5, -1]", "-3", None, True),
        ("3", "3.0", None, True), ("[1, 2]", "x", None, False), ("[1, 2]", "7", (0, 2), True),
        ("[2024-01-01T00:00:00Z, 2024-02-01T00:00:00Z]", "2024-01-05", None, True),
        ("[2024-01-01T00:00:00Z, 2024-02-01T00:00:00Z]", "2024-02-05", None, False),
        ("[2024-01-01T00:00:00Z, 2024-02-01T00:00:00Z]", "2025-02-05", ("2024-01-01", "2024-02-01"), True),
    ],
)  # fmt: skip
def test_ranges(cell, value, clamp, is_covered):
    assert ranges_cover(pd.Series([cell]), pd.Series([value]), clamp).tolist() == [is_covered]


@pytest.mark.parametrize(
    ("text", "source", "names", "first"),
    [
        (",a,a,a_2,\n1,2,3,4,5\n", {}, ["column1", "a", "a_3", "a_2", "column5"], ["1", "2", "3", "4", "5"]),
        ("a b\n1 2 3\n", {"header": "short", "delimiter": " "}, ["column1", "a", "b"], ["1", "2", "3"]),
        ("1,?\n", {"header": ["x", "y"], "nulls": ["?"]}, ["x", "y"], ["1", None]),
        ("x,y,z\n9,9,-\n", {"nulls": {"y": ["9"]}}, ["x", "y", "z"], ["9", None, "-"]),
        ("x;y;z\n1.234,5;1,5;1.5\n", {"delimiter": ";", "decimal": ",", "types": {"x": "float64", "z": "float64"}},
         ["x", "y", "z"], ["1234.5", "1,5", "1.5"]),
        ("x,y\n3.4.2024,31.02.2024 1:30\n", {"dates": {"x": "DD.MM.YYYY", "y": "DD.MM.YYYY"}}, ["x", "y"],
         ["2024-04-03", "31.02.2024 1:30"]),
        ("x,y\n04/03/2024 07:30,20240403\n", {"dates": {"x": "MM/DD/YYYY", "y": "YYYYMMDD"}}, ["x", "y"],
         ["2024-04-03T07:30", "2024-04-03"]),
        ("größe\nÖl\n", {"encoding": "cp1252"}, ["größe"], ["Öl"]),
    ],
)  # fmt: skip
def test_a_source_is_read_as_its_policy_says(tmp_path, text, source, names, first):
    (tmp_path / "in.csv").write_text(text, encoding=source.get("encoding", "utf-8"))
    read = read_source(tmp_path / "in.csv", {"source": source})
    assert list(read.columns) == names
    read = read.astype(object).where(read.notna(), None)
    assert read.iloc[0].tolist() == first


def test_events_whose_crowd_is_too_small(tmp_path):
    (tmp_path / "policy.toml").write_text(
        '[stream]\nperson = "user"\ntime = "time"\n[source]\n[anonymize]\nmethod = "z-anonymity"\nattribute = "page"\n'
        'z = 2\nwindow = "1h"\n[sink]\npath = "released.csv"\n[trace]\npath = "trace.parquet"\n'
    )
    times = [f"2024-01-01T{hour:02}:00:00Z" for hour in (1, 2, 5)]
    (tmp_path / "in.csv").write_text("\n".join(["time,user,page", *(f"{at},{at[12]},p" for at in times)]) + "\n")
    told = {"rows_in": 3, "suppressed": 0, "dead": 0, "pending": 0}

    def ask(rows):
        number = count()
        cells = [[times[row], f"pseudonym{next(number)}", "p"] for row in rows]
        pd.DataFrame(cells, columns=["time", "user", "page"]).to_csv(tmp_path / "released.csv", index=False)
        verdicts = ["released" if row in rows else "suppressed" for row in range(3)]
        pd.DataFrame({"row": range(3), "verdict": verdicts}).to_parquet(tmp_path / "trace.parquet")
        summary = {**told, "released": len(rows), "suppressed": 3 - len(rows)}
        return recount(tmp_path, tmp_path / "in.csv", summary, {"metrics": {}})

    assert ask([1])["problems"] == []
    assert ask([1, 2])["problems"] == ["a value of 1 people was published, and z is 2"]


def test_sets(tmp_path):
    (tmp_path / "policy.toml").write_text(
        '[stream]\nperson = "user"\n[source]\n[anonymize]\nmethod = "k^m"\nitem = "site"\nk = 2\nm = 2\n'
        '[sink]\npath = "released.csv"\n[trace]\npath = "trace.parquet"\n'
    )
    (tmp_path / "in.csv").write_text("user,site\na,x\na,y\nb,x\nb,z\nc,y\n")
    (tmp_path / "released.csv.blocks.json").write_text(json.dumps({"x": ["x"], "yz": ["y", "z"]}))
    pd.DataFrame({"row": [0, 1, 2], "position": [0, 1, 2]}).to_parquet(tmp_path / "trace.parquet")
    found = {}
    for last in ("yz", "x"):
        (tmp_path / "released.csv").write_text(f"items\nx|yz\nx|yz\n{last}\n")
        found[last] = recount(tmp_path, tmp_path / "in.csv", {}, {"metrics": {}})
    assert found["yz"] == {"person": "user", "smallest": 2, "problems": []}
    assert found["x"]["problems"] == ["the published sets are not those of the records"]
