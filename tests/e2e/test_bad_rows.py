"""Rows that cannot be used go to the dead letters; the others flow on."""

from __future__ import annotations

import json
import zlib

import pyarrow as pa
import pytest

from tests.e2e.scene import CANARY, Ended, Scene, encode, pairs

HEAD = b"ts,user,site\n"
BEFORE, AFTER = b"1,ann,x\n", b"2,bob,x\n3,cid,x\n"
LONG = 50 * 1024 * 1024


def usable_rows_flow(scene: Scene, ended: Ended) -> None:
    """The rows around the bad one are released, and nothing shows its content."""
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert pairs(scene.released()) == [(2, "x"), (3, "x")]
    assert CANARY.encode() not in ended.out
    assert scene.holds_canary() == []


@pytest.mark.parametrize(
    ("bad", "column", "reason"),
    [
        (f"1,{CANARY}\n", None, "2 fields where the header has 3"),
        (f"1,{CANARY},x,y\n", None, "4 fields where the header has 3"),
        (f"1,{CANARY}\xff,x\n".encode("latin-1"), "user", "not valid UTF-8"),
        (b"1,dan,\xff\n", "site", "not valid UTF-8"),
        (f"1,{CANARY}\0,x\n", None, "NUL byte"),
        (",dan,x\n", "ts", "missing time"),
        (f'1,"",{CANARY}\n', "user", "missing person identifier"),
        (f"{CANARY},dan,x\n", "ts", "not a time"),
        ("NaN,dan,x\n", "ts", "not a time"),
        ("inf,dan,x\n", "ts", "not a time"),
        ("-Infinity,dan,x\n", "ts", "not a time"),
        ("1e300,dan,x\n", "ts", "not a time"),
        ("9999999999999999999999,dan,x\n", "ts", "not a time"),
        ("0,dan,x\n", "ts", "older than the newest event"),
        (f"999999999,{CANARY},x\n", "ts", "further ahead"),
    ],
)
def test_a_bad_row_in_csv(scene: Scene, bad: str | bytes, column: str | None, reason: str) -> None:
    bad = bad.encode() if isinstance(bad, str) else bad
    path = scene.write("in.csv", HEAD + BEFORE + bad + AFTER)
    ended = scene.run("--json")
    usable_rows_flow(scene, ended)
    (letter,) = scene.letters()
    assert (letter["file"], letter["row"], letter["line"]) == (str(path), 2, 3)
    assert letter["column"] == column
    assert reason in letter["reason"]
    assert ";" in letter["reason"], "it says what to do"
    assert ended.summary["dead"] == 1
    assert sum(ended.summary["dead_by_reason"].values()) == 1


@pytest.mark.parametrize(
    ("bad", "column", "reason"),
    [
        (f'{{"ts": 1, "user": "{CANARY}"', None, "not valid JSON"),
        (f'["{CANARY}"]', None, "not a JSON object"),
        (f'{{"ts": 1, "user": "{CANARY}\0", "site": "x"}}', None, "NUL byte"),
        (f'{{"ts": 1, "user": ["{CANARY}"], "site": "x"}}', "user", ""),
        (f'{{"ts": "{CANARY}", "user": "dan", "site": "x"}}', "ts", "not a"),
        ('{"ts": null, "user": "dan", "site": "x"}', "ts", "missing time"),
        ('{"ts": NaN, "user": "dan", "site": "x"}', None, "not valid JSON"),
        (f'{{"ts": 1, "site": "{CANARY}"}}', "user", "missing person identifier"),
    ],
)
def test_a_bad_row_in_json_lines(scene: Scene, bad: str, column: str | None, reason: str) -> None:
    good = [json.dumps({"ts": ts, "user": user, "site": "x"}) for ts, user in ((1, "ann"), (2, "bob"), (3, "cid"))]
    path = scene.write("in.jsonl", "\n".join([good[0], bad, *good[1:]]) + "\n")
    scene.sections["source"] = {"kind": "jsonl", "path": "in.jsonl"}
    usable_rows_flow(scene, scene.run("--json"))
    (letter,) = scene.letters()
    assert (letter["file"], letter["row"], letter["line"], letter["column"]) == (str(path), 2, 2, column)
    assert reason in letter["reason"]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("time", [None, float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_bad_time_in_a_table(scene: Scene, kind: str, time: float | None) -> None:
    table = pa.table({"ts": pa.array([1.0, time, 2.0, 3.0]), "user": ["ann", CANARY, "bob", "cid"], "site": ["x"] * 4})
    path = scene.write(f"in.{kind}", encode(kind, table))
    scene.sections["source"] = {"kind": kind, "path": f"in.{kind}"}
    usable_rows_flow(scene, scene.run("--json"))
    (letter,) = scene.letters()
    assert (letter["file"], letter["row"], letter["column"]) == (str(path), 2, "ts")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl"])
def test_a_line_of_fifty_megabytes(scene: Scene, kind: str) -> None:
    long = CANARY.encode() * (LONG // len(CANARY))
    if kind == "jsonl":
        content = b'{"ts":1,"user":"ann","site":"x"}\n{"ts":1,"user":"' + long
        content += b'","site":"x"}\n{"ts":2,"user":"bob","site":"x"}\n{"ts":3,"user":"cid","site":"x"}\n'
    else:
        content = HEAD + BEFORE + b"1," + long + b",x\n" + AFTER
    if kind == "csv.gz":
        engine = zlib.compressobj(1, wbits=31)
        content = engine.compress(content) + engine.flush()
    scene.write(f"in.{kind}", content)
    scene.sections["source"] = {"kind": kind.removesuffix(".gz"), "path": f"in.{kind}"}
    usable_rows_flow(scene, scene.run("--json"))
    (letter,) = scene.letters()
    assert letter["row"] == 2
    assert "max_record_bytes" in letter["reason"]


def test_an_open_quote_costs_one_line(scene: Scene) -> None:
    scene.write("in.csv", HEAD + BEFORE + f'1,"{CANARY},x\n'.encode() + AFTER)
    usable_rows_flow(scene, scene.run("--json"))
    assert "never closed" in scene.letters()[0]["reason"]


def test_rows_of_several_files_are_counted_by_file(scene: Scene) -> None:
    scene.write("in-1.csv", HEAD + BEFORE + b"1,,x\n")
    scene.write("in-2.csv", HEAD)
    last = scene.write("in-3.csv", HEAD + AFTER + b"\n\n4,,x\n")
    scene.sections["source"]["path"] = "in-*.csv"
    scene.run()
    assert [(letter["row"], letter["line"]) for letter in scene.letters()] == [(2, 3), (3, 6)]
    assert scene.letters()[1]["file"] == str(last)


class TestKeptRows:
    ROW = f"1,{CANARY},x,1.5\n"

    @pytest.fixture(autouse=True)
    def _late_row(self, scene: Scene) -> None:
        scene.write("in.csv", f"ts,user,site,more\n5,ann,x,0\n{self.ROW}6,bob,x,0\n")
        scene.sections["stream"]["carry"] = ["more"]
        scene.sections["source"]["types"] = {"more": "float64"}
        scene.sections["dead_letters"] = {"keep_rows": True}

    def test_open_without_a_key(self, scene: Scene) -> None:
        assert scene.run().code == 0
        (letter,) = scene.letters()
        assert letter["record"] == {"ts": "1", "user": CANARY, "site": "x", "more": 1.5}
        assert [path.name for path in scene.holds_canary()] == ["out.csv.dead.jsonl"]

    @pytest.mark.usefixtures("key")
    def test_sealed_with_a_key(self, scene: Scene) -> None:
        assert scene.run().code == 0
        (letter,) = scene.letters()
        assert "record" not in letter
        assert letter["sealed"]
        assert scene.holds_canary() == []

    def test_times_of_any_unit(self, scene: Scene) -> None:
        times = pa.array([5, 1, 6], pa.int64()).cast(pa.timestamp("ns", tz="UTC"))
        table = pa.table({"ts": times, "user": ["ann", CANARY, "bob"], "site": ["x"] * 3, "more": [b"\xff"] * 3})
        scene.write("in.parquet", encode("parquet", table))
        scene.sections["source"] = {"kind": "parquet", "path": "in.parquet"}
        ended = scene.run()
        assert ended.code == 0, ended.err
        assert scene.letters()[0]["record"]["ts"].startswith("1970-01-01 00:00:00.000000001")
