"""`shoal tune` as a user calls it: what it finds, writes and refuses."""

from __future__ import annotations

import csv
import tomllib
from unittest.mock import patch

import pyarrow as pa
import pytest

from shoal.policy import load_policy
from tests.e2e.scene import CANARY, encode, shoal, skip_drawing
from tests.reference.poisson_streams import poisson_events

NAMES = ("--person", "user", "--time", "ts", "--attribute", "site")
STEADY = (2.0, 0.8, 0.4, 0.2, 0.1)


def visits(a_window=STEADY, users=100, windows=16):
    events = poisson_events(users, a_window, windows)
    return pa.table({
        "ts": (events.times / 1e9).tolist(),
        "user": [f"{CANARY}-{person}" for person in events.persons.tolist()],
        "site": [f"{CANARY}.site{value}" for value in events.values.tolist()],
    })  # fmt: skip


@pytest.fixture(scope="module")
def steady():
    return visits()


@pytest.fixture(autouse=True)
def one_test_renders(request, monkeypatch):
    if request.node.name != "test_a_target_that_is_reached":
        skip_drawing(monkeypatch)


def tuned(*args):
    ended = shoal("tune", *args, "--window", "1h", "--json", "--quiet")
    assert ended.code in (0, 1), ended.err
    return ended.summary


def test_a_target_that_is_reached(scene, steady):
    path = scene.write("in.csv", encode("csv", steady))
    ended = shoal("tune", path, *NAMES, "--k", "2", "--p", "0.9", "--window", "1h", "--out", "tuned")
    assert ended.code == 0, ended.err
    text = ended.out.decode()
    for words in ("reached", "(a) everybody seen", "(b) people active", "(c) people with a released row", "the model"):
        assert words in text
    assert CANARY not in text + ended.err
    assert not [path for path in scene.holds_canary() if "tuned" in str(path)]
    assert (scene.folder / "tuned" / "curve.png").read_bytes().startswith(b"\x89PNG")
    with (scene.folder / "tuned" / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["z"]) for row in rows] == sorted(int(row["z"]) for row in rows)
    for row in rows:
        assert float(row["p_lower"]) <= float(row["p"]) <= float(row["p_upper"])


@pytest.mark.compiled
def test_the_policy_it_writes_can_be_run_and_audited(scene, steady):
    path = scene.write("in.csv", encode("csv", steady))
    found = tuned(path, *NAMES, "--p", "0.9", "--out", "tuned")
    policy = scene.folder / "tuned" / "policy.toml"
    loaded = load_policy(policy)
    assert loaded.anonymize.columns["site"].z == found["z"]
    assert loaded.source.path[0].path.resolve() == path.resolve()
    assert shoal("doctor", policy).code == 0
    run = shoal("run", policy, "--json", "--quiet")
    assert run.code == 0
    assert run.summary["dead"] == 0
    released = scene.folder / "tuned" / "released.parquet"
    trace = scene.folder / "tuned" / "trace.parquet"
    audit = shoal("audit", released, "--truth", path, "--trace", trace, "--policy", policy)
    assert audit.code == 0


@pytest.mark.compiled
def test_a_policy_with_another_unit_and_rows_as_persons(scene, steady):
    """The policy's settings for reading are used for tuning and written to the new policy."""
    path = scene.write("in.csv", encode("csv", steady))
    expected = tuned(path, *NAMES, "--p", "0.9", "--out", "seconds")["z"]
    milliseconds = steady.set_column(0, "ts", pa.array([time * 1000 for time in steady["ts"].to_pylist()]))
    scene.write("in.csv", encode("csv", milliseconds))
    scene.sections["stream"] = {"person": "user", "time": "ts", "time_unit": "ms"}
    scene.write_policy()
    assert tuned(scene.policy, "--p", "0.9", "--out", "tuned")["z"] == expected
    assert load_policy(scene.folder / "tuned" / "policy.toml").stream.time_unit == "ms"
    scene.sections["stream"]["person"] = "row"
    scene.write_policy()
    assert tuned(scene.policy, "--p", "0.9", "--out", "rows")["people"] == len(steady)


def test_every_format_gives_the_same(scene, steady):
    found = []
    for kind in ("csv", "jsonl.gz", "arrow"):
        path = scene.write(f"in.{kind}", encode(kind, steady))
        found.append({**tuned(path, *NAMES, "--p", "0.9"), "written": None})
    assert all(one == found[0] for one in found[1:])
    assert found[0]["reached"]
    (window,) = found[0]["windows"]
    assert window["estimate"]["people"] == pytest.approx(100, rel=0.05)
    assert window["candidates"][0]["predicted"]["over_shown"]["lower"] >= 0.9


def test_a_policy_in_place_of_names(scene, steady):
    scene.write("in.csv", encode("csv", steady))
    scene.sections["source"] |= {"delimiter": ",", "nulls": ["NA"], "types": {"user": "string"}}
    scene.write_policy()
    ended = shoal("tune", scene.policy, "--p", "0.9", "--json", "--quiet", "--out", "one")
    assert ended.code == 0, ended.err
    assert ended.summary["windows"][0]["window"] == "1h"
    written = tomllib.loads((scene.folder / "one" / "policy.toml").read_text())
    assert {key: written["source"][key] for key in ("delimiter", "nulls", "types")} == {
        "delimiter": ",", "nulls": ["NA"], "types": {"user": "string"},
    }  # fmt: skip
    assert ended.err == ""
    scene.sections["anonymize"] |= {"rotation": "2h", "on_private": "generalize"}
    scene.sections["anonymize"]["hierarchy"] = {"kind": "suffix", "separator": "."}
    scene.write_policy()
    other = scene.write("in2.csv", encode("csv", steady))
    named = shoal("tune", other, "--policy", scene.policy, "--p", "0.9", "--json", "--quiet", "--out", "two")
    assert named.summary["z"] == ended.summary["z"]
    assert "rotation: is ignored" in named.err
    assert "hierarchy: is ignored" in named.err


def test_a_stream_out_of_order_and_with_rests_gets_what_it_needs(scene, steady):
    rested = [second + (3 * 86_400 if second > 5 * 3600 else 0) for second in steady["ts"].to_pylist()]
    table = steady.set_column(0, "ts", pa.array(rested)).take(pa.array([1, 0, *range(2, len(steady))]))
    path = scene.write("in.parquet", encode("parquet", table))
    ended = shoal("tune", path, *NAMES, "--p", "0.9", "--window", "1h")
    assert "out of order" in ended.out.decode()
    method = load_policy(scene.folder / "tune-out" / "policy.toml").anonymize
    assert method.lateness.ns > 0
    assert 3 * 86_400 * 10**9 < method.max_gap.ns < 4 * 86_400 * 10**9


def test_a_target_that_is_not_reached(scene):
    """Six values that most of 64 people expose: nearly as many combinations as people, at any z."""
    path = scene.write("in.csv", encode("csv", visits((1.0,) * 6, users=64, windows=12)))
    (scene.folder / "tune-out").mkdir()
    scene.write("tune-out/policy.toml", "# Written by shoal tune.\n# of an older run")
    ended = shoal("tune", path, *NAMES, "--p", "0.99", "--window", "1h")
    assert ended.code == 1
    assert "not reached" in ended.out.decode()
    assert not (scene.folder / "tune-out" / "policy.toml").exists()
    assert (scene.folder / "tune-out" / "curve.csv").exists()
    found = shoal("tune", path, *NAMES, "--p", "0.99", "--window", "1h", "--json", "-q")
    assert (found.code, found.summary["reached"], found.summary["z"]) == (1, False, None)


def test_a_z_that_does_not_hold_is_reported(scene, steady, monkeypatch):
    """In the later part everybody has values that they share with one other person at most."""
    monkeypatch.setattr("shoal.cli.output.render._SECONDS_BETWEEN_LINES", 0.0)
    split = int(0.65 * len(steady))
    pairs = [f"{site}-{row % 31 if row > split else ''}" for row, site in enumerate(steady["site"].to_pylist())]
    path = scene.write("in.csv", encode("csv", steady.set_column(2, "site", pa.array(pairs))))
    ended = shoal("tune", path, *NAMES, "--p", "0.9", "--window", "1h", "--classes", "1", "--check", "latest")
    assert ended.code == 1
    text = ended.out.decode()
    assert "does not hold: its lower bound is" in text
    assert "the bound holds for the formula, not for the stream" in text
    assert "not reached" in text
    assert "shoal: window 1h: z = 2" in ended.err  # progress


def test_too_short_a_stream_is_reported(scene):
    path = scene.write("in.csv", encode("csv", visits(windows=4)))
    ended = shoal("tune", path, *NAMES, "--p", "0.9", "--window", "1h", "--window", "40d")
    assert ended.code == 1
    assert "too short to tell" in ended.out.decode()
    assert "window 40d: the stream is too short for it" in ended.out.decode()
    assert "too short to check" in ended.out.decode()
    assert "not reached" in ended.out.decode()


def test_without_matplotlib_there_are_numbers(scene, steady):
    path = scene.write("in.csv", encode("csv", steady))
    with patch.dict("sys.modules", {"matplotlib": None}):
        ended = shoal("tune", path, *NAMES, "--p", "0.9", "--window", "1h")
    assert ended.code == 0
    assert "no picture" in ended.err
    assert not (scene.folder / "tune-out" / "curve.png").exists()


ONE = [{"ts": 1, "user": CANARY, "site": CANARY}]
ODD = [{"c1": 1, "c2": CANARY, "c3": CANARY}]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_usual_names_are_found_and_reported(scene, steady, kind):
    table = steady.rename_columns(["timestamp", "uid", "page"])
    path = scene.write(f"in.{kind}", encode(kind, table))
    ended = shoal("tune", path, "--p", "0.9", "--window", "1h", "--json", "--quiet")
    assert ended.code == 0, ended.err
    for role, name in (("person", "uid"), ("time", "timestamp"), ("attribute", "page")):
        assert f"--{role}: not given, so '{name}'" in ended.err
    named = shoal(
        "tune", path, "--person", "uid", "--time", "timestamp", "--attribute", "page",
        "--p", "0.9", "--window", "1h", "--json", "--quiet",
    )  # fmt: skip
    assert named.summary == ended.summary


@pytest.mark.parametrize(
    ("rows", "args", "code", "words"),
    [
        (ODD, (), 2, "--person: is missing"),
        (ODD, ("--person", "c1", "--time", "c2"), 2, "--attribute: is missing"),
        (ONE, ("--person", "user", "--time", "ts", "--attribute", "user"), 2, "three different"),
        (
            ONE,
            ("--person", "user", "--time", "ts", "--attribute", "page"),
            2,
            "--attribute: the file has no column 'page'",
        ),
        (ONE, (*NAMES, "--window", "soon"), 2, "--window"),
        (ONE, (*NAMES, "--window", "0"), 2, "--window"),
        (ONE, (*NAMES, "--k", "1"), 2, "k:"),
        (ONE, (*NAMES, "--p", "1.5"), 2, "p:"),
        (ONE, (*NAMES, "--holdout", "0"), 2, "holdout:"),
        (ONE, (*NAMES, "--classes", "0"), 2, "classes:"),
        (ONE, (*NAMES, "--policy", "none.toml"), 2, "none.toml"),
        (ONE, (*NAMES, "--window", "1h"), 1, "too short"),
        ([{**ONE[0], "ts": CANARY}], NAMES, 1, "column 'ts': no row has a usable time"),
        ([{**ONE[0], "site": None}], NAMES, 1, "column 'site': has no value in any row"),
    ],
    ids=lambda case: "-".join(map(str, case))[-24:] if isinstance(case, tuple) else "",
)
def test_bad_calls_are_refused(scene, rows, args, code, words):
    if args[-2:-1] == ("--classes",):
        rows = visits(windows=3)
        args = (*args, "--window", "1h")
    path = scene.write("in.csv", encode("csv", rows))
    ended = shoal("tune", path, *args, "--quiet")
    assert ended.code == code, ended.err
    assert words in ended.err
    assert CANARY not in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("name", "content", "code", "words"),
    [
        ("in.xlsx", b"", 2, "does not show its format"),
        ("in.csv", b"", 1, "in.csv"),
        ("in.csv", b"ts,user,site\n", 1, "no rows"),
        ("in.toml", b"[stream]\n", 2, "is missing"),
        ("in.parquet", b"nonsense", 1, "in.parquet"),
    ],
)
def test_bad_files_are_refused(scene, name, content, code, words):
    ended = shoal("tune", scene.write(name, content), *NAMES)
    assert ended.code == code, ended.err
    assert words in ended.err
    assert "Traceback" not in ended.err
    assert "internal error" not in ended.err


def test_a_missing_file_and_a_place_that_cannot_be_written(scene, steady):
    assert shoal("tune", "none.csv", *NAMES).code == 1
    path = scene.write("in.csv", encode("csv", steady))
    scene.write("file", "")
    ended = shoal("tune", path, *NAMES, "--window", "1h", "--out", "file")
    assert ended.code == 1
    assert "file: cannot be written" in ended.err


def test_what_it_measured_is_private_and_no_link_is_followed(scene, steady):
    path = scene.write("in.csv", encode("csv", steady))
    args = ("tune", path, *NAMES, "--k", "2", "--p", "0.9", "--window", "1h", "--out", "tuned")
    assert shoal(*args).code == 0
    modes = {made.name: made.stat().st_mode & 0o077 for made in (scene.folder / "tuned").iterdir()}
    assert modes["curve.csv"] == modes["curve.png"] == 0, "they were measured on private input"
    victim = scene.write("victim", "somebody's")
    for name in ("curve.csv", "curve.png"):
        place = scene.folder / "tuned" / name
        place.unlink()
        place.symlink_to(victim)
        ended = shoal(*args)
        assert ended.code == 1
        assert f"{name}: " in ended.err
        assert "is a symbolic link" in ended.err
        assert victim.read_text() == "somebody's"
        place.unlink()


def test_help_has_examples(scene):
    text = shoal("tune", "--help").out.decode()
    assert "shoal tune visits.csv --person user" in text
    assert "--holdout" in text


class TestPolicies:
    """What tuning does with a policy that a user wrote."""

    def test_it_is_never_overwritten(self, scene, steady):
        path = scene.write("in.csv", encode("csv", steady))
        mine = scene.write("policy.toml", "# my own, with what I know")
        ended = shoal("tune", path, *NAMES, "--p", "0.9", "--window", "1h", "--out", ".")
        assert ended.code == 1
        assert "was not written by shoal tune" in ended.err
        assert mine.read_text() == "# my own, with what I know"
        assert not (scene.folder / "curve.csv").exists()

    def test_it_keeps_the_settings_of_the_policy(self, scene, steady):
        scene.write("in.csv", encode("csv", steady.append_column("land", pa.array(["x"] * len(steady)))))
        scene.sections["stream"]["carry"] = ["land"]
        scene.sections["anonymize"] |= {"on_private": "blank", "combine": "k", "k": 3, "lateness": "5s"}
        scene.write_policy()
        ended = shoal("tune", "policy.toml", "--p", "0.9", "--out", "tuned")
        assert ended.code == 0, ended.err
        assert "combine: is ignored" in ended.err
        written = tomllib.loads((scene.folder / "tuned" / "policy.toml").read_text())
        assert written["stream"]["carry"] == ["land"]
        rules = written["anonymize"]
        assert {name: rules[name] for name in ("on_private", "combine", "k", "lateness")} == {
            "on_private": "blank", "combine": "k", "k": 3, "lateness": "5s",
        }  # fmt: skip
        again = shoal("tune", "policy.toml", "--p", "0.9", "--out", "tuned")  # it may overwrite its own file
        assert again.code == 0
        load_policy(scene.folder / "tuned" / "policy.toml")


def test_ignored_rows_are_reported(scene, steady):
    rows = steady.to_pylist()
    for row in rows[::10]:
        row["user"] = None
    path = scene.write("in.csv", encode("csv", rows))
    ended = shoal("tune", path, *NAMES, "--p", "0.9", "--window", "1h")
    left_out = len(rows[::10])
    assert f"{left_out:,} of {len(rows):,} rows are left out" in ended.out.decode()
    assert tuned(path, *NAMES, "--p", "0.9")["unusable_rows"] == left_out
