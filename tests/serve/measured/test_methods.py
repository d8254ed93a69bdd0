"""Every kind of policy can be watched: what is measured is sound, can be sent, and holds."""

from __future__ import annotations

from dataclasses import asdict
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pytest

from shoal.errors import PolicyError
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.serve.board import Board
from shoal.serve.measured.measured import Measurer
from shoal.serve.trial_settings import trial_settings
from shoal.serve.trials import check_trial, run_trial
from tests.serve.scene import Run

FILES = '[source]\nkind = "csv"\npath = "in.csv"\n[sink]\nkind = "csv"\npath = "out.csv"\n'
STREAM = '[stream]\nperson = "user"\ntime = "ts"\n'
Z = f'{FILES}{STREAM}[anonymize]\nmethod = "z-anonymity"\nwindow = "60s"\n'
QUASI = """
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 100
[anonymize.quasi.job]
kind = "categorical"
hierarchy = { kind = "nested", tree = { any = { health = ["nurse", "doctor"], trade = ["baker", "smith"] } } }
"""
GEO = '{ z = 5, on_private = "generalize", hierarchy = { kind = "geo", cells = [0.1, 1, 10] } }'
POLICIES = {
    "z, late rows": f'{Z}attribute = "job"\nz = 3\nlateness = "5s"\n',
    "z, blank, two columns": f'{Z}on_private = "blank"\nattribute = {{ job = {{ z = 3 }}, age = {{ z = 4 }} }}\n',
    "z, places": f"{Z}attribute = {{ place = {GEO} }}\n",
    "z, combine": f'{Z}attribute = "job"\nz = 3\ncombine = "k"\nk = 2\n',
    "z, target": f'{Z}attribute = "job"\ntarget = {{ k = 2, p = 0.9 }}\n',
    "fads, timed": f'{FILES}{STREAM}[anonymize]\nmethod = "fads"\nk = 3\ndeadline = "30s"\nreuse = "5s"\n{QUASI}',
    "fads, suppressed rows at the root": f"{FILES}{STREAM}[anonymize]\n"
    f'method = "fads"\nk = 9\ndeadline = 9\nsuppressed = "root"\n{QUASI}',
    "flexible": f'{FILES}[stream]\nperson = "user"\n[anonymize]\nmethod = "flexible-k"\nk = 3\nwindow = 200\n{QUASI}',
}


def records(rows: int = 1200) -> str:
    random = Random(8)
    jobs = ("nurse", "doctor", "baker", "smith")
    lines = [
        f"{1_700_000_000 + at // 5},u{random.randrange(150)},{random.randrange(90)},{random.choice(jobs)},"
        f'"{random.gauss(48, 0.2):.3f},{random.gauss(11, 0.2):.3f}"'
        for at in range(rows)
    ]
    return "ts,user,age,job,place\n" + "\n".join(lines) + "\n"


@pytest.fixture(scope="module", params=POLICIES, ids=POLICIES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("methods"), POLICIES[request.param], records())


def test_the_promise_is_measured_and_holds(run: Run) -> None:
    assert run.summary.released
    measured = Measurer(run.policy, run.recent).measure()
    judged = {one["name"]: one for one in measured.promise if one["name"] not in ("people", "deadline")}
    assert judged
    for one in judged.values():
        if "place" in run.policy.hierarchies:  # every place is generalized, and labels are not counted again
            assert (one["measured"], one["holds"]) == (None, None)
        else:
            assert one["measured"] is not None, one
            assert one["holds"] is True, one
    for one in measured.promise:
        assert one["holds"] in (True, None), one
    assert all(0 <= one["loss"] <= 1 for one in measured.loss)


def test_a_trace_can_be_built_later(run: Run) -> None:
    """The page builds traces seconds after their release, in another thread: they are what they were."""
    traces: list[Any] = []

    class Eager(Observer):
        def decided(self, arrived: Any, first: int, release: Any) -> None:
            traces.append(release.trace)

    Pipeline(run.policy).run(Eager())
    late = [step.release.trace for step in run.recent.steps()]
    assert pa.Table.from_batches(late) == pa.Table.from_batches([one for one in traces if one.num_rows])


def test_a_snapshot_of_it_can_be_sent(run: Run) -> None:
    board = Board(run.policy, run.tap)
    board.measured = Measurer(run.policy, run.recent).measure()
    sent: dict[str, Any] = orjson.loads(orjson.dumps(board.tick(2_000_000_000.0)))
    assert sent["totals"]["published"] == run.summary.released
    assert sent["promise"] == orjson.loads(orjson.dumps(asdict(board.measured)))["promise"]
    assert (sent["places"] is not None) == ("geo" in str(run.policy.hierarchies.get("place")))


def test_its_settings_can_be_tried(run: Run) -> None:
    settings = trial_settings(run.policy)
    if not settings:
        with pytest.raises(PolicyError, match="no setting that can be tried"):
            check_trial(run.policy, {"z": 1})
        return
    changed = {one["key"]: min(one["most"], one["value"] * 2) for one in settings}
    found = run_trial(run.policy, run.recent, changed)
    assert found["now"]["published"] > 0
    for outcome in (found["now"], found["then"]):
        shares = [outcome[name] for name in ("published", "suppressed", "pending")]
        assert 0 < sum(shares) <= 1.001
