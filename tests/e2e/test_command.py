"""The installed command, in its own process: pipes, memory, and no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.scene import RELEASED, ROWS, Scene, encode, pairs, read

SHOAL = str(Path(sys.executable).with_name("shoal"))
MEGABYTE = 1024 * 1024


def policy(scene: Scene) -> Path:
    """The scene's policy, written down."""
    scene.write_policy()
    return scene.policy


def test_from_a_pipe_to_a_pipe(scene: Scene) -> None:
    scene.sections["source"]["path"] = "-"
    scene.sections["sink"] = {"kind": "jsonl", "path": "-"}
    command = [SHOAL, "run", str(policy(scene))]
    ended = subprocess.run(command, input=encode("csv.gz", ROWS), capture_output=True, cwd=scene.folder)
    assert ended.returncode == 0, ended.stderr
    assert pairs(read(ended.stdout, "out.jsonl")) == RELEASED
    assert b"\x1b" not in ended.stderr, "no control characters where there is no terminal"
    assert b"rows in" in ended.stderr


def test_a_reader_that_closes_early(scene: Scene) -> None:
    scene.write("in.csv", "ts,user,site\n" + "".join(f"1,u{n % 50},s\n" for n in range(200_000)))
    scene.sections["sink"]["path"] = "-"
    with subprocess.Popen(
        [SHOAL, "run", str(policy(scene))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=scene.folder
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 1
    assert said == "shoal: standard output: the reader has gone away; keep it open until the run is done\n"


@pytest.mark.compiled
def test_memory_does_not_grow_with_the_file(scene: Scene) -> None:
    """Rows of one instant and a bounded crowd: only the file grows."""
    block = "".join(f"1,user-{n % 997},site-{n % 89}.example\n" for n in range(40_000))
    peaks = []
    for blocks in (10, 50):
        with (scene.folder / "in.csv").open("w") as file:
            file.write("ts,user,site\n")
            file.writelines(block for _ in range(blocks))
        process = subprocess.Popen([SHOAL, "run", str(policy(scene)), "--quiet"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss * 1024)
    size = (scene.folder / "in.csv").stat().st_size
    assert size > 50 * MEGABYTE
    assert peaks[1] - peaks[0] < 20 * MEGABYTE
