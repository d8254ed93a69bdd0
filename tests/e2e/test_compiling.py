"""The first run on a machine reports that it compiles kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

from shoal.cli.output.render import LiveObserver
from shoal.decode.csv import CsvDecoder
from shoal.kernels.notice import USUAL
from shoal.methods.registry import METHODS
from shoal.observe.observer import COMPILING
from shoal.pipeline.warmup import timed_compiling
from tests.e2e.scene import Scene, shoal

ASKING = """
from shoal.methods.registry import METHODS
from shoal.pipeline.warmup import must_compile
print(*(must_compile(method) for method in (*METHODS, "uniqueness")))
"""
SETS: dict[str, dict[str, Any]] = {
    "stream": {"person": "user"},
    "anonymize": {"method": "k^m", "item": "site", "k": 2, "m": 2, "generalize": {"balanced": 2}},
}


@pytest.fixture
def fresh_machine(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """One on which nothing seems to be compiled."""
    for place in (
        "run",
        "doctor.doctor",
        "sets.run",
        "doctor.sets",
        "warmup",
    ):  # the last one is what others import
        monkeypatch.setattr(f"shoal.pipeline.{place}.must_compile", lambda method: True)
    return scene


def test_the_time_that_compiling_takes_is_that_of_all_families() -> None:
    ends = [int(end) for usual in USUAL.values() for end in usual.split(" to ")]
    assert COMPILING.endswith(f"this usually takes {min(ends)} to {max(ends)} s")


def test_a_run_reports_compiling_first(fresh_machine: Scene) -> None:
    ended = fresh_machine.run("--json")
    assert ended.code == 0
    assert ended.err.splitlines()[0] == f"shoal: {COMPILING}"
    assert "compil" not in fresh_machine.run("--quiet").err


def test_a_run_on_sets_reports_compiling(fresh_machine: Scene) -> None:
    fresh_machine.sections |= SETS
    ended = fresh_machine.run("--json")
    assert ended.code == 0, ended.err
    assert ended.err == f"shoal: {COMPILING}\n"
    assert "compil" not in fresh_machine.run("--quiet").err


def test_the_doctor_of_sets_reports_compiling(fresh_machine: Scene) -> None:
    fresh_machine.sections |= SETS
    fresh_machine.write_policy()
    ended = shoal("doctor", fresh_machine.policy, "--json")
    assert ended.code == 0, ended.out
    assert ended.err == f"shoal: {COMPILING}\n"
    assert ended.out.startswith(b"{")


@pytest.mark.compiled
@pytest.mark.parametrize("change", [{}, {"m": 1}, {"method": "k^m-apriori"}, {"counted": 0}])
def test_later_runs_on_sets_do_not_compile(scene: Scene, change: dict[str, Any]) -> None:
    scene.sections |= SETS | {"anonymize": SETS["anonymize"] | change}
    assert scene.run("--quiet").code == 0
    assert "compil" not in scene.run("--json").err


def test_a_run_that_was_finished_has_nothing_to_compile(fresh_machine: Scene) -> None:
    assert fresh_machine.run("--checkpoint", "state").code == 0
    ended = fresh_machine.run("--checkpoint", "state")
    assert ended.code == 0
    assert "compil" not in ended.err


def test_later_runs_do_not_compile(scene: Scene) -> None:
    assert "compil" not in scene.run("--json").err


def test_a_demo_reports_compiling(fresh_machine: Scene) -> None:
    args = ("demo", "--people", "50", "--events", "300", "--z", "40", "--out", fresh_machine.folder / "demo")
    assert shoal(*args).err.splitlines()[0] == f"shoal: {COMPILING}"  # a warning about few people follows


def test_the_doctor_reports_compiling_apart_from_its_answer(fresh_machine: Scene) -> None:
    fresh_machine.write_policy()
    ended = shoal("doctor", fresh_machine.policy, "--json")
    assert ended.code == 0, ended.err
    assert ended.err == f"shoal: {COMPILING}\n"
    assert ended.out.startswith(b"{")


def test_a_study_reports_compiling(fresh_machine: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.reproduce.tuples.fast_study.run_fast_study", lambda *_: {})
    monkeypatch.setattr("shoal.reproduce.tuples.fast_page.write_fast_page", lambda folder, *_: folder / "page.html")
    ended = shoal("reproduce", "fast", "--quick", "--out", fresh_machine.folder / "study")
    assert ended.code == 0, ended.err
    assert ended.err == f"shoal: {COMPILING}\n"


def test_on_a_terminal_the_line_reports_compiling() -> None:
    class Status:
        said = "starting"

        def update(self, text: str) -> None:
            self.said = text

    status = Status()
    LiveObserver(status).compiling()
    assert status.said.startswith(COMPILING)


@pytest.mark.compiled
def test_an_empty_cache_is_noticed(tmp_path: Path) -> None:
    """For every method, in a process that compiles nothing."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    asked = subprocess.run([sys.executable, "-c", ASKING], env=env, capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["True"] * (len(METHODS) + 1)
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.compiled
def test_a_filled_cache_is_noticed(scene: Scene) -> None:
    assert scene.run("--quiet").code == 0
    asked = subprocess.run([sys.executable, "-c", ASKING], capture_output=True, text=True, check=True)
    assert asked.stdout.split()[list(METHODS).index("z-anonymity")] == "False"


# ---- what is measured


class FakeClock:
    """The real clock, moved on by hand."""

    def __init__(self) -> None:
        self._real, self.ahead = time.perf_counter, 0.0

    def __call__(self) -> float:
        return self._real() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr("time.perf_counter", clock)
    return clock


def compile_something(clock: FakeClock, seconds: float) -> None:
    """The events of Numba: a function is compiled, and within it another one that it needs."""
    for start in (event.start_event, event.start_event):
        start("numba:compile")
    clock.ahead += seconds
    for end in (event.end_event, event.end_event):
        end("numba:compile")


@pytest.mark.parametrize("sections", [{}, SETS], ids=["stream", "sets"])
def test_no_speed_includes_compiling(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, clock: FakeClock, sections: dict[str, Any]
) -> None:
    """Wherever in a run it happens: here while a batch is decoded."""
    scene.sections |= sections
    real = CsvDecoder.batches

    def batches(self: CsvDecoder, position: Any = None) -> Iterator[Any]:
        compile_something(clock, 1e6)
        yield from real(self, position)

    monkeypatch.setattr(CsvDecoder, "batches", batches)
    summary = scene.run("--json", "--quiet").summary
    assert summary["compiling_seconds"] >= 1e6
    assert summary["seconds"] < 1e5
    assert summary["rows_per_second"] > summary["rows_in"] / 1e5
    if not sections:
        assert ", without 1000000.0 s of compiling)" in scene.run("--quiet").out.decode()


def test_compiling_in_several_threads_counts_once(clock: FakeClock) -> None:
    with timed_compiling() as timer:
        event.start_event("numba:compile")
        clock.ahead += 1000
        with ThreadPoolExecutor(max_workers=1) as other:
            other.submit(compile_something, clock, 1000).result()
        assert 2000 <= timer.seconds < 2900, "while it is going on"
        event.end_event("numba:compile")
        clock.ahead += 1000
        assert 2000 <= timer.seconds < 2900
        compile_something(clock, 500)
    compile_something(clock, 500)
    assert 2500 <= timer.seconds < 2900
