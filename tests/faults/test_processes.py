"""Real processes: one killed from outside, two at once, and streams that cannot be taken up again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.scene import POLICY, SINKS, STATE, Forker, Scene

SHOAL = str(Path(sys.executable).with_name("shoal"))
CSV = SINKS[0]
LONG_WAIT = 120
MEGABYTE = 1 << 20


def test_killed_from_outside_then_frozen_and_taken_over(forker: Forker, tmp_path: Path) -> None:
    """kill -9 at a checkpoint; SIGSTOP at a later one, a second process with --take-over to the end, SIGCONT.

    The frozen process stops, and its writes harm nothing.
    """
    scene = Scene.set(forker, tmp_path, CSV, lateness=3)
    rows = (f"{time // 5},u{time % 91},s{time % 37 * (time % 3)}\n" for time in range(150_000))
    (tmp_path / "in-2.csv").write_text("ts,user,site\n" + "".join(rows))
    policy = tmp_path / POLICY
    policy.write_text(policy.read_text().replace("every = 5", "every = 1000"))
    command = [SHOAL, "run", POLICY, "--checkpoint", STATE, "--json"]
    env = {**os.environ, "SHOAL_KEY_FILE": str(tmp_path / "key.txt")}

    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as killed:
        wait_for_checkpoint(scene, 1, killed)
        killed.kill()
    assert killed.returncode == -9

    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as frozen:
        wait_for_checkpoint(scene, 2, frozen)
        frozen.send_signal(signal.SIGSTOP)
        refused = scene.run(block_bytes=MEGABYTE)
        assert refused["code"] == 1
        assert "--take-over" in refused["err"]
        assert run_once(tmp_path, [*command, "--take-over"], env)["resumed"]
        frozen.send_signal(signal.SIGCONT)
        sentence = frozen.communicate(timeout=LONG_WAIT)[1]
    assert frozen.returncode == 1
    assert "another process has taken over" in sentence

    result = scene.result()
    scene.run(block_bytes=MEGABYTE)
    assert scene.summary()["finished_before"]
    scene.forget()
    scene.run(block_bytes=MEGABYTE)
    assert not scene.summary()["resumed"]
    assert scene.result() == result


def wait_for_checkpoint(scene: Scene, number: int, process: subprocess.Popen[Any]) -> None:
    """Return as soon as a running process has written this checkpoint or begun to."""
    while not [*(scene.folder / STATE).glob(f"checkpoint-{number:08d}-*")] and process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)


def run_once(folder: Path, command: list[str], env: dict[str, str]) -> dict[str, object]:
    """A successful run; its output goes where the scene looks for it."""
    with (folder / "stdout.txt").open("wb") as out:
        subprocess.run(command, cwd=folder, env=env, stdout=out, check=True, timeout=LONG_WAIT)
    scene = Scene(None, folder, CSV)  # type: ignore[arg-type]
    return scene.summary()


def test_only_one_run_at_a_time(forker: Forker, tmp_path: Path) -> None:
    scene = Scene.set(forker, tmp_path, CSV)
    scene.kill_late()
    before = scene.contents()
    with (tmp_path / STATE / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = scene.run()
    assert answer["code"] == 1
    assert "another run is using this checkpoint folder" in answer["err"]
    assert scene.contents() == before
    scene.run_to_the_end()


@pytest.mark.parametrize(
    ("section", "name"), [("source", "standard input"), ("sink", "standard output")], ids=["in", "out"]
)
def test_standard_streams_are_refused(forker: Forker, tmp_path: Path, section: str, name: str) -> None:
    scene = Scene.set(forker, tmp_path, CSV)
    policy = tmp_path / POLICY
    path = {"source": "in-*.csv", "sink": "out.csv"}[section]
    policy.write_text(policy.read_text().replace(f'path = "{path}"', 'path = "-"'))
    answer = scene.run()
    assert answer["code"] == 2
    assert name in answer["err"]
    assert "crash" in answer["err"], "it gives the reason"
    assert not (tmp_path / STATE).exists()
