"""Streams of tuples from files to files: columns, missing values, dead letters, deadlines, going on after a stop."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal as library
from shoal.crypto.keys import as_secret
from shoal.encode.sealed import is_sealed_trace, read_sealed_trace
from shoal.methods.registry import methods_of
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from tests.e2e.scene import CANARY, Scene, encode, shoal

METHODS = methods_of("tuples")
SCHOOLS = {"any": {"lower": ["primary", "secondary"], "upper": ["bachelor", "master"]}}
LEAVES = ["primary", "secondary", "bachelor", "master"]
HEAD = "id,age,school,ts,work,note\n"


def people(count: int) -> list[dict[str, Any]]:
    """Rows that differ; every seventh age and every fifth school is missing, every ninth person comes again."""
    return [
        {
            "id": f"p{number % 9 if number % 9 == 0 else number}",
            "age": None if number % 7 == 3 else 20 + number * 13 % 50,
            "school": None if number % 5 == 2 else LEAVES[number * 7 % 4],
            "ts": 10 * number,
            "work": f"w{number % 3}",
            "note": f"n{number % 2}",
        }
        for number in range(count)
    ]


@pytest.fixture
def stage(scene: Scene) -> Scene:
    """A policy for tuples, and 120 rows."""
    scene.sections = {
        "stream": {"person": "id", "carry": ["note"]},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {
            "method": "fads", "k": 3, "deadline": 20, "reuse": 5, "sensitive": ["work"],
            "quasi": {
                "age": {"kind": "numeric", "low": 17, "high": 90, "grid": 5},
                "school": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": SCHOOLS}},
            },
        },
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
        "trace": {"path": "trace.parquet"},
    }  # fmt: skip
    scene.write("in.csv", encode("csv", people(120)))
    return scene


def lines(scene: Scene, name: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (scene.folder / name).read_text().splitlines()]


def classes(rows: list[dict[str, Any]]) -> Counter[str]:
    """Rows that look alike in their quasi-identifiers."""
    return Counter(json.dumps([row["age"], row["school"]]) for row in rows)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_from_csv_to_json(stage: Scene, method: str) -> None:
    stage.sections["anonymize"]["method"] = method
    ended = stage.run("--json", "--quiet")
    assert ended.code == 0, ended.err
    rows = lines(stage)
    assert len(rows) == ended.summary["released"] > 60
    assert ended.summary["rows_in"] == 120 == ended.summary["released"] + ended.summary["suppressed"]
    assert list(rows[0]) == ["age", "school", "work", "note"]
    assert min(classes(rows).values()) >= 3
    metrics = ended.summary["metrics"]
    assert 0 < metrics["loss"] < 1
    assert metrics["formed"] > 0
    assert 0 <= metrics["delay"] <= metrics["max_delay"]
    assert ended.summary["delay_unit"] == "arrivals"
    trace = pq.read_table(stage.folder / "trace.parquet")
    assert trace.num_rows == 120
    assert sorted(trace.column("row").to_pylist()) == list(range(120))


@pytest.mark.parametrize("source", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("sink", ["csv", "jsonl", "parquet", "arrow"])
def test_formats_give_the_same(stage: Scene, source: str, sink: str) -> None:
    assert stage.run("--quiet").code == 0
    expected = [(row["age"], row["school"], row["work"], row["note"]) for row in lines(stage)]
    stage.write(f"in.{source}", encode(source, people(120)))
    stage.sections["source"] = {"kind": source, "path": f"in.{source}"}
    stage.sections["sink"] = {"kind": sink, "path": f"other.{sink}"}
    ended = stage.run("--quiet")
    assert ended.code == 0, ended.err
    table = stage.released(f"other.{sink}")
    assert table.column_names == ["age", "school", "work", "note"]
    rows = [(_range(row["age"]), row["school"] or None, row["work"], row["note"]) for row in table.to_pylist()]
    assert rows == expected


def _range(value: Any) -> Any:
    """A range in JSON, from any format."""
    if isinstance(value, dict):
        return [value["lo"], value["hi"]]
    return json.loads(value) if isinstance(value, str) and value else value or None


def test_types_of_ranges(stage: Scene) -> None:
    stage.sections["sink"] = {"kind": "parquet", "path": "out.parquet"}
    assert stage.run("--quiet").code == 0
    assert stage.released("out.parquet").schema.field("age").type.field("lo").type == pa.float64()
    stage.sections["source"]["types"] = {"age": "int64"}
    assert stage.run("--quiet").code == 0
    assert stage.released("out.parquet").schema.field("age").type.field("lo").type == pa.int64()
    assert not {"id", "ts"} & set(stage.released("out.parquet").column_names)


def test_summary_for_people(stage: Scene) -> None:
    out = stage.run("--quiet").out.decode()
    for beginning in ("rows in  ", "average loss  ", "average delay  ", "clusters  ", "promise  "):
        assert any(line.startswith(beginning) for line in out.splitlines()), beginning
    assert "clamped" not in out


def test_bad_rows_are_letters_with_line_and_column(stage: Scene) -> None:
    good = "".join(f"q{number},30,master,0,w{number % 2},n\n" for number in range(10))
    bad = [
        (f"{CANARY},old,master,0,w,n\n", "age", "not a value of type double"),
        (f"{CANARY},1000,master,0,w,n\n", "age", "outside"),
        (f"bob,30,{CANARY},0,w,n\n", "school", "hierarchy"),
        (f"bob,30,upper,0,{CANARY},n\n", "school", "hierarchy"),
        (f",30,master,0,w,{CANARY}\n", "id", "missing person identifier"),
        (f"{CANARY},30\n", None, "2 fields where the header has 6"),
    ]
    text = HEAD + good + "".join(line for line, _, _ in bad) + good.replace("q", "r")
    path = stage.write("in.csv", text)
    ended = stage.run("--json", "--quiet")
    assert ended.code == 0, ended.err
    letters = stage.letters("out.jsonl.dead.jsonl")
    assert [(letter["file"], letter["row"], letter["line"]) for letter in letters] == [
        (str(path), 11 + number, 12 + number) for number in range(len(bad))
    ]
    assert [letter["column"] for letter in letters] == [column for _, column, _ in bad]
    for letter, (_, _, reason) in zip(letters, bad, strict=True):
        assert reason in letter["reason"]
        assert ";" in letter["reason"], "it says what to do"
    assert ended.summary["dead"] == len(bad) == sum(ended.summary["dead_by_reason"].values())
    assert ended.summary["dead_by_reason"]["unreadable"] == 2
    assert len(lines(stage)) == 20
    assert stage.holds_canary() == []
    assert CANARY.encode() not in ended.out


def test_values_outside_may_be_clamped(stage: Scene) -> None:
    stage.sections["anonymize"]["quasi"]["age"]["outside"] = "clamp"
    stage.write("in.csv", HEAD + "".join(f"q{number},{number * 20},master,0,w,n\n" for number in range(10)))
    ended = stage.run("--json", "--quiet")
    assert ended.summary["dead"] == 0
    assert ended.summary["metrics"]["clamped"] == 6
    assert "clamped                   6  values" in stage.run("--quiet").out.decode()
    ranges = [row["age"] for row in lines(stage)]
    assert all(17 <= low <= high <= 90 for low, high in ranges)


WORDS = {"age": "?", "school": "NA", "work": " ? "}


def with_words(stage: Scene, nulls: list[str]) -> None:
    """In every fourth row a column has a word for a missing value."""
    rows = [{**row, "age": row["age"] and str(row["age"])} for row in people(120)]
    for number in range(0, 120, 4):
        name = list(WORDS)[number // 4 % 3]
        rows[number][name] = WORDS[name]
    stage.write("in.csv", encode("csv", rows))
    stage.sections["source"]["nulls"] = nulls


def test_words_for_a_missing_value(stage: Scene) -> None:
    with_words(stage, ["?", "NA"])
    ended = stage.run("--json", "--quiet")
    assert (ended.code, ended.summary["dead"]) == (0, 0), ended.err
    assert {row["work"] for row in lines(stage)} == {"w0", "w1", "w2", None}
    audited = shoal("audit", "out.jsonl", "--truth", "in.csv", "--trace", "trace.parquet", "--policy", stage.policy)
    assert audited.code == 0, audited.out
    with_words(stage, [])
    assert stage.run("--json", "--quiet").summary["dead"] == 20


def test_the_doctor_on_words_for_a_missing_value(stage: Scene) -> None:
    with_words(stage, [])
    stage.write_policy()
    out = shoal("doctor", stage.policy).out.decode()
    assert "column 'age': 10 values cannot be read as numbers; if they mean that a value is missing" in out
    assert (
        "column 'school': some values look like words for a missing value; if they are, set [source] nulls = [\"NA\"]"
        in out
    )
    assert (
        "column 'work': some values look like words for a missing value; if they are, set [source] nulls = [\"?\"]"
        in out
    )
    with_words(stage, ["?", "NA"])
    stage.write_policy()
    out = shoal("doctor", stage.policy).out.decode()
    assert "nulls =" not in out
    assert "column 'work': some" not in out


def test_a_word_that_the_hierarchy_knows_is_a_value(stage: Scene) -> None:
    stage.sections["anonymize"]["quasi"]["school"]["hierarchy"]["tree"] = {"any": [*LEAVES, "unknown"]}
    stage.write("in.csv", encode("csv", [{**row, "school": "unknown"} for row in people(40)]))
    stage.write_policy()
    assert "nulls =" not in shoal("doctor", stage.policy).out.decode()


def test_numbers_that_turn_out_to_have_a_fraction(stage: Scene) -> None:
    """The first thousand are whole; the next are read all the same."""
    for kind in ("csv", "jsonl"):
        rows = [{**row, "age": 30 if number < 1100 else 30.5} for number, row in enumerate(people(1200))]
        data = encode("csv", rows) if kind == "csv" else b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        stage.write(f"in.{kind}", data)
        stage.sections["source"] = {"kind": kind, "path": f"in.{kind}"}
        ended = stage.run("--json", "--quiet")
        assert (ended.code, ended.summary["dead"]) == (0, 0)


def test_suppressed_rows_may_be_published_at_the_root(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"k": 50, "deadline": 100, "suppressed": "root"}
    ended = stage.run("--json", "--quiet")
    assert ended.summary["suppressed"] > 0
    assert ended.summary["suppressed_left"]
    rows = lines(stage)
    assert len(rows) == 120
    assert {"age": [17.0, 90.0], "school": "any"} in [{name: row[name] for name in ("age", "school")} for row in rows]
    assert "(published fully generalized)" in stage.run("--quiet").out.decode()


# ---- deadlines in time


def timed(stage: Scene) -> None:
    stage.sections["stream"]["time"] = "ts"
    stage.sections["anonymize"] |= {"deadline": "3min", "reuse": "30s"}


def test_deadlines_in_time(stage: Scene) -> None:
    timed(stage)
    ended = stage.run("--json", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.summary["released"] > 100
    assert ended.summary["delay_unit"] == "seconds"
    assert 0 < ended.summary["metrics"]["delay"] <= ended.summary["metrics"]["max_delay"] <= 180
    assert list(lines(stage)[0]) == ["age", "school", "work", "note"]
    trace = pq.read_table(stage.folder / "trace.parquet")
    assert max(trace.column("delay").to_pylist()) <= 180 * 10**9


def test_a_row_without_a_usable_time(stage: Scene) -> None:
    timed(stage)
    stage.write(
        "in.csv", HEAD + "".join(f"q{number},30,master,{number},w,n\n" for number in range(9)) + "r,1,,soon,,\n"
    )
    ended = stage.run("--json", "--quiet")
    assert (ended.summary["released"], ended.summary["dead"]) == (9, 1)
    (letter,) = stage.letters("out.jsonl.dead.jsonl")
    assert (letter["line"], letter["column"]) == (11, "ts")


def test_a_row_too_far_ahead(stage: Scene) -> None:
    timed(stage)
    stage.sections["anonymize"]["max_gap"] = "1h"
    rows = "".join(f"q{number},30,master,{number},w,n\n" for number in range(9))
    stage.write("in.csv", HEAD + rows + "r,30,master,9999999,w,n\n" + rows.replace("q", "s"))
    ended = stage.run("--json", "--quiet")
    assert (ended.summary["released"], ended.summary["dead"]) == (18, 1)
    (letter,) = stage.letters("out.jsonl.dead.jsonl")
    assert (letter["line"], letter["column"]) == (11, "ts")
    assert "max_gap" in letter["reason"]


def test_moments_as_quasi_identifiers(stage: Scene) -> None:
    quasi = {"kind": "numeric", "low": "2024-01-01", "high": "2025-01-01", "grid": "7d"}
    stage.sections["anonymize"]["quasi"]["ts"] = quasi
    rows = [{**row, "ts": f"2024-03-{1 + number % 28:02}T12:00:00"} for number, row in enumerate(people(60))]
    stage.write("in.csv", encode("csv", rows))
    stage.sections["sink"] = {"kind": "parquet", "path": "out.parquet"}
    ended = stage.run("--json", "--quiet")
    assert (ended.code, ended.summary["dead"]) == (0, 0), ended.err
    released = stage.released("out.parquet")
    assert released.schema.field("ts").type.field("lo").type == pa.timestamp("us", tz="UTC")
    assert {row["lo"].weekday() for row in released.column("ts").to_pylist() if row} == {0}


# ---- going on


class Stop(Exception):
    """The run is interrupted."""


class StopAfter(Observer):
    """Lets a few batches pass."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def progress(self, summary: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise Stop


def trace_of(stage: Scene) -> list[dict[str, Any]]:
    path = stage.folder / "trace.parquet"
    table = read_sealed_trace(path, as_secret(None)) if is_sealed_trace(path) else pq.read_table(path)
    return table.to_pylist()


@pytest.mark.parametrize(
    ("sink", "with_key", "on_time"),
    [("csv", True, False), ("jsonl", False, True), ("parquet", True, True), ("parquet", False, False)],
)
def test_a_run_stopped_halfway_resumes(
    stage: Scene, monkeypatch: pytest.MonkeyPatch, sink: str, with_key: bool, on_time: bool
) -> None:
    if on_time:
        timed(stage)
    if with_key:
        monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.write("key.txt", "sixteen bytes at least")))
    files = [f"in{number}.csv" for number in range(4)]
    for number, name in enumerate(files):  # a file is at least a batch
        stage.write(name, encode("csv", people(120)[30 * number : 30 * number + 30]))
    stage.sections["source"]["path"] = files
    stage.sections["sink"] = {"kind": sink, "path": f"whole.{sink}"}
    assert stage.run("--json", "--quiet").code == 0
    whole, summary = stage.released(f"whole.{sink}"), stage.run("--json", "--quiet").summary
    whole_trace = trace_of(stage)
    stage.sections["sink"]["path"] = f"twice.{sink}"
    stage.sections["checkpoint"] = {"path": "state", "every": 1}
    stage.write_policy()
    with pytest.raises(Stop):
        Pipeline.from_policy(stage.policy).run(StopAfter(3))
    assert not (stage.folder / f"twice.{sink}").exists()
    ended = stage.run("--json")
    assert ended.code == 0, ended.err
    assert "resuming from the checkpoint after " in ended.err
    assert ended.summary["resumed"]
    twice, trace = stage.released(f"twice.{sink}"), trace_of(stage)
    if with_key:
        assert twice.equals(whole)
        assert trace == whole_trace
    else:  # each run made a key of its own, and publishes the rows of one event in an order of its own
        assert sorted(map(str, twice.to_pylist())) == sorted(map(str, whole.to_pylist()))
        assert sorted(trace, key=itemgetter("row")) == sorted(whole_trace, key=itemgetter("row"))
    assert {name: ended.summary[name] for name in ("rows_in", "released", "suppressed", "metrics")} == {
        name: summary[name] for name in ("rows_in", "released", "suppressed", "metrics")
    }
    again = stage.run("--json")
    assert again.summary["finished_before"]
    assert again.summary["metrics"] == summary["metrics"]


def test_a_checkpoint_of_other_quasi_identifiers_is_refused(stage: Scene) -> None:
    stage.sections["checkpoint"] = {"path": "state", "every": 1}
    assert stage.run("--quiet").code == 0
    stage.sections["anonymize"]["quasi"]["age"]["grid"] = 1
    ended = stage.run("--quiet")
    assert ended.code == 1
    assert "these checkpoints are of another policy" in ended.err


# ---- the doctor


def test_the_doctor(stage: Scene) -> None:
    stage.write("in.csv", encode("csv", [*people(120), {**people(1)[0], "age": 500, "school": CANARY}]))
    stage.write_policy()
    ended = shoal("doctor", stage.policy)
    out = ended.out.decode()
    assert ended.code == 0, out
    for words in (
        "all 121 rows were read",
        "different people, k = 3",
        "column 'age': 14.0% of its values are missing",
        "column 'age': 1 values are outside low and high",
        "column 'school': 1 values are not leaves of the hierarchy",
        'types = {age = "int64"}',
        "column 'work': k people may all have the same value",
        "would be released",
        "average loss 0.",
        "this policy can run",
    ):
        assert words in out
    for words in ("without a grid", "pseudonym", CANARY, "Traceback"):
        assert words not in out


def test_the_doctor_on_deadlines_in_time(stage: Scene) -> None:
    timed(stage)
    stage.write_policy()
    out = shoal("doctor", stage.policy).out.decode()
    assert "about 18 rows arrive within the deadline" in out
    assert "average delay" in out
    assert "seconds" in out


def test_the_doctor_if_nothing_can_be_released(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"k": 500, "deadline": 1000}
    stage.write_policy()
    out = shoal("doctor", stage.policy).out.decode()
    assert "nothing can be released; choose a smaller k" in out
    assert "choose a smaller k, a longer deadline" in out


def test_a_numeric_column_that_is_text(stage: Scene) -> None:
    stage.write("in.parquet", encode("parquet", [{**row, "age": "old"} for row in people(5)]))
    stage.sections["source"] = {"kind": "parquet", "path": "in.parquet"}
    ended = stage.run("--quiet")
    assert ended.code == 1
    assert "column 'age'" in ended.err
    assert "old" not in ended.err
    assert shoal("doctor", stage.policy).code == 1


def test_from_a_pipe_to_a_pipe(stage: Scene) -> None:
    stage.sections["source"]["path"] = "-"
    stage.sections["sink"]["path"] = "-"
    stage.sections["dead_letters"] = {"path": "dead.jsonl"}
    ended = stage.run("--quiet", stdin=encode("csv", people(120)))
    assert ended.code == 0, ended.err
    assert min(classes([json.loads(line) for line in ended.out.splitlines()]).values()) >= 3
    assert "average loss" in ended.err


@pytest.mark.compiled
def test_rows_are_published_to_a_live_pipe_when_they_are_due(stage: Scene) -> None:
    stage.sections["source"]["path"] = "-"
    stage.sections["sink"]["path"] = "-"
    stage.sections["dead_letters"] = {"path": "dead.jsonl"}
    stage.sections["anonymize"] |= {"k": 2, "deadline": 1}
    stage.write_policy()
    command = [sys.executable, "-m", "shoal.cli", "run", str(stage.policy), "--quiet"]
    with subprocess.Popen(command, cwd=stage.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        watchdog = threading.Timer(300, process.kill)  # a row that never comes ends the wait, not the test run
        watchdog.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode("csv", people(2)))
        process.stdin.flush()
        seen = [process.stdout.readline() for _ in range(2)]
        process.stdin.close()
        assert process.wait() == 0
        watchdog.cancel()
    assert [json.loads(line)["school"] for line in seen] == ["any", "any"]


def test_the_same_as_in_python(stage: Scene) -> None:
    assert stage.run("--quiet").code == 0
    schema = library.Schema(
        person="id", sensitive=["work"], carry=["note"],
        quasi=[
            library.Numeric("age", low=17, high=90, grid=5),
            library.Categorical("school", library.Hierarchy.from_nested(SCHOOLS)),
        ],
    )  # fmt: skip
    method = library.Fads(schema, k=3, deadline=20, reuse=5)
    rows = [{**row, "age": None if row["age"] is None else float(row["age"])} for row in people(120)]
    released = [out for row in rows for out in method.push(row)]
    released += method.flush().rows.to_pylist()
    assert [(_range(row["age"]), row["school"], row["work"]) for row in released] == [
        (row["age"], row["school"], row["work"]) for row in lines(stage)
    ]


def test_the_policy_folder_does_not_matter(stage: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert stage.run("--quiet").code == 0
    assert len(lines(stage)) > 100


# ---- how a run ends


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_run_names_unfinished_files(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.cli.output.render.LineObserver.progress", interrupt)
    ended = stage.run()
    assert ended.code == 130
    names = ("out.jsonl.partial", "trace.parquet.partial", "out.jsonl.dead.jsonl")
    # Rows are written in a thread of their own: it may not have begun with all of the files.
    left = [f"{stage.folder / name}" for name in names if (stage.folder / name).exists()]
    assert left
    assert ended.sentences == [
        f"shoal: interrupted; not finished: {', '.join(left)}; the next run replaces them (with --checkpoint it would "
        "resume)"
    ]
    monkeypatch.setattr("shoal.pipeline.run.make_anonymizer", interrupt)
    for path in left:
        Path(path).unlink()
    assert stage.run().sentences == ["shoal: interrupted; nothing was written"]


def test_an_interrupted_run_with_a_checkpoint_resumes(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("shoal.cli.output.render.LineObserver.progress", interrupt)
        ended = stage.run("--checkpoint", "state")
    assert ended.code == 130
    assert ended.sentences[-1].startswith("shoal: interrupted; start the same command again")
    assert stage.run("--checkpoint", "state").code == 0


def test_a_run_that_releases_nothing_reports_it(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"l": 4}
    ended = stage.run()
    assert ended.code == 3
    nothing, rare = ended.sentences
    assert nothing.startswith("shoal: warning: nothing was released of ")
    assert "suppressed (100.0%), because too few people have similar values, or their sensitive" in nothing
    assert "suppressed because fewer than k = 3 people lack the same columns" in rare
    out = shoal("doctor", stage.policy).out.decode()
    assert "column 'work': 3 different values, fewer than l = 4: nothing can be released" in out
    stage.write("in.csv", HEAD + ",20,master,1,w,n\n" * 9)
    ended = stage.run("--json")
    expected = (
        "nothing was released: 9 of 9 rows (100.0%) were refused: 9 null-person; each one is listed in "
        f"{stage.folder / 'out.jsonl.dead.jsonl'}. Try this first: column 'id': missing person identifier; fill the "
        "column (null-person)"
    )
    assert ended.sentences == [f"shoal: warning: {expected}"]
    assert ended.summary["outcome"] == expected
    assert ended.summary["warnings"] == [expected]


def test_a_cost_is_reported_only_if_the_policy_states_what_a_delay_costs(stage: Scene) -> None:
    """It grows with every arrival that a row waits: by default to figures such as 1.6e15, which are meaningless."""
    assert "cost" not in stage.run("--json").summary["metrics"]
    stage.sections["anonymize"] |= {"alpha": 0.0}
    found = stage.run("--json").summary["metrics"]
    assert found["cost"] == found["loss"]


def test_the_doctor_on_many_rows_refused(stage: Scene) -> None:
    rows = [{**row, "age": 99 if number < 7 else row["age"]} for number, row in enumerate(people(120))]
    stage.write("in.csv", encode("csv", rows))
    stage.write_policy()
    out = shoal("doctor", stage.policy).out.decode()
    (outcome,) = (line for line in out.splitlines() if "would be released" in line)
    assert outcome.startswith("look")
    assert outcome.endswith("5.83% refused; many rows are refused, find out why")
