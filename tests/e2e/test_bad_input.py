"""Input that cannot be read: one sentence that names the file and says what to do, and exit code 1."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from tests.e2e.scene import CANARY, RELEASED, ROWS, Ended, Scene, encode, pairs

NO_ROWS = pa.table({name: pa.array([], pa.string()) for name in ROWS[0]})
MANY = [{"ts": time, "user": f"{CANARY}{time % 50}", "site": f"s{time % 3}"} for time in range(20_000)]


def one_sentence(ended: Ended, scene: Scene, *texts: str, code: int = 1) -> None:
    assert ended.code == code, ended.err
    assert len(ended.sentences) == 1, ended.err
    assert ended.err.startswith("shoal: ")
    assert "Traceback" not in ended.err
    assert "internal error" not in ended.err
    assert CANARY not in ended.err
    assert CANARY.encode() not in ended.out
    for text in texts:
        assert text in ended.err
    assert scene.holds_canary() == []


def give(scene: Scene, kind: str, content: bytes) -> str:
    """Put the input there; give its path."""
    form = kind.partition(".")[0]
    scene.sections["source"] = {"kind": "arrow" if form == "arrows" else form, "path": f"in.{kind}"}
    return str(scene.write(f"in.{kind}", content))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("missing", ["ts", "user", "site"])
def test_a_missing_column(scene: Scene, kind: str, missing: str) -> None:
    rows = [{name: value for name, value in row.items() if name != missing} for row in ROWS]
    path = give(scene, kind, encode(kind, rows))
    one_sentence(scene.run("--json"), scene, path, f"'{missing}'", "correct the policy")


def test_a_header_with_persons_in_it_is_not_shown(scene: Scene) -> None:
    """A file without a header line: its first line is a record."""
    path = give(scene, "csv", f"10,{CANARY},a.example\n".encode())
    one_sentence(scene.run(), scene, path, "there are no columns 'ts', 'user', 'site' among", "header")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("column", "values"),
    [("ts", [True, False]), ("ts", [[1], [2]]), ("user", [1.5, 2.5]), ("site", [["a"], ["b"]]), ("site", [0.5, 1.5])],
)
def test_a_wrong_type(scene: Scene, kind: str, column: str, values: list[object]) -> None:
    table = pa.table({"ts": [1, 2], "user": [CANARY, "bob"], "site": ["a", "a"], column: values})
    path = give(scene, kind, encode(kind, table))
    one_sentence(scene.run(), scene, path, f"column '{column}'", "give ")


def test_columns_of_the_same_name(scene: Scene) -> None:
    table = pa.Table.from_arrays([pa.array(["1"])] * 4, names=["ts", "user", "site", "user"])
    path = give(scene, "parquet", encode("parquet", table))
    one_sentence(scene.run(), scene, path, "several columns are named 'user'")


def test_the_second_column_of_a_name_has_another_one_in_csv(scene: Scene) -> None:
    give(scene, "csv", b"ts,user,site,user\n1,ann,x,zoe\n2,bob,x,zoe\n")
    assert scene.run("--json").summary["released"] == 1, "people are counted in the first column"


def test_other_columns_may_share_a_name(scene: Scene) -> None:
    give(scene, "csv", b"ts,user,site,more,more\n1,ann,x,1,2\n2,bob,x,1,2\n")
    assert scene.run().code == 0


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "arrows", "csv.gz"])
def test_an_empty_file(scene: Scene, kind: str) -> None:
    path = give(scene, kind, b"")
    one_sentence(scene.run(), scene, path)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("csv", b"ts,user,site\n"), ("csv", b"ts,user,site"), ("csv", b"\xef\xbb\xbfts,user,site\r\n"), ("jsonl", b""),
        ("jsonl", b"\n\n"), ("parquet", encode("parquet", NO_ROWS)),
        ("arrow", encode("arrow", NO_ROWS)),
    ],
)  # fmt: skip
def test_a_header_and_no_rows(scene: Scene, kind: str, content: bytes) -> None:
    """It is valid, with a warning; the release shows its columns."""
    give(scene, kind, content)
    ended = scene.run("--json")
    assert ended.code == 0
    assert ended.sentences == [
        "shoal: warning: the input has no records; check its path and whether something has been written to it"
    ]
    assert ended.summary["rows_in"] == 0
    assert (scene.folder / "out.csv").read_text() == '"ts","user","site"\n'


@pytest.mark.parametrize("kind", ["csv.gz", "jsonl.gz", "csv.zst", "arrow", "arrows", "arrows.gz"])
def test_what_breaks_off_is_used_up_to_there(scene: Scene, kind: str) -> None:
    whole = encode(kind, MANY)
    path = give(scene, kind, whole[: len(whole) * 2 // 3])
    ended = scene.run("--json", "--quiet")
    one_sentence(ended, scene, path, "breaks off", "fetch the whole file again", "what could be read was used")
    summary = ended.summary
    assert 1000 < summary["rows_in"] < 20_000
    assert not summary["ok"]
    released = pairs(scene.released())
    assert len(released) == summary["released"] > 1000
    assert [time for time, _ in released] == list(range(released[0][0], released[-1][0] + 1)), "nothing is left out"


def test_what_is_damaged_in_the_middle_is_used_up_to_there(scene: Scene) -> None:
    whole = bytearray(encode("csv.gz", MANY))
    whole[len(whole) // 2 :] = os.urandom(len(whole) - len(whole) // 2)
    path = give(scene, "csv.gz", bytes(whole))
    ended = scene.run("--json")
    one_sentence(ended, scene, path, "fetch the")
    assert ended.summary["rows_in"] > 1000


@pytest.mark.parametrize("kind", ["parquet", "csv.gz", "arrow"])
def test_what_breaks_off_at_once(scene: Scene, kind: str) -> None:
    path = give(scene, kind, encode(kind, ROWS)[:30])
    one_sentence(scene.run(), scene, path)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_something_else(scene: Scene, kind: str) -> None:
    path = give(scene, kind, CANARY.encode() * 100)
    one_sentence(scene.run(), scene, path, "check the path")


def test_utf_16(scene: Scene) -> None:
    path = give(scene, "csv", encode("csv", ROWS).decode().encode("utf-16"))
    one_sentence(scene.run(), scene, path, "convert it to UTF-8")


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere-*.csv", "nowhere/"])
def test_no_file(scene: Scene, name: str) -> None:
    scene.sections["source"]["path"] = name
    one_sentence(scene.run(), scene, "nowhere")


def test_a_second_file_that_cannot_be_read_ends_the_run_after_the_first(scene: Scene) -> None:
    scene.write("in-1.csv", encode("csv", ROWS))
    second = scene.write("in-2.csv", "something,else\n1,2\n")
    scene.sections["source"]["path"] = "in-*.csv"
    one_sentence(
        scene.run(),
        scene,
        str(second),
        "there are no columns 'ts', 'user', 'site' among",
        "what could be read was used",
    )
    assert pairs(scene.released()) == RELEASED
