"""Sets from files to files: formats, bad rows, the certificate, and that a release is complete or absent."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.crypto.keys import as_secret
from shoal.encode.sealed import is_sealed_trace, read_sealed_trace
from shoal.errors import OutputError, ShoalError
from shoal.observe.counts import SetSummary
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from tests.e2e.scene import CANARY, Ended, Scene, encode, shoal

TREE = {"all": {"ab": ["a", "b"], "cd": ["c", "d"], "ef": ["e", "f"]}}
SETS = {
    f"p{number}": items.split()
    for number, items in enumerate(["a b", "a b", "a", "c d", "c d e", "c e", "e f", "e f", "a b c", "a c", "b d", "c"])
}
ROWS = [{"user": person, "site": item} for person, items in SETS.items() for item in items]
HEAD = "user,site\n"
GOOD = "".join(f"{row['user']},{row['site']}\n" for row in ROWS)


@pytest.fixture
def stage(scene: Scene) -> Scene:
    """Twelve people with six items."""
    scene.sections = {
        "stream": {"person": "user"},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {
            "method": "k^m", "item": "site", "k": 2, "m": 2, "sigma": 1, "trials": 1,
            "generalize": {"hierarchy": {"kind": "nested", "tree": TREE}},
        },
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
    }  # fmt: skip
    scene.write("in.csv", HEAD + GOOD)
    return scene


def shown(stage: Scene, name: str = "out.jsonl") -> list[frozenset[str]]:
    """Published sets, from any format."""
    table = stage.released(name)
    (column,) = table.column_names
    values = table.column(column).to_pylist()
    return [frozenset(value.split("|") if isinstance(value, str) else value) for value in values]


def hides(sets: list[frozenset[str]], k: int, m: int) -> bool:
    """Whether every set of up to m labels that a person has, k people have."""
    support = Counter(known for one in sets for size in range(1, m + 1) for known in combinations(sorted(one), size))
    return min(support.values()) >= k


def next_to(stage: Scene, what: str, sink: str = "out.jsonl") -> Any:
    return json.loads((stage.folder / f"{sink}.{what}.json").read_text())


def images(stage: Scene, sink: str = "out.jsonl") -> Counter[frozenset[str]]:
    """What the input looks like under the published blocks."""
    label_of = {item: label for label, items in next_to(stage, "blocks", sink).items() for item in items}
    return Counter(frozenset(label_of[item] for item in items) for items in SETS.values())


def test_sets_are_published_with_certificate_and_blocks(stage: Scene) -> None:
    ended = stage.run("--json", "--quiet")
    assert ended.code == 0, ended.err
    sets = shown(stage)
    assert hides(sets, 2, 2)
    assert Counter(sets) == images(stage)
    assert len(next_to(stage, "blocks")) > 1
    summary, blocks = ended.summary, next_to(stage, "blocks")
    assert (summary["rows_in"], summary["records"], summary["released"], summary["dead"]) == (len(ROWS), 12, 12, 0)
    assert (summary["items"], summary["blocks_before"], summary["blocks_after"]) == (6, 6, len(blocks))
    certificate = next_to(stage, "certificate")
    assert certificate["error"] == summary["error"] > 0
    assert certificate["error"] == float(f"{certificate['error']:.2g}"), "all digits could be solved for rare items"
    assert [size["how"] for size in certificate["sizes"]] == ["counted", "counted"]
    assert "at least 2 published records" in certificate["statement"]
    assert certificate["settings"]["k"] == [2, 2]
    assert "fingerprint" not in certificate, "with the seed it would tell more than the release does"


@pytest.mark.parametrize("sink", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("source", ["csv", "jsonl", "parquet", "arrow"])
def test_formats_give_the_same(stage: Scene, source: str, sink: str) -> None:
    assert stage.run("--quiet").code == 0
    expected = shown(stage)
    stage.write(f"in.{source}", encode(source, ROWS))
    stage.sections["source"] = {"kind": source, "path": f"in.{source}"}
    stage.sections["sink"] = {"kind": sink, "path": f"other.{sink}"}
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert shown(stage, f"other.{sink}") == expected


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_a_row_may_be_a_whole_record(stage: Scene, kind: str) -> None:
    assert stage.run("--quiet").code == 0
    expected = shown(stage)
    stage.write(f"in.{kind}", encode(kind, [{"site": items} for items in SETS.values()]))
    stage.sections["source"] = {"kind": kind, "path": f"in.{kind}"}
    del stage.sections["stream"]
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert shown(stage) == expected


@pytest.mark.parametrize("kind", [pa.large_list(pa.large_string()), pa.list_(pa.dictionary(pa.int32(), pa.string()))])
def test_lists_of_all_kinds(stage: Scene, kind: pa.DataType) -> None:
    assert stage.run("--quiet").code == 0
    expected = shown(stage)
    sets = pa.array(list(SETS.values()), pa.list_(pa.string()))
    if pa.types.is_large_list(kind):
        column = sets.cast(kind)
    else:
        column = pa.ListArray.from_arrays(sets.offsets, sets.values.dictionary_encode())
    pq.write_table(pa.table({"site": column}), stage.folder / "in.parquet")
    stage.sections["source"] = {"kind": "parquet", "path": "in.parquet"}
    del stage.sections["stream"]
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert shown(stage) == expected


def test_items_apart_by_a_separator(stage: Scene) -> None:
    assert stage.run("--quiet").code == 0
    expected = shown(stage)
    stage.write("in.csv", "site\n" + "".join(" ".join(items) + " \n" for items in SETS.values()))
    stage.sections["source"]["separator"] = " "
    del stage.sections["stream"]
    assert stage.run("--quiet").code == 0
    assert shown(stage) == expected


def test_one_record_a_line_without_a_header(stage: Scene) -> None:
    """As docs/reference/policy.md says to read it."""
    assert stage.run("--quiet").code == 0
    expected = shown(stage)
    stage.write("in.dat", "".join(" ".join(items) + " \n" for items in SETS.values()))
    stage.sections["source"] = {"kind": "csv", "path": "in.dat", "header": ["items"], "separator": " "}
    stage.sections["anonymize"]["item"] = "items"
    del stage.sections["stream"]
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert shown(stage) == expected


def test_parts_of_a_graph_are_linked(stage: Scene) -> None:
    stage.write("edges.csv", "one,other\na,b\nc,d\ne,\nf,\n")
    stage.sections["anonymize"] |= {"generalize": {"graph": "edges.csv"}, "k": 12, "m": 1}
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert [sorted(items) for items in next_to(stage, "blocks").values()] == [list("abcdef")]


def test_days_of_a_person_are_one_set(stage: Scene) -> None:
    assert stage.run("--quiet").code == 0
    expected = shown(stage)
    stage.write("in-1.csv", HEAD + GOOD)
    stage.write("in-2.csv", HEAD + GOOD)
    stage.sections["source"]["path"] = ["in-1.csv", "in-2.csv"]
    ended = stage.run("--quiet", "--json")
    assert (ended.summary["rows_in"], ended.summary["records"]) == (2 * len(ROWS), 12)
    assert shown(stage) == expected


def test_whole_numbers_are_items(stage: Scene) -> None:
    numbers = {item: place for place, item in enumerate("abcdef")}
    table = pa.table({"user": [row["user"] for row in ROWS], "site": [numbers[row["site"]] for row in ROWS]})
    stage.write("in.parquet", encode("parquet", table))
    stage.sections["source"] = {"kind": "parquet", "path": "in.parquet"}
    stage.sections["anonymize"]["generalize"] = {"balanced": 2}
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert hides(shown(stage), 2, 2)
    assert sorted(item for items in next_to(stage, "blocks").values() for item in items) == list("012345")


@pytest.mark.parametrize(
    ("generalize", "files"),
    [
        ({"balanced": 2}, {}),
        ({"graph": "edges.csv"}, {"edges.csv": "one,other\na,b\nb,c\nc,d\nd,e\ne,f\nlonely,\n"}),
        (
            {"places": "towers.csv"},
            {"towers.csv": "name,lon,lat\na,0,0\nb,0.01,0\nc,0.02,0\nd,0,0.01\ne,0.01,0.01\nf,0.02,0.01\n"},
        ),
        (
            {"places": "towers.csv", "geographic": False, "name": "tower", "region": "city.json"},
            {
                "towers.csv": "tower,x,y\na,0,0\nb,100,0\nc,200,0\nd,0,100\ne,100,100\nf,200,100\n",
                "city.json": json.dumps(
                    {
                        "type": "Polygon",
                        "coordinates": [[[-50, -50], [250, -50], [250, 150], [-50, 150], [-50, -50]]],
                    }
                ),
            },
        ),
        ({"hierarchy": {"kind": "suffix"}}, {}),
    ],
)
def test_ways_to_generalize(stage: Scene, generalize: dict[str, Any], files: dict[str, str]) -> None:
    for name, content in files.items():
        stage.write(name, content)
    stage.sections["anonymize"]["generalize"] = generalize
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    assert hides(shown(stage), 2, 2)
    assert Counter(shown(stage)) == images(stage)
    assert ended.summary["error_kind"] == ("distance" if "places" in generalize else "ncp")


def ask_for_apriori(stage: Scene) -> None:
    asked = stage.sections["anonymize"]
    stage.sections["anonymize"] = {key: asked[key] for key in ("item", "k", "m", "generalize")} | {
        "method": "k^m-apriori"
    }


def test_apriori(stage: Scene) -> None:
    ask_for_apriori(stage)
    stage.sections["anonymize"]["k"] = [3, 2]
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert hides(shown(stage), 2, 2)
    assert next_to(stage, "certificate")["method"] == "k^m-apriori"


@pytest.mark.parametrize("is_apriori", [False, True])
def test_the_certificate_names_one_seed(stage: Scene, is_apriori: bool) -> None:
    if is_apriori:
        ask_for_apriori(stage)
    stage.sections["anonymize"]["seed"] = 7
    assert stage.run("--quiet").code == 0
    certificate = next_to(stage, "certificate")
    assert certificate["seed"] == certificate["settings"]["seed"] == 7


def test_the_summary_names_sampled_sizes(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"sigma": 0.9, "counted": 1, "adversary": "both", "joint": True}
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    sizes = next_to(stage, "certificate")["sizes"]
    assert [(size["size"], size["how"], size["adversary"]) for size in sizes] == [
        (1, "counted", "everyone"), (2, "sampled", "itemset"), (2, "sampled", "person"),
    ]  # fmt: skip
    text = ended.out.decode()
    assert "with confidence" in text
    assert "for all sizes at once" in text


def test_summary_for_people(stage: Scene) -> None:
    stage.sections["trace"] = {"path": "trace.parquet"}
    text = stage.run("--quiet").out.decode()
    for beginning in (
        "rows in  ",
        "records  ",
        "items  ",
        "blocks  ",
        "error  ",
        "promise",
        "certificate  ",
        "trace  ",
    ):
        assert any(line.startswith(beginning) for line in text.splitlines()), beginning


# ---- bad rows


def test_bad_rows_are_letters_and_the_rest_is_used(stage: Scene) -> None:
    bad = [
        (f",{CANARY}\n", "user", "missing person identifier"),
        (f"{CANARY},\n", "site", "missing item"),
        (f"p0,{CANARY}\n", "site", "not in the hierarchy"),
        ("p0,ab\n", "site", "not in the hierarchy"),
        (f"{CANARY}\n", None, "1 field where the header has 2"),
    ]
    assert stage.run("--quiet").code == 0
    expected = (stage.folder / "out.jsonl").read_bytes()
    path = stage.write("in.csv", HEAD + "".join(line for line, _, _ in bad) + GOOD)
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    letters = stage.letters("out.jsonl.dead.jsonl")
    assert [(letter["file"], letter["row"], letter["line"]) for letter in letters] == [
        (str(path), row, row + 1) for row in range(1, 6)
    ]
    for letter, (_, column, reason) in zip(letters, bad, strict=True):
        assert letter["column"] == column
        assert reason in letter["reason"]
        assert ";" in letter["reason"], "it says what to do"
    assert ended.summary["dead_by_reason"] == {"unreadable": 1, "null-person": 1, "null-item": 1, "unknown-item": 2}
    assert (ended.summary["dead"], ended.summary["records"], ended.summary["empty_records"]) == (5, 13, 1)
    assert (stage.folder / "out.jsonl").read_bytes() == expected, "the rest leaves as if there had been nothing else"
    assert stage.holds_canary() == []
    assert stat.S_IMODE((stage.folder / "out.jsonl.dead.jsonl").stat().st_mode) == 0o600


def test_bad_lists(stage: Scene) -> None:
    del stage.sections["stream"]
    rows = [json.dumps({"site": items}) for items in SETS.values()]
    bad = ['{"site": []}', '{"site": null}', '{"site": ["a", null, "b"]}', '{"site": "a"}', '{"site": [{"x": 1}]}']
    bad.append('{"site": ["a", "", "zzz"]}')
    stage.write("in.jsonl", "\n".join([*rows, *bad]) + "\n")
    stage.sections["source"] = {"kind": "jsonl", "path": "in.jsonl"}
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    found = [
        (letter["row"] - len(rows), letter["reason"].split(";")[0]) for letter in stage.letters("out.jsonl.dead.jsonl")
    ]
    assert found == [
        (1, "missing item"),
        (2, "missing item"),
        (3, "an item is null, empty or blank"),
        (4, "not a value of type list<item: string>"),
        (5, "an object or a list where a single value is needed"),
        (6, "an item is null, empty or blank"),
        (6, "an item is not in the hierarchy"),
    ]
    assert (ended.summary["released"], ended.summary["empty_records"]) == (len(rows) + 2, 4)


def test_items_that_are_no_names(stage: Scene) -> None:
    """Fractions, 1.0, numbers beyond 64 bits and truth values are no items."""
    del stage.sections["stream"]
    stage.sections["anonymize"]["generalize"] = {"balanced": 2}
    rows = [json.dumps({"site": items}) for items in SETS.values()] + ['{"site": [7, "a"]}', '{"site": [7]}']
    bad = ["1.0", "2.5", "100000000000000000000", "-9223372036854775809", "true"]
    stage.write("in.jsonl", "".join(f"{row}\n" for row in [f'{{"site": ["a", {item}]}}' for item in bad] + rows))
    stage.sections["source"] = {"kind": "jsonl", "path": "in.jsonl"}
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    letters = stage.letters("out.jsonl.dead.jsonl")
    assert [letter["row"] for letter in letters] == [1, 2, 3, 4, 5]
    assert {letter["reason"].split(";")[0] for letter in letters} == {
        "an item is neither text nor a whole number of up to 64 bits"
    }
    assert ended.summary["dead_by_reason"] == {"unreadable": 5}
    assert sorted(item for items in next_to(stage, "blocks").values() for item in items) == ["7", *"abcdef"]


def test_single_items_that_are_no_names(stage: Scene) -> None:
    """Also where they are the first: the column is one of whole numbers all the same."""
    stage.sections["anonymize"]["generalize"] = {"balanced": 2}
    rows = ['{"user": "p0", "site": 2.5}', '{"user": "p0", "site": 1.0}']
    rows += [json.dumps({"user": row["user"], "site": ord(row["site"])}) for row in ROWS]
    stage.write("in.jsonl", "".join(f"{row}\n" for row in rows))
    stage.sections["source"] = {"kind": "jsonl", "path": "in.jsonl"}
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    assert (ended.summary["dead"], ended.summary["items"]) == (2, 6)


def test_nan_is_not_a_person(stage: Scene) -> None:
    people = {person: float(place) for place, person in enumerate(SETS)}
    table = {"user": [*(people[row["user"]] for row in ROWS), float("nan")], "site": [*(r["site"] for r in ROWS), "a"]}
    stage.write("in.parquet", encode("parquet", pa.table(table)))
    stage.sections["source"] = {"kind": "parquet", "path": "in.parquet"}
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    assert (ended.summary["dead_by_reason"], ended.summary["records"]) == ({"null-person": 1}, 12)


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", " \u2003"])
@pytest.mark.parametrize(
    "generalize",
    [
        {"balanced": 2},
        {"hierarchy": {"kind": "suffix"}},
        {"hierarchy": {"kind": "nested", "tree": TREE}},
        {"graph": "edges.csv"},
    ],
)
def test_blank_items_are_letters(stage: Scene, generalize: dict[str, Any], blank: str) -> None:
    stage.write("edges.csv", "one,other\na,b\nb,c\nc,d\nd,e\ne,f\n")
    stage.sections["anonymize"]["generalize"] = generalize
    stage.write("in.csv", HEAD + f'p0,"{blank}"\n' + GOOD)
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    assert (ended.summary["dead_by_reason"], ended.summary["released"]) == ({"null-item": 1}, 12)


def test_a_blank_between_separators(stage: Scene) -> None:
    del stage.sections["stream"]
    stage.sections["source"] |= {"separator": "|", "trim": False}
    stage.write("in.csv", "site\n" + "a| |b\n" + "".join("|".join(items) + "\n" for items in SETS.values()))
    ended = stage.run("--quiet", "--json")
    assert (ended.code, ended.summary["released"]) == (0, 13)
    (letter,) = stage.letters("out.jsonl.dead.jsonl")
    assert "the rest of the row was used" in letter["reason"]


def test_an_item_may_be_called_as_the_root_is(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"generalize": {"balanced": 2}, "k": 12, "m": 1}
    stage.write("in.csv", HEAD + GOOD + "p0,*\np1,**\n")
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    assert next_to(stage, "blocks") == {"***": ["*", "**", *"abcdef"]}


def test_rows_are_kept_on_request(stage: Scene) -> None:
    stage.sections["dead_letters"] = {"keep_rows": True}
    stage.write("in.csv", HEAD + "p0,unheard\n" + GOOD)
    assert stage.run("--quiet").code == 0
    (letter,) = stage.letters("out.jsonl.dead.jsonl")
    assert letter["record"] == {"user": "p0", "site": "unheard"}


# ---- what cannot be


def fails(stage: Scene, ended: Ended, code: int, *words: str) -> None:
    assert ended.code == code, ended.err
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err
    assert not (stage.folder / "out.jsonl").exists()
    assert not (stage.folder / "out.jsonl.certificate.json").exists()
    assert not outputs(stage.folder), "what was begun is gone"


def test_fewer_than_k_records(stage: Scene) -> None:
    stage.sections["anonymize"]["k"] = 13
    fails(stage, stage.run("--quiet"), 1, "12 records cannot hide anybody among 13")


def test_no_usable_row(stage: Scene) -> None:
    stage.write("in.csv", HEAD + "p0,zzz\n")
    ended = stage.run("--quiet")
    assert (ended.code, (stage.folder / "out.jsonl").exists()) == (3, False)
    assert "nothing was released: 1 of 1 rows (100.0%) were refused: 1 unknown-item" in ended.err


def test_an_input_that_breaks_off_publishes_nothing(stage: Scene) -> None:
    whole = encode("csv.gz", ROWS)
    stage.write("in.csv.gz", whole[: len(whole) // 2])
    stage.sections["source"]["path"] = "in.csv.gz"
    fails(stage, stage.run("--quiet"), 1, "in.csv.gz")


def test_columns_of_the_wrong_type(stage: Scene) -> None:
    stage.write("in.parquet", encode("parquet", [{"user": "p", "site": 1.5}]))
    stage.sections["source"] = {"kind": "parquet", "path": "in.parquet"}
    fails(stage, stage.run("--quiet"), 1, "column 'site'", "double", "texts or whole numbers")
    stage.write("in.parquet", encode("parquet", [{"user": "p", "site": "a"}]))
    del stage.sections["stream"]
    fails(stage, stage.run("--quiet"), 1, "column 'site' holds single items", "[stream] person")


def test_a_column_that_is_not_there(stage: Scene) -> None:
    stage.sections["anonymize"]["item"] = "place"
    fails(stage, stage.run("--quiet"), 1, "there is no column 'place'")


def test_a_label_with_the_separator_in_it(stage: Scene) -> None:
    stage.sections["sink"] = {"kind": "csv", "path": "out.jsonl", "separator": "b"}
    fails(stage, stage.run("--quiet"), 2, "[sink] separator:", "choose one")
    stage.sections["sink"]["separator"] = " + "
    assert stage.run("--quiet").code == 0


def test_a_label_that_ends_as_the_separator_begins(stage: Scene) -> None:
    """``a~`` and ``b`` apart by ``~~`` would be read as ``a`` and ``~b``."""
    stage.write("in.csv", (HEAD + GOOD).replace(",a\n", ",a~\n"))
    stage.sections["anonymize"]["generalize"] = {"balanced": 2}
    stage.sections["sink"] = {"kind": "csv", "path": "out.jsonl", "separator": "~~"}
    fails(stage, stage.run("--quiet"), 2, "[sink] separator: 1 labels", "choose one")
    stage.sections["sink"]["separator"] = " ~"
    assert stage.run("--quiet").code == 0
    assert any("a~" in items for items in next_to(stage, "blocks").values())


def test_a_label_that_no_csv_file_can_hold(stage: Scene) -> None:
    rows = [{"user": person, "site": [*items, f"{CANARY}\0x"]} for person, items in SETS.items()]
    stage.write("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    stage.sections["source"] = {"kind": "jsonl", "path": "in.jsonl"}
    stage.sections["anonymize"]["generalize"] = {"balanced": 3}
    stage.sections["sink"] = {"kind": "csv", "path": "out.csv"}
    fails(stage, stage.run("--quiet"), 2, "[sink] kind: 1 labels or items contain a NUL character", "write jsonl")
    stage.sections["sink"] = {"kind": "jsonl", "path": "out.jsonl"}
    assert stage.run("--quiet").code == 0
    assert shoal("audit", stage.folder / "out.jsonl", "--truth", stage.folder / "in.jsonl",
                 "--policy", stage.policy).code == 0  # fmt: skip


def test_checkpoints_are_refused(stage: Scene) -> None:
    fails(stage, stage.run("--checkpoint", "state"), 2, "[checkpoint]: k^m decides all records at once")


# ---- the trace


def test_the_trace_records_positions(stage: Scene) -> None:
    stage.sections["trace"] = {"path": "trace.parquet"}
    stage.write("in.csv", HEAD + "gone,zzz\n" + GOOD)
    assert stage.run("--quiet").code == 0
    path = stage.folder / "trace.parquet"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    trace = pq.read_table(path).to_pydict()
    assert trace["row"] == list(range(13))
    assert trace["position"][0] == -1
    assert sorted(trace["position"][1:]) == list(range(12))
    label_of = {item: label for label, items in next_to(stage, "blocks").items() for item in items}
    sets = shown(stage)
    for position, items in zip(trace["position"][1:], SETS.values(), strict=True):
        assert sets[position] == {label_of[item] for item in items}


def test_trace_is_sealed_where_there_is_a_key(stage: Scene, key: Path) -> None:
    stage.sections["trace"] = {"path": "trace.parquet"}
    assert stage.run("--quiet").code == 0
    path = stage.folder / "trace.parquet"
    assert is_sealed_trace(path)
    assert read_sealed_trace(path, as_secret(None)).num_rows == 12


# ---- the same, and nothing by halves


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith("out")}


@pytest.mark.parametrize("sink", ["jsonl", pytest.param("parquet", marks=pytest.mark.exhaustive)])
def test_same_seed_same_bytes_in_another_process_and_order(stage: Scene, sink: str) -> None:
    stage.sections["sink"] = {"kind": sink, "path": f"out.{sink}"}
    stage.sections["anonymize"] |= {"sigma": 0.9, "counted": 0, "seed": 7}
    assert stage.run("--quiet").code == 0
    first = outputs(stage.folder)
    stage.write("in.csv", HEAD + "".join(sorted(GOOD.splitlines(keepends=True), reverse=True)))
    command = [sys.executable, "-m", "shoal.cli", "run", "--quiet", str(stage.policy)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "5"}, capture_output=True)
    assert outputs(stage.folder) == first


def test_another_seed_another_order(stage: Scene) -> None:
    ask_for_apriori(stage)  # which finds the same blocks with any seed
    assert stage.run("--quiet").code == 0
    first = shown(stage)
    stage.sections["anonymize"]["seed"] = 1
    assert stage.run("--quiet").code == 0
    assert shown(stage) != first
    assert Counter(shown(stage)) == Counter(first)


class Dying(Observer):
    """Fails when blocks are being looked for."""

    def deciding(self, what: str, size: int, blocks: int) -> None:
        raise KeyboardInterrupt


def test_stopped_while_deciding(stage: Scene) -> None:
    assert stage.run("--quiet").code == 0
    before = outputs(stage.folder)
    stage.sections["anonymize"]["k"] = 3
    stage.write_policy()
    with pytest.raises(KeyboardInterrupt):
        Pipeline.from_policy(stage.policy).run(Dying())
    assert outputs(stage.folder) == before


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("anonymize", {"k": 13}),
        ("anonymize", {"item": "nowhere"}),
        ("sink", {"kind": "csv", "separator": "b"}),
        ("source", {"path": "broken.csv.gz"}),
        ("source", {"path": "useless.csv"}),
    ],
)
def test_a_run_that_fails_does_not_change_an_earlier_release(
    stage: Scene, section: str, change: dict[str, Any]
) -> None:
    stage.sections["trace"] = {"path": "out.trace.parquet"}
    stage.write("in.csv", HEAD + "p0,zzz\n" + GOOD)
    assert stage.run("--quiet").code == 0
    before = outputs(stage.folder)
    assert before["out.jsonl.dead.jsonl"]
    stage.write("broken.csv.gz", encode("csv.gz", ROWS)[:-20])
    stage.write("useless.csv", HEAD + "p0,yyy\np1,yyy\n")
    stage.sections[section] |= change
    assert stage.run("--quiet").code
    letters = "out.jsonl.dead.jsonl"
    after = outputs(stage.folder)
    if change.get("path") == "useless.csv":  # it says why each row was refused
        assert after.pop(letters) != before.pop(letters)
    assert after == before


def test_no_space_for_the_certificate(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage.run("--quiet").code == 0
    before = outputs(stage.folder)

    def full(self: Any) -> int:
        raise OutputError("no space is left on the disk")

    monkeypatch.setattr("shoal.sinks.atomic_file.AtomicFile.commit", full)
    ended = stage.run("--quiet")
    assert ended.code == 1
    assert outputs(stage.folder) == before


def test_interrupted(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.cli.output.render.LineObserver.deciding", Dying.deciding)
    ended = stage.run("--quiet")
    assert ended.code == 130
    assert ended.err == "shoal: interrupted; nothing was published; the next run starts over\n"
    assert not outputs(stage.folder)


@pytest.mark.parametrize("before", [False, True], ids=["alone", "after an earlier run"])
def test_killed_at_any_renaming(stage: Scene, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    """An existing release is complete, and the certificate and blocks next to it belong to it."""
    stage.sections["trace"] = {"path": "trace.parquet"}
    whole = _certified(stage, k=3)
    earlier = _certified(stage, k=2)
    rename = os.replace
    for step in range(6):
        if before:
            assert _certified(stage, k=2) == earlier
        else:
            for name in outputs(stage.folder):
                (stage.folder / name).unlink()
        left = [step]

        def die(source: Any, target: Any, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            rename(source, target)

        stage.sections["anonymize"]["k"] = 3
        stage.write_policy()
        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", die)
            if step < 5:
                with pytest.raises(KeyboardInterrupt):
                    Pipeline.from_policy(stage.policy).run()
            else:
                Pipeline.from_policy(stage.policy).run()
        if (stage.folder / "out.jsonl").exists():
            assert {name: outputs(stage.folder)[name] for name in whole} == whole
            assert step == 5


def _certified(stage: Scene, k: int) -> dict[str, bytes]:
    stage.sections["anonymize"]["k"] = k
    assert stage.run("--quiet").code == 0
    return {name: data for name, data in outputs(stage.folder).items() if "dead" not in name and "partial" not in name}


def test_from_python(stage: Scene) -> None:
    stage.write_policy()
    calls: list[tuple[str, int, int]] = []

    class Listening(Observer):
        def deciding(self, what: str, size: int, blocks: int) -> None:
            calls.append((what, size, blocks))

    summary = Pipeline.from_policy(stage.policy).run(Listening())
    assert isinstance(summary, SetSummary)
    assert summary.ok
    assert calls[0] == ("counting", 1, 6)
    stage.sections["anonymize"]["k"] = 100
    stage.write_policy()
    with pytest.raises(ShoalError, match="cannot hide"):
        Pipeline.from_policy(stage.policy).run()


# ---- the doctor


def test_doctor(stage: Scene) -> None:
    stage.write("in.csv", HEAD + GOOD + "p0,zzz\n")
    stage.write_policy()
    ended = shoal("doctor", stage.policy)
    assert ended.code == 0, ended.out
    text = ended.out.decode()
    for words in (
        "12 records with 6 different items",
        "uniqueness",
        "have an item that the generalization does not list",
    ):
        assert words in text
    assert not (stage.folder / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("section", "change", "words"),
    [
        ("anonymize", {"k": 50}, "too few to hide anybody"),
        ("anonymize", {"item": "nowhere"}, "there is no column 'nowhere'"),
        ("sink", {"kind": "csv", "separator": "b"}, "[sink] separator"),
        ("source", {"path": "absent.csv"}, "absent.csv"),
    ],
)
def test_doctor_finds_what_would_fail(stage: Scene, section: str, change: dict[str, Any], words: str) -> None:
    stage.sections[section] |= change
    stage.write_policy()
    ended = shoal("doctor", stage.policy)
    assert ended.code == 1
    assert words in ended.out.decode()


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("sink", "out.jsonl"),
        ("sink", "out.jsonl.certificate.json"),
        ("sink", "out.jsonl.blocks.json"),
        ("dead letters", "out.jsonl.dead.jsonl"),
        ("trace", "trace.parquet"),
    ],
)
def test_a_folder_in_the_way(stage: Scene, section: str, name: str) -> None:
    stage.sections["trace"] = {"path": "trace.parquet"}
    (stage.folder / name).mkdir()
    (stage.folder / name / "part-00000.jsonl").write_text("of somebody else")
    ended = stage.run("--quiet")
    assert ended.code == 1
    assert f"{name}: is a folder where a file is needed" in ended.err
    assert "internal error" not in ended.err
    assert os.listdir(stage.folder / name) == ["part-00000.jsonl"]
    ended = shoal("doctor", stage.policy)
    assert ended.code == 1
    assert f"{name}: is a folder where a file is needed" in ended.out.decode()
    assert not list(stage.folder.glob("*.partial"))


def test_many_dead_letters_are_a_warning(stage: Scene) -> None:
    del stage.sections["stream"]
    stage.sections["source"]["separator"] = ";"
    stage.write("in.csv", "site\n" + "".join("|".join(items) + "\n" for items in SETS.values()) + "c\na\na\na\n")
    ended = stage.run("--quiet", "--json")
    assert ended.code == 3
    (warning,) = ended.summary["warnings"]
    assert warning.startswith("10 of 16 rows (62.5%) were refused: 10 unknown-item")
    stage.write("in.csv", "site\n" + "".join("|".join(items) + "\n" for items in SETS.values()) + "a\n" * 12)
    ended = stage.run("--quiet", "--json")
    assert ended.code == 0, ended.err
    (warning,) = ended.summary["warnings"]
    assert warning.startswith("10 refused of 24 rows (10 unknown-item)")
    assert f"shoal: warning: {warning}" in ended.err
    assert f"warning        {warning}" in stage.run("--quiet").out.decode()
    stage.sections["source"]["separator"] = "|"
    assert stage.run("--quiet", "--json").summary["warnings"] == []


def test_the_doctor_reports_an_m_beyond_all_sets(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"m": 9}
    stage.write_policy()
    ended = shoal("doctor", stage.policy, "--json")
    assert ended.code == 0
    assert any(remark["topic"] == "sizes" for remark in ended.summary["remarks"])


@pytest.mark.parametrize("entry", ["statement", "seed", "error", "released", "binding"])
def test_a_certificate_with_a_changed_entry_is_convicted(stage: Scene, entry: str) -> None:
    assert stage.run("--quiet").code == 0
    path = Path(f"{stage.sections['sink']['path']}.certificate.json")
    audited = ("audit", stage.sections["sink"]["path"], "--policy", stage.policy)
    assert shoal(*audited).code == 0
    found = json.loads(path.read_text())
    found[entry] = "forged" if isinstance(found[entry], str) else found[entry] + 1
    path.write_text(json.dumps(found))
    ended = shoal(*audited)
    assert ended.code == 1
    assert b"certificate-differs" in ended.out


def test_a_certificate_of_another_release_is_convicted(stage: Scene) -> None:
    assert stage.run("--quiet").code == 0
    path = Path(stage.sections["sink"]["path"])
    lines = path.read_text().splitlines()
    another = next(line for line in lines if line != lines[-1])
    path.write_text("\n".join([*lines[:-1], another]) + "\n")
    ended = shoal("audit", path, "--policy", stage.policy)
    assert b"certificate-differs" in ended.out
