"""A live pipe: rows leave while the input is still open."""

from __future__ import annotations

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
    [("csv", CSV, "{}"), ("jsonl", JSON, '{ts = "int64", user = "string", site = "string"}')],
)
def test_rows_leave_while_the_pipe_is_open(tmp_path, kind, pieces, types):
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
