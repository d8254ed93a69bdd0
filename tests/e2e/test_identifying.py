"""Carried columns that single people out: the doctor reports them, a run refuses them, the policy may accept them."""

from __future__ import annotations

import json

import pytest

from tests.e2e.scene import Scene, encode, shoal

K = 3
ENOUGH = 20 * K


@pytest.fixture
def stage(scene: Scene) -> Scene:
    scene.sections = {
        "stream": {"person": "id", "carry": ["kind", "speed"]},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {
            "method": "fads", "k": K, "deadline": 20, "reuse": 5, "sensitive": ["pay"],
            "quasi": {"age": {"kind": "numeric", "low": 0, "high": 100}},
        },
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
    }  # fmt: skip
    write(scene, ENOUGH)
    return scene


def write(scene: Scene, people: int, name: str = "in.csv") -> bytes:
    rows = [
        {"id": f"p{n}", "age": n * 7 % 90, "kind": "ab"[n % 2], "speed": f"v{n}", "pay": f"w{n}"} for n in range(people)
    ]
    data = encode("csv", rows)
    scene.write(name, data)
    return data


def test_the_doctor_reports_that_it_cannot_run(stage: Scene) -> None:
    stage.write_policy()
    ended = shoal("doctor", stage.policy, "--json")
    assert ended.code == 1
    remarks = [(found["level"], found["sentence"]) for found in json.loads(ended.out)["remarks"]]
    (wrong,) = (sentence for level, sentence in remarks if level == "wrong")
    assert "column 'speed': 100.0% of 60 rows have a value that fewer than k = 3 people have" in wrong
    assert "100.0% of its values belong to one person" in wrong
    assert "carry_identifying = true" in wrong
    looks = [sentence for level, sentence in remarks if level == "look"]
    assert any(sentence.startswith("column 'pay': 100.0% of 60 rows") for sentence in looks)
    assert any(sentence.startswith("column 'kind':") and "of their class" in sentence for sentence in looks)
    assert "v17" not in ended.out.decode()


def test_a_run_refuses_before_anything_is_written(stage: Scene) -> None:
    stage.write_policy()
    ended = shoal("run", stage.policy)
    assert ended.code == 2
    assert "[stream] carry: column 'speed': 100.0% of 60 rows have a value that fewer than k = 3 people" in ended.err
    assert "'kind'" not in ended.err
    assert sorted(path.name for path in stage.folder.iterdir()) == ["in.csv", "policy.toml"]


def test_the_policy_may_accept_it(stage: Scene) -> None:
    stage.sections["stream"]["carry_identifying"] = True
    stage.write_policy()
    looked = shoal("doctor", stage.policy)
    assert looked.code == 0
    assert "singles people out, as carry_identifying = true accepts" in looked.out.decode()
    assert shoal("run", stage.policy).code == 0


def test_too_few_people_to_judge_by_only_warn(stage: Scene) -> None:
    write(stage, ENOUGH - 1)
    stage.write_policy()
    ended = shoal("run", stage.policy, "--json")
    assert ended.code == 0
    (warning,) = ended.summary["warnings"]
    assert "59 people are too few to judge by (60 are needed), so it is not refused" in warning
    assert warning in ended.err


def test_columns_that_many_share_pass(stage: Scene) -> None:
    stage.sections["stream"]["carry"] = ["kind"]
    stage.write_policy()
    ended = shoal("run", stage.policy, "--json")
    assert (ended.code, ended.summary["warnings"]) == (0, [])


def test_rows_are_taken_from_several_files(stage: Scene) -> None:
    write(stage, ENOUGH - 1, "in-1.csv")
    stage.write("in-2.csv", b"id,age,kind,speed,pay\nq,1,a,one,two\n")
    stage.sections["source"]["path"] = "in-*.csv"
    stage.write_policy()
    assert "column 'speed': 100.0% of 60 rows" in shoal("run", stage.policy).err


def test_each_row_may_be_a_person(stage: Scene) -> None:
    write(stage, ENOUGH - 1, "in-1.csv")
    stage.write("in-2.csv", b"id,age,kind,speed,pay\nq,1,a,one,two\n")
    stage.sections["source"]["path"] = "in-*.csv"
    stage.sections["stream"]["person"] = "row"
    stage.write_policy()
    assert "column 'speed': 100.0% of 60 rows" in shoal("run", stage.policy).err


@pytest.mark.parametrize(("people", "code"), [(ENOUGH, 2), (ENOUGH - 1, 0)])
def test_a_pipe_is_judged_by_its_first_block(stage: Scene, people: int, code: int) -> None:
    stage.sections["source"]["path"] = "-"
    stage.write_policy()
    ended = shoal("run", stage.policy, "--json", stdin=write(stage, people))
    assert ended.code == code
    if code:
        assert "column 'speed'" in ended.err
        assert not (stage.folder / "out.jsonl").exists()
    else:
        assert any(
            "it was not measured" in one and "the first block of the pipe has 59 people" in one
            for one in ended.summary["warnings"]
        )


def test_z_counts_people_of_the_stream(scene: Scene) -> None:
    scene.sections["stream"]["carry"] = ["agent"]
    z = scene.sections["anonymize"]["z"]
    rows = [{"ts": n, "user": f"u{n}", "site": "s", "agent": f"a{n}"} for n in range(20 * z)]
    scene.write("in.csv", encode("csv", rows))
    scene.write_policy()
    ended = shoal("run", scene.policy)
    assert ended.code == 2
    assert f"fewer than z = {z} people have" in ended.err
    assert "and links their pseudonyms" not in ended.err
    rows = [{**row, "agent": f"a{number % 10}"} for number, row in enumerate(rows)]
    scene.write("in.csv", encode("csv", rows))
    assert shoal("run", scene.policy).code == 0
