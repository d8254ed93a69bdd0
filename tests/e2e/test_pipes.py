"""A live pipe: rows are published while the input is still open."""

from __future__ import annotations

import threading

import pytest

from tests.forked import start

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
    with start("run", "p.toml", "--quiet", cwd=tmp_path) as process:
        watchdog = threading.Timer(120, process.kill)  # a row that never comes ends the wait, not the test run
        watchdog.start()
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
    with start(script=TELLING.format(length=length, code=code)) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == expected
