"""Files as they are found: blanks after commas, no header, another delimiter. Each works, or says what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.scene import Scene, shoal

PEOPLE = 40
HEADER = ["id", "age", "work", "class"]


@pytest.fixture
def census(tmp_path: Path) -> Scene:
    """Adult as UCI ships it: a blank after each comma, no header, a question mark for what is missing."""
    scene = Scene(tmp_path)
    works = ("Private", "State-gov", "?")
    lines = [f"p{n}, {20 + n % 30}, {works[n % 3]}, {('<=50K', '>50K')[n % 2]}" for n in range(PEOPLE)]
    scene.write("in.csv", "\n".join(lines) + "\n")
    scene.write("work.csv", "Private;Any\nState-gov;Any\n")
    scene.sections = {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": "in.csv", "header": HEADER, "nulls": ["?"]},
        "anonymize": {"method": "least-loss", "k": 4, "deadline": 20, "reuse": 5, "sensitive": ["class"]},
        "anonymize.quasi.age": {"kind": "numeric", "low": 0, "high": 100, "grid": 5},
        "anonymize.quasi.work": {
            "kind": "categorical",
            "hierarchy": {"kind": "csv", "path": "work.csv", "sep": ";", "header": False},
        },
        "sink": {"kind": "csv", "path": "out.csv"},
        "trace": {"path": "trace.parquet"},
    }
    return scene


def audit(scene: Scene, *more: str) -> int:
    folder = scene.folder
    files = ("--truth", folder / "in.csv", "--trace", folder / "trace.parquet", "--policy", scene.policy)
    return shoal("audit", folder / "out.csv", *files, *more).code


def test_blanks_after_commas(census: Scene) -> None:
    ended = census.run("--json", "--quiet")
    assert ended.code == 0
    assert ended.summary["dead"] == 0
    assert ended.summary["released"] > 0.9 * PEOPLE
    assert set(census.released().column("class").to_pylist()) == {"<=50K", ">50K"}
    assert shoal("doctor", census.policy).code == 0
    assert audit(census) == 0


def test_blanks_that_count(census: Scene) -> None:
    """With trim = false a value is what stands between the commas; the auditor reads it so as well."""
    census.sections["source"]["trim"] = False
    ended = census.run("--json", "--quiet")
    assert ended.summary["dead"] == PEOPLE - PEOPLE // 3  # " ?" is a missing value all the same
    assert set(census.released().column("class").to_pylist()) == {" <=50K", " >50K"}
    assert audit(census) == 0
    census.sections["source"]["trim"] = True
    census.write_policy()
    assert audit(census) == 1


def test_trim_must_be_true_or_false_and_is_for_csv(census: Scene) -> None:
    census.sections["source"]["trim"] = "yes"
    assert "[source] trim: must be true or false" in census.run().err
    census.sections["source"] = {"kind": "jsonl", "path": "in.csv", "trim": True}
    assert "[source] trim: is only for csv" in census.run().err


def test_items_of_a_joined_text(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("in.csv", "items\n" + "a | b\n b|a \n" * 5)
    scene.sections = {
        "source": {"kind": "csv", "path": "in.csv", "separator": "|"},
        "anonymize": {"method": "k^m", "item": "items", "k": 5, "m": 2},
        "anonymize.generalize": {"balanced": 2},
        "sink": {"kind": "csv", "path": "out.csv"},
        "trace": {"path": "trace.parquet"},
    }
    ended = scene.run("--json", "--quiet")
    assert ended.summary["items"] == 2
    assert set(scene.released().column("items").to_pylist()) == {"a|b"}
    assert audit(scene) == 0


def test_a_header_with_too_few_names(census: Scene) -> None:
    census.sections["source"]["header"] = HEADER[:3]
    del census.sections["anonymize"]["sensitive"]
    census.run()
    reason = "4 fields where [source] header names 3; quote what holds the delimiter, or name every column of the file"
    assert census.letters()[0]["reason"] == reason


def test_a_file_without_a_header_when_none_is_given(census: Scene) -> None:
    del census.sections["source"]["header"]
    for command in ("run", "doctor"):
        census.write_policy()
        ended = shoal(command, census.policy)
        assert ended.code == 1
        said = ended.err + ended.out.decode()
        assert "there is no column 'id' among its 4 columns" in said
        assert 'name the columns in [source], such as header = ["first", "second"]' in said
        assert "Private" not in said


@pytest.mark.parametrize(("sign", "written"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
@pytest.mark.parametrize("command", ["run", "doctor"])
def test_another_delimiter(scene: Scene, sign: str, written: str, command: str) -> None:
    text = (scene.folder / "in.csv").read_text()
    scene.write("in.csv", text.replace(",", sign))
    scene.write_policy()
    ended = shoal(command, scene.policy)
    assert ended.code == 1
    hint = f'its header line is separated by "{written}": set delimiter = "{written}" in [source]'
    assert hint in ended.err + ended.out.decode()
    scene.sections["source"]["delimiter"] = sign
    assert scene.run().code == 0


def test_another_delimiter_without_a_header(census: Scene) -> None:
    census.write("in.csv", (census.folder / "in.csv").read_text().replace(",", ";"))
    census.run()
    assert census.letters()[0]["reason"] == (
        "1 field where [source] header names 4; complete the record, or set [source] delimiter if another character "
        "stands between fields"
    )


def test_names_that_differ_in_case(scene: Scene) -> None:
    text = (scene.folder / "in.csv").read_text()
    scene.write("in.csv", text.replace("user", "User"))
    assert "differ here in case or spaces; write them as the file does" in scene.run().err
