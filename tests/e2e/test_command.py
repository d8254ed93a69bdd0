"""The installed command, in its own process: pipes, memory, and no terminal."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.scene import RELEASED, ROWS, Scene, encode, pairs, read
from tests.forked import start

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
    scene.write("in.csv", "ts,user,site\n" + "".join(f"1,u{n % 50},s\n" for n in range(20_000)))
    scene.sections["sink"]["path"] = "-"
    with start("run", policy(scene)) as process:
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 1
    assert said == "shoal: standard output: the reader has gone away; keep it open until the run is done\n"


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_file(scene: Scene) -> None:
    """Rows of one instant and a bounded crowd: only the file grows."""
    block = "".join(f"1,user-{n % 997},site-{n % 89}.example\n" for n in range(40_000))
    peaks = []
    for blocks in (6, 30):
        with (scene.folder / "in.csv").open("w") as file:
            file.write("ts,user,site\n")
            file.writelines(block for _ in range(blocks))
        process = subprocess.Popen([SHOAL, "run", str(policy(scene)), "--quiet"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss * 1024)
    size = (scene.folder / "in.csv").stat().st_size
    assert size > 30 * MEGABYTE
    assert peaks[1] - peaks[0] < 20 * MEGABYTE


def test_the_log_as_json_and_measurements_while_a_run_lasts(scene: Scene) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scene.sections["source"]["path"] = "-"
    scene.sections["source"]["header"] = ["ts", "user", "site"]
    scene.sections["sink"]["path"] = "-"
    scene.sections["dead_letters"] = {"path": "dead.jsonl"}
    scene.write_policy()
    with start("run", scene.policy, "--metrics", str(port), "--log", "json") as process:
        process.stdin.write(b"1,ann,a\n2,bob,a\n3,cid\n")
        process.stdin.flush()
        assert process.stdout.readline() == b'"ts","user","site"\n'
        assert process.stdout.readline().startswith(b'"2",')
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert "shoal_records_in_total" in answer.read().decode()
        _, errors = process.communicate()
    assert process.returncode == 0
    lines = errors.decode().splitlines()
    events = [json.loads(line)["event"] for line in lines if line.startswith("{")]
    assert "committed" in events


def test_a_command_does_not_wait_for_pandas(scene: Scene) -> None:
    scene.write("in.csv", encode("csv", ROWS))
    command = [sys.executable, "-X", "importtime", "-m", "shoal.cli", "run", str(policy(scene))]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "pyarrow.lib" in imported
    assert "pandas.core" not in imported


def test_an_address_that_cannot_be_used(scene: Scene) -> None:
    scene.write("in.csv", "ts,user,site\n1,ann,a\n")
    ended = scene.run("--metrics", "everywhere")
    assert ended.code == 2
    assert "must be a port" in ended.err
