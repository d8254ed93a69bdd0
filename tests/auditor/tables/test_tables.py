"""Plain tables of any tool, compared with pycanon, with simple counting, and over all ways of reading them."""

from __future__ import annotations

import gzip
import math
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pycanon import anonymity

import shoal
from shoal import audit_table
from shoal.auditor.tables import audit
from shoal.errors import InputError, PolicyError

QUASI = ["age", "home", "job"]


def table(seed: int, rows: int = 150) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": draw.integers(0, rows // 2, rows),
            "age": draw.integers(0, 3, rows).astype(str),
            "home": draw.integers(0, 2, rows),
            "job": draw.choice(list("xyz"), rows, p=[0.8, 0.1, 0.1]),
            "ill": draw.choice(list("abcdef"), rows, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05]),
            "dose": draw.choice([1, 2, 3, 5, 8, 13], rows),
        }
    )


def codes(report) -> dict[str, int]:
    return {found.code: found.count for found in report.violations}


@pytest.mark.parametrize("seed", range(3))
def test_as_pycanon_measures(seed):
    frame = table(seed)
    found = audit_table(frame, quasi=QUASI, sensitive=["ill", "dose"]).metrics
    assert found["smallest_k"] == anonymity.k_anonymity(frame, QUASI)
    for name in ("ill", "dose"):
        assert found["l"][name] == anonymity.l_diversity(frame, QUASI, [name])
        assert found["t"][name] == pytest.approx(anonymity.t_closeness(frame, QUASI, [name]), abs=1e-9)
        assert found["alpha"][name] == pytest.approx(anonymity.alpha_k_anonymity(frame, QUASI, [name])[0])
        assert found["beta"][name] == pytest.approx(anonymity.basic_beta_likeness(frame, QUASI, [name]))
        # pycanon cuts to a whole number, one lower where rounding falls just below
        even = found["entropy_l"][name]
        assert anonymity.entropy_l_diversity(frame, QUASI, [name]) in {int(even - 1e-9), int(even + 1e-9)}
    assert found["t_distance"] == {"ill": "equal", "dose": "ordered"}
    assert found["l"]["ill"] == len(np.unique(frame["ill"])) or found["t"]["ill"] > 0


# ---- by simple counting


def classes_of(frame: pd.DataFrame, quasi=QUASI):
    found = defaultdict(list)
    for row in frame.to_dict("records"):
        found[tuple(str(row[name]) for name in quasi)].append(row)
    return list(found.values())


@pytest.mark.parametrize("seed", range(8))
def test_people_and_bounds(seed):
    frame = table(seed)
    classes = classes_of(frame)
    people = [len({row["id"] for row in rows}) for rows in classes]
    k = sorted(people)[len(people) // 2]
    small = [rows for rows, count in zip(classes, people, strict=True) if count < k]
    report = audit_table(frame, quasi=QUASI, sensitive="ill", person="id", k=k, l=3)
    assert report.metrics["smallest_k"] == min(people)
    assert codes(report).get("below-k", 0) == sum(map(len, small))
    exposed = {row["id"] for rows in small for row in rows}
    assert report.metrics["people_below_k_share"] == len(exposed) / frame["id"].nunique()
    few = [rows for rows in classes if len({row["ill"] for row in rows}) < 3]
    assert codes(report).get("below-l", 0) == sum(map(len, few))


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_recursive_l(seed, least):
    frame, worst, c, broken = table(seed), 0.0, 1.5, 0
    for rows in classes_of(frame):
        counts = sorted(Counter(row["ill"] for row in rows).values(), reverse=True)
        tail = sum(counts[least - 1 :])
        ratio = counts[0] / tail if tail else math.inf
        worst, broken = max(worst, ratio), broken + len(rows) * (not ratio < c)
    report = audit_table(frame, quasi=QUASI, sensitive="ill", recursive_l=(c, least))
    assert report.metrics["recursive_c"]["ill"] == (pytest.approx(worst) if math.isfinite(worst) else None)
    assert codes(report).get("below-recursive-l", 0) == broken


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_any_m_known_values(m, person):
    frame = table(3)
    sizes = [
        len(rows) if person is None else len({row["id"] for row in rows})
        for names in combinations(QUASI, m)
        for rows in classes_of(frame, names)
    ]
    report = audit_table(frame, quasi=QUASI, person=person, k=12, m=m)
    assert report.metrics["smallest_k_knowing_m"] == min(sizes)
    assert report.metrics["combinations_of_m"] == len(sizes)
    assert codes(report).get("below-k-knowing-m", 0) == sum(size < 12 for size in sizes)


def test_presence():
    everyone = table(5)
    released = everyone[(everyone["age"] != "2")].iloc[::3]
    here, there = (
        Counter(zip(*(part[name].astype(str) for name in QUASI), strict=True)) for part in (released, everyone)
    )
    shares = {key: here[key] / there[key] for key in there}
    report = audit_table(released, quasi=QUASI, population=everyone, presence=(0.1, 0.4))
    assert report.metrics["presence"] == {"least": min(shares.values()), "largest": max(shares.values())}
    assert codes(report)["outside-presence"] == sum(
        there[key] for key, share in shares.items() if not 0.1 <= share <= 0.4
    )
    assert "not-in-population" not in codes(report)


def test_a_population_that_is_not_everyone():
    frame = table(5)
    report = audit_table(frame, quasi=QUASI, population=frame[frame["age"] != "2"])
    assert codes(report) == {"not-in-population": int((frame["age"] == "2").sum())}


def test_bounds_hold_at_their_value_and_break_beyond():
    frame = table(2)
    found = audit_table(frame, quasi=QUASI, sensitive=["ill"]).metrics
    exact = {name: found[name]["ill"] for name in ("l", "entropy_l", "t", "alpha", "beta")} | {"k": found["smallest_k"]}
    assert audit_table(frame, quasi=QUASI, sensitive=["ill"], **exact).ok
    worse = {"l": 1, "k": 1, "entropy_l": 0.01, "t": -0.01, "alpha": -0.01, "beta": -0.01}
    for name, step in worse.items():
        report = audit_table(frame, quasi=QUASI, sensitive=["ill"], **exact | {name: exact[name] + step})
        assert len(codes(report)) == 1


# ---- reading


def as_files(frame: pd.DataFrame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_json(folder / "t.jsonl", orient="records", lines=True)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    pq.write_table(pa.Table.from_pandas(frame), folder / "t.parquet", row_group_size=37)
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_file(folder / "t.arrow", whole.schema) as file:
        file.write_table(whole, max_chunksize=41)
    with pa.ipc.new_stream(folder / "t.arrows", whole.schema) as stream:
        stream.write_table(whole, max_chunksize=41)
    return ["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.parquet", "t.arrow", "t.arrows"]


def test_every_format_gives_the_same(tmp_path):
    frame = table(1)
    asked = {"quasi": QUASI, "sensitive": ["ill", "dose"], "person": "id", "k": 5, "m": 2}
    expected = audit_table(frame, **asked).to_dict()
    for name in as_files(frame, tmp_path):
        assert audit_table(tmp_path / name, **asked).to_dict() == expected, name
    padded = " age" + (tmp_path / "t.csv").read_text().split("age", 1)[1].replace("job,", " job ,", 1)
    (tmp_path / "padded.csv").write_text("id," + padded)
    assert audit_table(tmp_path / "padded.csv", **asked).to_dict() == expected
    halves = [frame.iloc[:70], pa.Table.from_pandas(frame.iloc[70:])]
    assert audit_table(halves, **asked).to_dict() == expected


def test_a_table_larger_than_the_memory_gives_the_same(tmp_path):
    frame = table(1, rows=2000)
    asked = {"quasi": QUASI, "sensitive": ["ill", "dose"], "person": "id", "k": 5, "m": 2, "population": frame}
    pieces = [frame.iloc[at : at + 100] for at in range(0, 2000, 100)]
    assert audit_table(pieces, **asked, max_memory=250_000).to_dict() == audit_table(frame, **asked).to_dict()


def test_rows_go_to_disk_and_leave_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    looked, seen = audit.look_at_classes, []

    def look_at_classes(*given, **named):
        seen.append([len(list(folder.iterdir())) for folder in tmp_path.iterdir()])
        return looked(*given, **named)

    monkeypatch.setattr(audit, "look_at_classes", look_at_classes)
    audit_table(table(1, rows=2000), quasi=QUASI, max_memory=50_000)
    assert seen == [[3]] * 64  # one folder, with a file for each column
    assert list(tmp_path.iterdir()) == []


def test_a_missing_value_is_a_value_of_its_own():
    frame = pd.DataFrame({"age": ["a", "a", None, None, ""], "ill": list("uuuuu")})
    report = audit_table(pa.Table.from_pandas(frame), quasi="age", k=2)
    assert report.metrics["classes"] == 3
    assert codes(report) == {"below-k": 1}


def test_a_row_without_a_person_is_nobody():
    frame = pa.table({"who": ["ada", "bob", None, None], "age": ["1", "1", "1", "2"]})
    report = audit_table(frame, quasi="age", person="who", k=2)
    assert report.metrics["smallest_k"] == 0
    assert report.metrics["released_people"] == 2
    assert codes(report) == {"below-k": 1}


def test_suppressed_rows_do_not_count():
    frame = pa.table({"age": ["1", "1", "*", "*"], "home": ["x", "*", "*", "*"], "ill": ["1", "2", "3", "9"]})
    report = audit_table(frame, quasi=["age", "home"], sensitive="ill", suppressed="*")
    assert (report.metrics["released_rows"], report.metrics["suppressed_rows"]) == (4, 2)
    assert (report.metrics["classes"], report.metrics["smallest_k"]) == (2, 1)
    assert report.metrics["t"]["ill"] == 0.5  # the values of suppressed rows are not a part of the table


def test_columns_with_very_many_values():
    rows = 3000
    frame = pa.table({f"q{n}": [str(row * (n + 1) % rows) for row in range(rows)] for n in range(8)})
    assert 3000.0**8 > 2**62
    report = audit_table(pa.concat_tables([frame, frame]), quasi=[f"q{n}" for n in range(8)], k=2)
    assert report.ok
    assert report.metrics["classes"] == rows


DIFFERENT = [
    ["18446744073709551616", "18446744073709551617"],
    ["0.1000000000000000001", "0.1000000000000000002"],
    ["01000", "1000"],
    ["true", "TRUE"],
    ["1990-01-01", "1990-01-01T00:00:00"],
    ["NA", ""],
]


@pytest.mark.parametrize("name", ["zip", " zip", '" zip "', "\ufeffzip"])
@pytest.mark.parametrize("values", DIFFERENT, ids=" ".join)
def test_texts_that_are_spelt_differently_are_different(tmp_path, name, values):
    (tmp_path / "t.csv").write_text("\n".join([f"{name},age", *(f"{value},39" for value in values)]) + "\n")
    assert codes(audit_table(tmp_path / "t.csv", quasi=["zip", "age"], k=2)) == {"below-k": 2}


@pytest.mark.parametrize(
    "values",
    [
        [b"\xff\x01", b"\xff\x02"],
        [1, "1"],
        [1, 1.0],
        [True, "true"],
        [float("nan"), None],
        [[1, 2], [2, 1]],
        [{"a": 1}, {"a": 2}],
    ],
    ids=str,
)
def test_what_a_reader_can_tell_apart_is_different(values):
    parts = [pa.table({"zip": [value]}) for value in values]
    assert codes(audit_table(parts, quasi="zip", k=2)) == {"below-k": 2}


def test_values_of_different_types_in_json(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"zip": 1}\n{"zip": "1"}\n{"zip": 1.0}\n{"zip": true}\n{"zip": null}\n')
    report = audit_table(tmp_path / "t.jsonl", quasi="zip", k=2)
    assert report.metrics["classes"] == 5


def test_an_empty_line_of_one_column_is_a_missing_value(tmp_path):
    (tmp_path / "t.csv").write_text("zip\n1\n1\n\n")
    assert codes(audit_table(tmp_path / "t.csv", quasi="zip", k=2)) == {"below-k": 1}


def test_columns_that_are_not_asked_for_do_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.auditor.reading.batches._BLOCK", 300)
    rows = ["age,note", *["39,"] * 200, *["39,some text"] * 5]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    assert audit_table(tmp_path / "t.csv", quasi="age", k=205).ok


def test_texts_that_are_not_utf_8():
    bad = pa.array([b"M\xfcnchen", b"K\xf6ln"], pa.binary()).view(pa.string())
    with pytest.raises(InputError, match="column town: has texts that are not UTF-8"):
        audit_table(pa.table({"town": bad}), quasi="town", k=1)


@pytest.mark.parametrize("text", [b"town,gr\xf6\xdfe\nKiel,1\n", b"town\xff\nKiel\n"])
def test_a_header_that_is_not_utf_8(tmp_path, text):
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(InputError, match=r"t\.csv: .*not in UTF-8"):
        audit_table(tmp_path / "t.csv", quasi="town", k=1)


def test_without_a_promise_nothing_is_called_kept():
    report = audit_table(table(1), quasi=QUASI)
    assert report.text().startswith("audit of table: promise could not be checked: nothing is promised")
    assert "Nothing is promised" in report.not_checked[0]


def test_an_empty_table():
    report = audit_table(
        pa.table({"age": pa.array([], pa.string()), "ill": []}), quasi="age", sensitive="ill", k=2, m=1
    )
    assert report.ok
    assert [found.code for found in report.warnings] == ["no-rows"]
    assert report.metrics["smallest_k"] is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"quasi": []}, "name the quasi-identifiers"),
        ({"quasi": ["age"], "sensitive": ["age"]}, "named twice"),
        ({"quasi": ["age"], "l": 2}, "name them with sensitive"),
        ({"quasi": ["age"], "k": 0}, "k: must be a whole number"),
        ({"quasi": ["age"], "k": 2, "m": 2}, "at most 1"),
        ({"quasi": ["age"], "m": 1}, "needs k"),
        ({"quasi": ["age"], "sensitive": ["ill"], "t": 2}, "t: must be a number from 0 to 1"),
        ({"quasi": ["age"], "sensitive": ["ill"], "t_distance": "far"}, "one of ordered, equal"),
        ({"quasi": ["age"], "sensitive": ["ill"], "t_distance": "ordered"}, "not numbers"),
        ({"quasi": ["age"], "sensitive": ["ill"], "recursive_l": 3}, "give c and l"),
        ({"quasi": ["age"], "presence": [0, 1]}, "needs population"),
        ({"quasi": ["age"], "presence": [1, 0], "population": "x"}, "least and the largest"),
        ({"quasi": ["age"], "kk": 2}, "no such key"),
    ],
)  # fmt: skip
def test_wrong_promises(asked, words):
    with pytest.raises(PolicyError, match=words):
        audit_table(pa.table({"age": ["1"], "ill": ["flu"]}), **asked)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b"age,ill\nsecret,flu\nsecret\n"),
        ("t.jsonl", b'{"age": "secret"}\n{"age"\n'),
        ("t.parquet", b"PAR1secret"),
    ],
)
def test_damaged_files_are_named_without_their_values(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name) as caught:
        audit_table(tmp_path / name, quasi="age")
    assert "secret" not in str(caught.value)


def test_a_missing_column(tmp_path):
    (tmp_path / "t.csv").write_text("age,ill\n1,flu\n")
    with pytest.raises(InputError, match="no column zip"):
        audit_table(tmp_path / "t.csv", quasi=["age", "zip"])


def test_from_a_policy_file(tmp_path):
    table(1).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "p.toml").write_text(
        '[table]\nquasi = ["age", "home"]\npopulation = "t.csv"\nk = 2\npresence = [1.0, 1.0]\n'
    )
    assert shoal.audit(tmp_path / "t.csv", policy=tmp_path / "p.toml").ok
