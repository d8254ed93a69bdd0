"""A live run: it stops when it is asked to, commits while nothing arrives, and passes time only if it matters."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError, OutputError
from shoal.observe.observer import Observer
from shoal.pipeline import checkpoints
from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.pipeline.run import StreamRun
from shoal.pipeline.stopping import Stop, on_signals
from shoal.policy import Policy
from shoal.sources.base import Idle, Mark, Polled
from shoal.testing.scripted import ScriptedSource
from tests.pipeline.test_run import FIRST, LATER, SCHEMA, SECOND, policy, released


class LiveScript(ScriptedSource):
    """A script that also calls functions, and does not end the run."""

    is_live = True

    def poll(self) -> Polled:
        if self._step < len(self._script) and callable(act := self._script[self._step]):
            self._step += 1
            act()
            return Idle(None)
        return super().poll()


def execute(of: Policy, *script: Any, stop: Stop | None = None) -> Any:
    return StreamRun(of, Observer(), LiveScript(script, schema=SCHEMA), stop=stop).execute()


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of rows depends on the key."""
    path = tmp_path / "key.txt"
    path.write_text("a key of more than sixteen bytes")
    path.chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))


@pytest.fixture
def of(tmp_path: Path) -> Policy:
    return policy(tmp_path, checkpoint={"path": "state", "every": 1000})


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The progress of every checkpoint that is written."""
    found: list[Any] = []
    real = CheckpointFolder.write

    def write(self: CheckpointFolder, checkpoint: Any) -> str:
        found.append(checkpoint.progress)
        return real(self, checkpoint)

    monkeypatch.setattr(CheckpointFolder, "write", write)
    return found


def test_what_is_pending_stays_pending(of: Policy, tmp_path: Path) -> None:
    expected = execute(of, FIRST, LATER)
    rows = released(tmp_path)
    of = policy(tmp_path, checkpoint={"path": "other", "every": 1000})
    stop = Stop()
    stopped = execute(of, FIRST, stop.ask, stop=stop)
    assert stopped.stopped
    assert stopped.ok
    assert (stopped.rows_in, stopped.released, stopped.suppressed, stopped.pending) == (3, 0, 0, 3)
    summary = execute(of, FIRST, Idle(None), LATER)
    assert summary.resumed
    assert summary.since == stopped.since is not None
    assert (summary.released, summary.stopped) == (expected.released, False)
    assert released(tmp_path) == rows


def test_a_stopped_run_commits_only_if_something_happened(of: Policy, written: list[Any]) -> None:
    stop = Stop()
    execute(of, stop.ask, stop=stop)
    assert len(written) == 2, "both are written at the start"


def test_commits_by_time_while_nothing_arrives(
    tmp_path: Path, written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    of = policy(tmp_path, checkpoint={"path": "state", "every": "30s"})
    now = 0.0
    monkeypatch.setattr(checkpoints.time, "perf_counter", lambda: now)

    def later(seconds: float) -> Callable[[], None]:
        def pass_time() -> None:
            nonlocal now
            now += seconds

        return pass_time

    counts = []
    note = lambda: counts.append(len(written))  # noqa: E731
    execute(of, FIRST, later(29), note, later(2), Idle(None), note, later(60), Idle(None), note)
    assert counts == [2, 3, 3], "after half a minute, once: nothing has changed since"


def test_time_is_passed_only_while_something_is_pending(of: Policy, written: list[Any]) -> None:
    execute(of, Idle(30 * SECOND), FIRST, Idle(31 * SECOND), Idle(32 * SECOND), LATER)
    recorded = [one.advance_to for one in written if one.advance_to is not None]
    assert recorded == [31 * SECOND] * 2, "before the first record and after the deadline nothing waits for time"


def test_time_is_passed_at_most_once_a_second(of: Policy, written: list[Any]) -> None:
    execute(of, FIRST, *(Idle(4 * SECOND + step * SECOND // 4) for step in range(9)), Mark())
    recorded = {one.advance_to for one in written if one.advance_to is not None}
    assert recorded == {4 * SECOND, 5 * SECOND, 6 * SECOND}


@pytest.mark.parametrize("error", [InputError("the broker is gone"), OutputError("the broker is gone")])
def test_an_error_of_a_live_system_decides_nothing(of: Policy, tmp_path: Path, error: Exception) -> None:
    """The run fails; the next one continues at the last checkpoint."""
    expected = execute(policy(tmp_path, checkpoint={"path": "other"}), FIRST, LATER)
    rows = released(tmp_path)
    with pytest.raises(type(error), match="the broker is gone"):
        execute(of, FIRST, Mark(), error)
    assert execute(of, FIRST, Mark(), LATER).released == expected.released
    assert released(tmp_path) == rows


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals(number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)
    before = signal.getsignal(number)
    stop = Stop()
    stop.is_reading = True
    with on_signals(stop):
        assert not stop.is_asked
        signal.raise_signal(number)
        assert stop.is_asked
        with pytest.raises(SystemExit, match=str(128 + number)):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err.count("\n") == 2


def test_signals_in_a_log_of_json(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)
    stop = Stop()
    stop.is_reading = True
    with on_signals(stop, as_json=True):
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
    first, second = map(json.loads, capfd.readouterr().err.splitlines())
    assert first.keys() == second.keys() == {"time", "level", "event", "message"}
    assert first["message"].startswith("stopping after a last checkpoint")
    assert second["message"].startswith("stopped at once")


def test_a_signal_in_the_middle_of_a_write_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            signal.raise_signal(signal.SIGTERM)
            return len(data)

    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BufferedWriter(Interrupted())))
    stop = Stop()
    stop.is_reading = True
    with on_signals(stop):
        sys.stderr.write("progress")
        sys.stderr.flush()
    assert stop.is_asked


def test_a_signal_before_reading_ends_the_process(
    of: Policy, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its systems may not answer for long, and there is nothing to commit."""
    monkeypatch.setattr(os, "_exit", sys.exit)
    stop = Stop()
    with on_signals(stop):
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGTERM)
        assert ended.value.code == 0
        execute(of, FIRST, lambda: signal.raise_signal(signal.SIGTERM), stop=stop)
    first, second = capfd.readouterr().err.splitlines()
    assert "before it read anything" in first
    assert "after a last checkpoint" in second


def test_a_stopped_run_names_the_files_that_are_there(tmp_path: Path) -> None:
    of = policy(tmp_path, checkpoint={"path": "state", "every": 1000}, trace={"path": "trace.parquet"})
    stop = Stop()
    summary = execute(of, FIRST, stop.ask, stop=stop)
    assert Path(summary.released_to).exists()
    assert summary.trace is not None
    assert Path(summary.trace).exists()
    finished = execute(of, FIRST, Idle(None), LATER)
    assert finished.trace == str(tmp_path / "trace.parquet")
    assert Path(finished.trace).exists()


def test_the_summary_says_that_it_stopped(of: Policy) -> None:
    from shoal.cli.output.summary_text import summary_lines

    stop = Stop()
    summary = execute(of, FIRST, stop.ask, stop=stop)
    lines = summary_lines(summary)
    assert lines[0].startswith("stopped after a checkpoint")
    assert f"since {summary.since}" in lines[1]
    assert any("pending" in line and "(in the checkpoint)" in line for line in lines)
    assert json.loads(json.dumps(summary.to_dict()))["stopped"]
