"""How long a run goes back after aborted transactions, and when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.clients.patience import Patience
from shoal.errors import OutputError
from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.pipeline.live import going_back
from shoal.pipeline.live.going_back import GoingBack
from shoal.pipeline.stopping import Stop
from shoal.policy import parse_policy
from shoal.sinks.base import Aborted

ERROR = Aborted("Kafka at x: the transaction was aborted")


class Clock:
    """Seconds that pass only while someone waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def pass_time(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()

    def patience(give_up: float) -> Patience:
        return Patience(give_up, clock=lambda: made.now, sleep=made.pass_time)

    monkeypatch.setattr(going_back, "Patience", patience)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    made = CheckpointFolder(tmp_path / "state", warn=print)
    yield made
    made.release()


def make(folder: Path, stop: Stop, said: list[str]) -> GoingBack:
    table = {
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "kafka", "brokers": "none", "topics": ["visits"], "types": {"site": "string"}},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "8s"},
        "sink": {"kind": "kafka", "topic": "rows", "give_up": "3s"},
        "checkpoint": {"path": "state", "every": "1s"},
    }
    return GoingBack(parse_policy(table, folder=folder), stop, said.append)


def test_a_run_goes_back_until_give_up_without_a_commit(tmp_path: Path, folder: CheckpointFolder, clock: Clock) -> None:
    said: list[str] = []
    one = make(tmp_path, Stop(), said)

    def go_back() -> None:
        for _ in range(1_000):
            one.after(ERROR, folder)

    with pytest.raises(OutputError, match="nothing was published for longer than give_up"):
        go_back()
    assert clock.now >= 3
    assert all("going back to the last checkpoint" in sentence for sentence in said)
    assert len({round(wait, 9) for wait in clock.waits}) > 3, "with jitter"
    assert max(clock.waits) <= 0.5


def test_a_commit_starts_the_time_anew(tmp_path: Path, folder: CheckpointFolder, clock: Clock) -> None:
    one = make(tmp_path, Stop(), [])
    for _ in range(200):
        one.after(ERROR, folder)
        one.succeed()
        clock.now += 2
    assert clock.now > 100 * 3


def test_a_run_that_was_asked_to_stop_does_not_go_back(tmp_path: Path, folder: CheckpointFolder, clock: Clock) -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(Aborted):
        make(tmp_path, stop, []).after(ERROR, folder)


def test_a_signal_while_it_goes_back_ends_the_process(tmp_path: Path, folder: CheckpointFolder, clock: Clock) -> None:
    stop = Stop()
    stop.is_reading = True
    make(tmp_path, stop, []).after(ERROR, folder)
    assert not stop.is_reading


def test_a_run_that_was_taken_over_does_not_go_back(tmp_path: Path, folder: CheckpointFolder, clock: Clock) -> None:
    CheckpointFolder(tmp_path / "state", warn=print, take_over=True).release()
    with pytest.raises(Exception, match="another process has taken over"):
        make(tmp_path, Stop(), []).after(ERROR, folder)
