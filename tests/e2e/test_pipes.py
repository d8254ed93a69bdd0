"""A live pipe: rows are published while the input is still open."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "{kind}"
path = "-"
types = {types}
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "1h"
[sink]
kind = "csv"
path = "-"
[dead_letters]
path = "dead.jsonl"
"""
CSV = [b"ts,user,site\n0,ann,x\n", b"1,bob,x\n", b"2,cem,x\n"]
JSON = [
    b'{"ts":0,"user":"ann","site":"x"}\n',
    b'{"ts":1,"user":"bob","site":"x"}\n',
    b'{"ts":2,"user":"cem","site":"x"}\n',
]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kind", "pieces", "types"),
    [("csv", CSV, "{}"), ("jsonl", JSON, "{}"), ("jsonl", JSON, '{ts = "int64", user = "string", site = "string"}')],
    ids=["csv", "jsonl", "jsonl with types"],
)
def test_rows_are_published_while_the_pipe_is_open(tmp_path, kind, pieces, types):
    (tmp_path / "p.toml").write_text(POLICY.format(kind=kind, types=types))
    command = [sys.executable, "-m", "shoal.cli", "run", "p.toml", "--quiet"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        watchdog = threading.Timer(120, process.kill)  # a row that never comes ends the wait, not the test run
        watchdog.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pieces[0])
        process.stdin.flush()
        seen = []
        for number, piece in enumerate(pieces[1:], 1):
            process.stdin.write(piece)
            process.stdin.flush()
            while len(seen) < 1 + number:  # the header and one row for each piece after the first
                line = process.stdout.readline()
                assert line, "the pipe was closed before the row came"
                seen.append(line)
        process.stdin.close()
        assert process.wait() == 0
        watchdog.cancel()
    assert [line.split(b",")[0].strip(b'"') for line in seen] == [b"ts", b"1", b"2"]


TELLING = """
import sys
from unittest.mock import patch
from shoal.cli import app
with patch.object(app, "app", lambda *_, **__: print("x" * {length}) or {code}):
    app.main()
"""


@pytest.mark.parametrize(
    ("length", "code", "expected"), [(10, 0, 0), (10, 1, 1), (10, 2, 2), (10**6, 0, 141), (10**6, 1, 141)]
)
def test_a_reader_that_closes_early_does_not_change_the_exit_code(length, code, expected):
    """Short reports are written at the end, when the verdict is known; long ones before."""
    command = [sys.executable, "-c", TELLING.format(length=length, code=code)]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == expected
