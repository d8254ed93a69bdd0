"""A full disk ends a run with one sentence; when there is room, the same command ends it well."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.scene import SINKS, Forker, Scene, Sink
from tests.faults.test_kills import STRIDE, edges
from tests.reference.effort import some_by_default

SHOAL = str(Path(sys.executable).with_name("shoal"))
FILLED = ("create", "write", "mkdir")


CASES = [(sink, is_key_given) for sink in SINKS for is_key_given in (True, False)]


def _is_default(case: tuple[Sink, bool]) -> bool:
    return case[1] or case[0] is SINKS[0]


@pytest.mark.parametrize(
    "case",
    some_by_default(CASES, _is_default),
    ids=lambda case: f"{case[0].path}-{'given' if case[1] else 'generated'}",
)
def test_no_room_from_a_step_on(forker: Forker, tmp_path: Path, case: tuple[Sink, bool]) -> None:
    sink, is_key_given = case
    scene = Scene.set(forker, tmp_path, sink, lateness=3, is_key_given=is_key_given)
    expected, steps = scene.never_killed()
    needing = [at for at in edges(steps) if steps[at - 1].startswith(FILLED)]
    for at in needing[SINKS.index(sink) % STRIDE :: STRIDE]:
        scene.forget()
        answer = scene.run(at=at, how="full")
        where = f"step {at}: {steps[at - 1]}"
        assert answer["code"] == 1, where
        said = [line for line in answer["err"].splitlines() if "going on" not in line]
        assert len(said) == 1, where
        assert "make room" in said[0], where
        assert str(tmp_path) in said[0], "it names a file"
        scene.run_to_the_end()
        result = scene.result()
        assert result == (expected if is_key_given else scene.never_killed()[0]), where


def _may_mount() -> bool:
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(tried, capture_output=True).returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or not _may_mount(), reason="needs the right to mount")
def test_a_small_disk(tmp_path: Path) -> None:
    """A real file system of 64 KiB, in its own mount namespace; then the same with enough space."""
    rows = "".join(f"{time},u{time % 7},s{time % 3}\n" for time in range(20_000))
    (tmp_path / "in.csv").write_text("ts,user,site\n" + rows)
    (tmp_path / "policy.toml").write_text(
        '[stream]\nperson = "user"\ntime = "ts"\n[source]\nkind = "csv"\npath = "in.csv"\n'
        '[anonymize]\nmethod = "z-anonymity"\nattribute = "site"\nz = 2\nwindow = "10s"\n'
        '[sink]\nkind = "csv"\npath = "small/out.csv"\n'
    )
    (tmp_path / "small").mkdir()
    script = (
        "mount -t tmpfs -o size=64k tmpfs small\n"
        '"$0" run policy.toml --checkpoint small/state; echo "ended with $?"\n'
        "mount -o remount,size=16m small\n"
        '"$0" run policy.toml --checkpoint small/state; echo "ended with $?"\n'
        "wc -l small/out.csv"
    )
    shown = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, SHOAL], cwd=tmp_path, capture_output=True, text=True
    )
    assert "no space is left on the disk; make room" in shown.stderr
    assert "Traceback" not in shown.stderr
    ends = [line for line in shown.stdout.splitlines() if "ended with" in line]
    assert ends == ["ended with 1", "ended with 0"]
    assert "19998 small/out.csv" in shown.stdout
