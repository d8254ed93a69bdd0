"""`shoal report` after a run: tables recounted from the released file, a picture, and its messages for bad input."""

from __future__ import annotations

import builtins
import csv
import hashlib
import sys
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.scene import CANARY, Ended, Scene, encode, shoal

MINUTE = 60


def visits() -> list[dict[str, Any]]:
    """Four minutes of a few people and sites."""
    random = Random(5)
    people = [CANARY, *(f"u{number}" for number in range(29))]
    return [
        {"ts": second, "user": random.choice(people), "site": f"{random.choice('aaaabbbccdefg')}.example"}
        for second in sorted(random.randrange(4 * MINUTE) for _ in range(360))
    ]


@pytest.fixture
def stage(scene: Scene, key: Path) -> Scene:
    """A run that is done."""
    rows = visits()
    scene.write("in.csv", encode("csv", rows))
    scene.write("in-1.csv", encode("csv", rows[:200]))
    scene.write("in-2.csv", encode("csv", rows[200:]))
    scene.sections["anonymize"] |= {"z": 3, "window": "1min"}
    assert scene.run("--quiet").code == 0
    return scene


def reported(stage: Scene, *args: str | Path) -> Ended:
    stage.write_policy()
    return shoal("report", "out.csv", "--policy", stage.policy, *args)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def sets_by_minute(stage: Scene) -> dict[int, dict[str, set[str]]]:
    found: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in lines(stage.folder / "out.csv"):
        found[int(row["ts"]) // MINUTE][row["user"]].add(row["site"])
    return found


def below(sets: dict[str, set[str]], k: int) -> int:
    """People whose set fewer than k have."""
    shared = Counter(frozenset(shown) for shown in sets.values() if shown)
    return sum(people for people in shared.values() if people < k)


@pytest.mark.parametrize(
    ("k", "truth"),
    [(2, ("in.csv",)), (3, ("in-1.csv", "in-2.csv")), (4, ("in-*.csv",))],
    ids=["one", "two", "glob"],
)
def test_the_tables_can_be_recounted(stage: Scene, k: int, truth: tuple[str, ...]) -> None:
    ended = reported(stage, "--k", str(k), "--out", "report", "--truth", *truth)
    assert ended.code == 0, ended.err
    minutes = sets_by_minute(stage)
    active: dict[int, set[str]] = defaultdict(set)
    for visit in visits():
        active[visit["ts"] // MINUTE].add(visit["user"])
    rows = Counter(int(row["ts"]) // MINUTE for row in lines(stage.folder / "out.csv"))
    table = lines(stage.folder / "report" / "windows.csv")
    assert [line["start"] for line in table] == [f"1970-01-01T00:0{minute}:00Z" for minute in range(4)]
    for minute, line in enumerate(table):
        sets = minutes[minute]
        exposed = below(sets, k)
        assert (int(line["active"]), int(line["shown"])) == (len(active[minute]), len(sets))
        assert (int(line["k_anonymous"]), int(line["not_k_anonymous"])) == (len(sets) - exposed, exposed)
        assert (int(line["unique"]), int(line["released_rows"])) == (below(sets, 2), rows[minute])
        assert float(line["k_anonymous_share"]) == pytest.approx(1 - exposed / len(sets), abs=1e-4)
        assert int(line["largest_set"]) == max(map(len, sets.values()))
        assert float(line["average_set"]) == pytest.approx(sum(map(len, sets.values())) / len(sets), abs=1e-4)
        assert line["target_met"] == ""
    costs = lines(stage.folder / "report" / "costs.csv")
    assert {line["window"] for line in costs} == {"all", *(line["start"] for line in table)}
    for line in costs:
        among = [sets for minute, sets in minutes.items() if line["window"] in ("all", table[minute]["start"])]
        without = [{person: shown - {line["value"]} for person, shown in sets.items()} for sets in among]
        fewer = sum(below(sets, k) for sets in among) - sum(below(sets, k) for sets in without)
        assert int(line["fewer_not_k_anonymous"]) == fewer > 0
        assert int(line["people_with_it"]) == sum(line["value"] in shown for sets in among for shown in sets.values())
    assert (stage.folder / "report" / "windows.png").read_bytes().startswith(b"\x89PNG")
    assert stage.holds_canary() == []


def test_what_a_reader_sees(stage: Scene) -> None:
    ended = reported(stage, "--truth", "in.csv", "--out", "report")
    said = ended.out.decode()
    minutes = sets_by_minute(stage)
    exposed, shown = sum(below(sets, 2) for sets in minutes.values()), sum(map(len, minutes.values()))
    numbers = {" ".join(line.split()[:-2]): line.split()[-2:] for line in said.splitlines()[:7]}
    assert numbers["not k-anonymous"] == [str(exposed), f"{exposed / shown:.1%}"]
    assert said.startswith("report of z-anonymity: 4 windows of 1min, k = 2 (the default; choose another with --k)\n")
    assert said.splitlines()[1].startswith("  people active")
    assert "--truth" not in said
    assert "counted if you give the private input (--truth)" in reported(stage).out.decode()
    assert "windows with the smallest share of k-anonymous people" in said
    assert "values that cost most" in said
    assert "tables         report/windows.csv, report/costs.csv\npicture        report/windows.png" in said
    assert ended.err == ""


def test_as_json(stage: Scene) -> None:
    summary = reported(stage, "--json").summary
    minutes = sets_by_minute(stage)
    assert summary["shown"] == sum(map(len, minutes.values()))
    assert summary["not_k_anonymous"] == sum(below(sets, 2) for sets in minutes.values())
    assert [window["shown"] for window in summary["windows"]] == [len(minutes[minute]) for minute in range(4)]
    assert (summary["active"], summary["target"], summary["k"], summary["window_s"]) == (None, None, 2, 60)
    fewer = [place["costs"][0]["fewer_not_k_anonymous"] for place in (summary, *summary["windows"])]
    assert fewer[0] >= max(fewer[1:]) > 0
    assert sorted(path.name for path in stage.folder.iterdir() if path.is_dir()) == [], "nothing was to be written"


def test_with_a_target(stage: Scene) -> None:
    del stage.sections["anonymize"]["z"]
    stage.sections["anonymize"]["target"] = {"k": 2, "p": 0.56}
    ended = reported(stage, "--out", "report")
    shares = [1 - below(sets, 2) / len(sets) for _, sets in sorted(sets_by_minute(stage).items())]
    met = [share >= 0.56 for share in shares]
    assert [line["target_met"] for line in lines(stage.folder / "report" / "windows.csv")] == [
        "yes" if one else "no" for one in met
    ]
    target = reported(stage, "--json").summary["target"]
    assert target == {"k": 2, "p": 0.56, "windows_shown": 4, "windows_met": sum(met)}
    assert 0 < sum(met) < 4
    assert f"56% of the people shown 2-anonymous: met in {sum(met)} of 4 windows" in ended.out.decode()


def test_where_sets_are_combined_all_are_k_anonymous(stage: Scene) -> None:
    stage.sections["anonymize"] |= {"combine": "k", "k": 2}
    assert stage.run("--quiet").code == 0
    summary = reported(stage, "--json").summary
    assert summary["shown"] == summary["k_anonymous"] > 0
    assert summary["costs"] == []
    said = reported(stage).out.decode()
    assert "cost" not in said
    assert "smallest share" not in said


def test_an_empty_release(stage: Scene) -> None:
    stage.write("out.csv", "ts,user,site\n")
    ended = reported(stage, "--out", "report")
    assert ended.code == 0
    assert "0 windows of 1min" in ended.out.decode()
    assert "picture        none: no window was found" in ended.out.decode()
    assert lines(stage.folder / "report" / "windows.csv") == []


def test_without_matplotlib(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return original(name, *args, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    ended = reported(stage, "--out", "report")
    assert ended.code == 0
    assert "picture        none: drawing figures needs the package matplotlib" in ended.out.decode()
    assert len(lines(stage.folder / "report" / "windows.csv")) == 4


def test_a_release_without_the_columns(stage: Scene) -> None:
    stage.write("out.csv", f"ts,who\n1,{CANARY}\n")
    ended = reported(stage)
    assert ended.code == 1
    assert ended.sentences == ["shoal: release: no column user, site; check the policy and the file"]


def test_another_method(stage: Scene) -> None:
    stage.sections["anonymize"]["method"] = "fads"
    ended = reported(stage)
    assert ended.code == 2
    assert ended.sentences == [
        "shoal: [anonymize] method: only z-anonymity has windows to report on; "
        "for others write a page with -o report.html"
    ]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--k", "1"), 2, "k: must be a whole number from 2"),
        (("--truth", "nowhere.csv"), 1, "truth: no file at nowhere.csv"),
        (("--out", "in.csv"), 1, "in.csv: the folder cannot be created"),
        (("--policy", "nowhere.toml"), 2, "nowhere.toml: the policy cannot be read"),
    ],
    ids=["k", "truth", "out", "policy"],
)
def test_bad_arguments(stage: Scene, args: tuple[str, ...], code: int, said: str) -> None:
    ended = reported(stage, *args) if args[0] != "--policy" else shoal("report", "out.csv", *args)
    assert ended.code == code
    assert said in ended.err
    assert len(ended.sentences) == 1


@pytest.mark.parametrize("name", ["windows.csv", "windows.png"])
def test_a_file_that_cannot_be_written(stage: Scene, name: str) -> None:
    (stage.folder / "report" / name).mkdir(parents=True)
    ended = reported(stage, "--out", "report")
    assert ended.code == 1
    assert "cannot be written" in ended.err


def test_a_page_of_evidence(stage):
    ended = reported(stage, "--truth", "in.csv", "-o", "evidence.html", "--json")
    assert ended.code == 0
    page = Path("evidence.html")
    assert page.stat().st_mode & 0o077 == 0
    assert CANARY not in page.read_text()
    assert ended.summary["windows"]["windows"]
    assert set(ended.summary["repeat"]["sha256"]) == {"release", "truth", "policy"}
    assert b"page           evidence.html" in reported(stage, "--truth", "in.csv", "-o", "evidence.html").out


def test_the_checksum_of_a_trace_is_that_of_its_file(stage):
    stage.sections["trace"] = {"path": "trace.parquet"}
    assert stage.run("--quiet").code == 0
    ended = reported(stage, "--truth", "in.csv", "--trace", "trace.parquet", "-o", "evidence.html", "--json")
    digest = hashlib.sha256(Path("trace.parquet").read_bytes()).hexdigest()
    assert ended.summary["repeat"]["sha256"]["trace"] == digest


def test_a_page_needs_the_input_and_a_place(stage):
    assert "private input" in reported(stage, "-o", "evidence.html").err
    ended = reported(stage, "--truth", "in.csv", "-o", "nowhere/evidence.html")
    assert ended.code == 1
    assert "nowhere" in ended.err
