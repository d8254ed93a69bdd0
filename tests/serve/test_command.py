"""Commands that serve, as processes: killed after they accepted records, started again, stopped by a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from shoal.cli.run import _listening
from shoal.pipeline import Pipeline
from shoal.serve import host
from shoal.serve.server import listen
from tests.serve.test_server import POLICY, visits

TOKEN = "a-token-of-this-test"
PATIENCE = 120.0


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The command, and a client that has its token; it is killed if it still runs."""
    command = [sys.executable, "-m", "shoal.cli", *words, "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, "SHOAL_SERVE_TOKEN": TOKEN}, **pipes) as process:
        try:
            said = process.stdout if "demo" in words else process.stderr
            assert said is not None
            line = next(line for line in said if "the page is at" in line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert found is not None
            headers = {"authorization": f"Bearer {TOKEN}"}
            with httpx.Client(base_url=found[0], headers=headers, timeout=PATIENCE) as client:
                yield process, client
        finally:
            process.kill()


def send(client: httpx.Client, site: str) -> None:
    body = "".join(f"{json.dumps(row)}\n" for row in visits(site))
    while (answer := client.post("/events", content=body)).status_code == 503:
        pass
    assert answer.json() == {"accepted": 3}


def test_accepted_records_survive_a_kill_and_a_signal_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    with started("serve", str(tmp_path / "policy.toml")) as (process, client):
        assert client.get("/", headers={"authorization": ""}).status_code == 403
        send(client, "before the kill")
        process.kill()
    with started("serve", str(tmp_path / "policy.toml")) as (process, client):
        send(client, "after it")
        while client.get("/api/state").json()["totals"]["in"] < 6:
            pass
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "stopped after a checkpoint" in out
    assert re.search(r"rows in +6 ", out)
    published = [json.loads(line)["site"] for path in sorted((tmp_path / "published").iterdir())
                 for line in path.read_text().splitlines()]  # fmt: skip
    assert sorted(published) == ["after it"] * 2 + ["before the kill"] * 2


def test_the_live_demo_shows_visits_until_it_is_stopped(tmp_path: Path) -> None:
    small = ("--people", "50", "--events", "500", "--rate", "100", "--z", "2")
    with started("demo", "--live", "--out", str(tmp_path), *small) as (process, client):
        while client.get("/api/state").json()["totals"]["published"] == 0:
            pass
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "stopped after a checkpoint" in out
    assert list((tmp_path / "live" / "published").iterdir())


def test_shoal_run_says_where_records_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    monkeypatch.setenv("SHOAL_SERVE_TOKEN", TOKEN)
    monkeypatch.setattr(host, "listen", lambda name, port: listen(name, 0))  # the port of the policy may be taken
    made = _listening(Pipeline.from_policy(tmp_path / "policy.toml"))
    made.close()
    assert capsys.readouterr().err == (
        f"shoal: send records to http://127.0.0.1:{made.port}/events, with the bearer token {TOKEN}\n"
    )
