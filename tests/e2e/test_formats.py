"""Every format in, every format out."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.e2e.scene import CANARY, RELEASED, ROWS, Scene, encode, pairs, read, shoal

TEXT = [f"{kind}{ending}" for kind in ("csv", "jsonl") for ending in ("", ".gz", ".zst")]
INPUTS = [*TEXT, "parquet", "arrow", "arrows", "arrows.gz", "parquet.zst"]
OUTPUTS = [*(f"out.{kind}" for kind in TEXT), "out.parquet", "out.arrow", "out.arrows"]
FOLDERS = ["csv", "jsonl", "parquet", "arrow"]


pytestmark = pytest.mark.usefixtures("key")


def kind_of(name: str) -> str:
    return {"arrows": "arrow"}.get(name.split(".")[0], name.split(".")[0])


@pytest.mark.parametrize("sink", OUTPUTS)
@pytest.mark.parametrize("source", INPUTS)
def test_in_and_out(scene: Scene, source: str, sink: str) -> None:
    scene.write(f"in.{source}", encode(source, ROWS))
    scene.sections["source"] = {"kind": kind_of(source), "path": f"in.{source}"}
    scene.sections["sink"] = {"kind": kind_of(sink.removeprefix("out.")), "path": sink}
    ended = scene.run("--json")
    assert ended.code == 0, ended.err
    released = scene.released(sink)
    assert pairs(released) == RELEASED
    assert released.schema.names == ["ts", "user", "site"]
    people = released.column("user").to_pylist()
    assert all(len(person) == 32 for person in people)
    assert len(set(people)) == 3
    assert ended.summary["released"] == 3
    assert ended.summary["suppressed"] == 3
    assert scene.holds_canary() == []


ZEEK = (
    "#separator \\x09\n#unset_field\t-\n#fields\tts\tuid\tuser\tsite\n#types\ttime\tstring\taddr\tstring\n"
    + "".join(f"{row['ts']}.000000\tC{row['ts']}\t{row['user']}\t{row['site']}\n" for row in ROWS)
    + "#close\t2024-01-01-00-00-00\n"
)


@pytest.mark.parametrize("is_piped", [False, True])
def test_a_log_of_zeek_is_read_and_audited(scene: Scene, is_piped: bool) -> None:
    log = scene.write("in.log", ZEEK)
    scene.sections["source"] = {"kind": "zeek", "path": "-" if is_piped else "in.log"}
    scene.sections["trace"] = {"path": "trace.parquet"}
    ended = scene.run("--json", stdin=ZEEK.encode() if is_piped else b"")
    assert ended.code == 0, ended.err
    assert pairs(scene.released()) == RELEASED
    evidence = ("--truth", log, "--trace", scene.folder / "trace.parquet", "--policy", scene.policy)
    audit = shoal("audit", scene.folder / "out.csv", *evidence)
    assert audit.code == 0, audit.out.decode() + audit.err
    planted = scene.folder / "out.csv"
    planted.write_text(planted.read_text().replace("b.example", "rare.example"))
    assert shoal("audit", planted, *evidence).code == 1


def log_line(row: dict[str, Any]) -> str:
    moment = datetime.fromtimestamp(row["ts"], timezone(timedelta(hours=-7))).strftime("%d/%b/%Y:%H:%M:%S %z")
    return f'{row["user"].replace(" ", "_")} - - [{moment}] "{row["site"]}" 200 12 "-" "curl/8"\n'


ACCESS_LOG = "".join(map(log_line, ROWS)) + "no line of a log\n"


@pytest.mark.parametrize("is_piped", [False, True])
def test_an_access_log_is_read_and_audited(scene: Scene, is_piped: bool) -> None:
    log = scene.write("in.log", ACCESS_LOG)
    scene.sections["source"] = {"kind": "access-log", "path": "-" if is_piped else "in.log"}
    scene.sections["stream"] = {"person": "host", "time": "time"}
    scene.sections["anonymize"]["attribute"] = "request"
    scene.sections["trace"] = {"path": "trace.parquet"}
    ended = scene.run("--json", stdin=ACCESS_LOG.encode() if is_piped else b"")
    assert ended.code == 0, ended.err
    assert sorted(scene.released().column("request").to_pylist()) == sorted(site for _, site in RELEASED)
    assert ended.summary["dead"] == 1
    (letter,) = map(json.loads, (scene.folder / "out.csv.dead.jsonl").read_text().splitlines())
    assert letter["line"] == len(ROWS) + 1
    assert "no line" not in json.dumps(letter)
    evidence = ("--truth", log, "--trace", scene.folder / "trace.parquet", "--policy", scene.policy)
    audit = shoal("audit", scene.folder / "out.csv", *evidence)
    assert audit.code == 0, audit.out.decode() + audit.err
    planted = scene.folder / "out.csv"
    planted.write_text(planted.read_text().replace("b.example", "rare.example"))
    assert shoal("audit", planted, *evidence).code == 1


@pytest.mark.parametrize("kind", ["zeek", "access-log"])
def test_logs_are_not_written(scene: Scene, kind: str) -> None:
    scene.sections["sink"] = {"kind": kind, "path": "out.log"}
    ended = scene.run()
    assert ended.code == 2
    assert "[sink] kind" in ended.err


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_of_parts(scene: Scene, kind: str) -> None:
    scene.sections["sink"] = {"kind": kind, "path": "out/"}
    assert scene.run().code == 0
    assert pairs(scene.released("out")) == RELEASED


@pytest.mark.parametrize("source", INPUTS)
def test_standard_input(scene: Scene, source: str) -> None:
    scene.sections["source"] = {"kind": kind_of(source), "path": "-"}
    ended = scene.run(stdin=encode(source, ROWS))
    assert ended.code == 0, ended.err
    assert pairs(scene.released()) == RELEASED


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_standard_output(scene: Scene, kind: str) -> None:
    scene.sections["sink"] = {"kind": kind, "path": "-"}
    ended = scene.run("--json")
    assert ended.code == 0, ended.err
    name = "out.arrows" if kind == "arrow" else f"out.{kind}"
    assert pairs(read(ended.out, name)) == RELEASED
    assert '"released": 3' in ended.err, "the summary makes room for the rows"
    assert CANARY not in ended.err
    assert (scene.folder / "shoal.dead.jsonl").exists()


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_compressed_standard_output(scene: Scene, compression: str) -> None:
    scene.sections["sink"] = {"kind": "jsonl", "path": "-", "compression": compression}
    ended = scene.run()
    assert pairs(read(ended.out, "out.jsonl" + {"gzip": ".gz", "zstd": ".zst"}[compression])) == RELEASED


def test_several_files_are_one_stream(scene: Scene) -> None:
    """In the order of their names, not of their creation; people are counted across files."""
    scene.write("in-2.csv", encode("csv", ROWS[4:]))
    scene.write("in-1.csv", encode("csv", ROWS[:2]))
    scene.write("in-10.csv", encode("csv", ROWS[2:4]))
    scene.sections["source"]["path"] = "in-*.csv"
    scene.sections["anonymize"]["lateness"] = "0s"
    ended = scene.run("--json")
    assert ended.summary["files"] == 3
    assert pairs(scene.released()) == RELEASED


def test_a_folder_in_name_order(scene: Scene) -> None:
    folder = scene.folder / "incoming"
    folder.mkdir()
    (folder / "b.jsonl.gz").write_bytes(encode("jsonl.gz", ROWS[3:]))
    (folder / "a.jsonl").write_bytes(encode("jsonl", ROWS[:3]))
    (folder / ".hidden").write_bytes(b"not json")
    (folder / "c.partial").write_bytes(b"not json")
    scene.sections["source"] = {"kind": "jsonl", "path": "incoming/"}
    ended = scene.run("--json")
    assert ended.summary["files"] == 2
    assert pairs(scene.released()) == RELEASED
    assert scene.letters() == []


def test_a_list_of_files(scene: Scene) -> None:
    scene.write("in-z.csv", encode("csv", ROWS[:3]))
    scene.write("in-a.csv", encode("csv", ROWS[3:]))
    scene.sections["source"]["path"] = ["in-z.csv", "in-a.csv"]
    assert scene.run().code == 0
    assert pairs(scene.released()) == RELEASED


def test_the_same_pseudonyms_in_every_format(scene: Scene) -> None:
    seen = set()
    for kind in FOLDERS:
        scene.sections["sink"] = {"kind": kind, "path": f"out.{kind}"}
        scene.run()
        seen.add(tuple(scene.released(f"out.{kind}").column("user").to_pylist()))
    assert len(seen) == 1
