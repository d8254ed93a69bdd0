"""A run with an adaptive z: policy, summary, log, checkpoint and audit."""

from __future__ import annotations

import logging
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.sinks.files import FileSink
from tests.e2e.scene import Scene, encode, shoal

pytestmark = pytest.mark.compiled
WINDOWS = 9


def visits() -> list[dict[str, object]]:
    random = np.random.default_rng(5)
    count = WINDOWS * 240
    times = np.sort(random.integers(0, WINDOWS * 60, count)).tolist()
    people, sites = random.integers(80, size=count), np.minimum(random.geometric(0.45, size=count), 6)
    return [
        {"ts": time, "user": f"person-{who}", "site": f"site-{site}"}
        for time, who, site in zip(times, people, sites, strict=True)
    ]


@pytest.fixture
def following(scene: Scene) -> Scene:
    scene.write("in.csv", encode("csv", visits()))
    rules = {"method": "z-anonymity", "attribute": "site", "window": "60s", "target": {"k": 2, "p": 0.8}}
    scene.sections["anonymize"] = rules
    scene.sections["trace"] = {"path": "trace.parquet"}
    return scene


def test_the_summary_and_the_auditor_agree(following: Scene) -> None:
    ended = following.run("--json")
    assert ended.code == 0, ended.err
    found = ended.summary["metrics"]
    assert found["epochs"] == WINDOWS - 1 == len(found["outcomes"])
    shown = [one for one in found["outcomes"] if one["shown"]]
    assert found["epochs_shown"] == len(shown) < WINDOWS - 1
    assert found["epochs_met"] == sum(one["is_met"] for one in shown)
    assert 0 < ended.summary["released"] < ended.summary["rows_in"]
    trace = pq.read_table(following.folder / "trace.parquet")
    in_force = {(row // 240, z) for row, z in zip(trace["row"].to_pylist(), trace["z"].to_pylist(), strict=True)}
    assert len({z for _, z in in_force}) == 2
    audit = shoal("audit", "out.csv", "--truth", "in.csv", "--trace", "trace.parquet", "--policy", "policy.toml")
    assert audit.code == 0, audit.out
    assert b"promise kept" in audit.out


def test_people_read_a_line_of_it(following: Scene) -> None:
    out = following.run().out.decode()
    assert f"({WINDOWS - 1} are complete)" in out
    assert "aimed at, not promised" in out


def test_every_z_is_logged(following: Scene, caplog: pytest.LogCaptureFixture) -> None:
    following.run("--json")
    (following.folder / "out.csv").unlink()
    with caplog.at_level(logging.INFO, logger="shoal"):
        Pipeline.from_policy(following.folder / "policy.toml").run(Observer())
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("z = ")]
    assert len(lines) == WINDOWS
    assert lines[0] == "z = 2147483647 from 1970-01-01T00:00:00Z on"


@pytest.fixture
def learning(following: Scene) -> Scene:
    following.write("earlier.csv", encode("csv", visits()))
    following.sections["anonymize"]["target"]["learn"] = "earlier.csv"
    return following


def test_z_begins_with_what_an_earlier_file_needed(learning: Scene) -> None:
    ended = learning.run("--json")
    assert ended.code == 0, ended.err
    found = ended.summary["metrics"]
    assert [one["shown"] > 0 for one in found["outcomes"]] == [False, *[True] * (WINDOWS - 2)]
    audit = shoal("audit", "out.csv", "--truth", "in.csv", "--trace", "trace.parquet", "--policy", "policy.toml")
    assert audit.code == 0, audit.out
    told = shoal("doctor", "policy.toml").out.decode()
    assert f"z begins with what {WINDOWS - 1} epochs of an earlier stream needed" in told


def test_a_resumed_run_does_not_read_the_earlier_file_again(learning: Scene) -> None:
    learning.sections["checkpoint"] = {"path": "state", "every": 500}
    with patch.object(FileSink, "finish", side_effect=KeyboardInterrupt):
        assert learning.run().code == 130
    (learning.folder / "earlier.csv").unlink()
    assert learning.run("--json").code == 0


def test_an_earlier_file_that_teaches_nothing_is_refused(learning: Scene) -> None:
    learning.write("earlier.csv", encode("csv", visits()[:100]))
    ended = learning.run()
    assert ended.code != 0
    assert "[anonymize.target] learn: earlier.csv: learn: the earlier stream is too short" in ended.err
    assert "too short" in shoal("doctor", "policy.toml").out.decode()
    (learning.folder / "earlier.csv").unlink()
    ended = learning.run()
    assert ended.code != 0
    assert "earlier.csv" in ended.err


def test_the_earlier_file_is_not_overwritten(learning: Scene) -> None:
    learning.sections["anonymize"]["target"]["learn"] = "out.csv"
    ended = learning.run()
    assert ended.code != 0
    assert "[anonymize.target] learn" in ended.err


def test_the_doctor_reports_that_a_sample_may_be_too_short(following: Scene) -> None:
    following.write("in.csv", encode("csv", visits()[:300]))
    following.run()
    ended = shoal("doctor", "policy.toml")
    assert "z adapts to the stream" in ended.out.decode() + ended.err
