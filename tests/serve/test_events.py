"""`POST /events`: what is accepted is stored, and what cannot be stored is refused with a sentence."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.crypto.keys import as_secret
from shoal.errors import InputError
from shoal.observe.serving import HealthObserver
from shoal.serve.access import Access
from shoal.serve.app import Site
from shoal.serve.events import MOST_BYTES, Intake
from shoal.serve.released import ReleasedRows
from shoal.sources.http import HttpReader
from shoal.sources.logged.logged import REPEATED, LoggedMessages, Repeats
from shoal.sources.logged.message_log import MessageLog
from shoal.sources.reader import Needs
from tests.serve.asking import BASE, Client

TOKEN = "a token of this test"
SECRET = as_secret(b"a key of more than sixteen bytes")
ALLOWED = {"authorization": f"Bearer {TOKEN}"}
KILLED = """
import sys
from pathlib import Path
from shoal.sources.reader import Needs
from tests.serve.test_events import reader_in
reader = reader_in(Path(sys.argv[1]))
reader.open([None], Needs())
reader.accept([b"%d" % number for number in range(1000)])
print("accepted", flush=True)
sys.stdin.read()
"""


def reader_in(folder: Path, *, most_waiting: int = 100, repeats: str | None = None) -> HttpReader:
    ids = Repeats(repeats) if repeats is not None else None
    logged = LoggedMessages("HTTP", lambda: MessageLog(folder, SECRET), repeats=ids)
    reader = HttpReader(logged, name="HTTP", most_waiting=most_waiting)
    reader.is_served = True
    return reader


@pytest.fixture
def make_reader(tmp_path: Path) -> Iterator[Callable[..., HttpReader]]:
    """Makes readers of one folder, which are closed after the test."""
    with ExitStack() as stack:

        def make(**options: Any) -> HttpReader:
            made = reader_in(tmp_path, **options)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def reader(make_reader: Callable[..., HttpReader]) -> HttpReader:
    made = make_reader()
    made.open([None], Needs())
    return made


def client_of(reader: HttpReader) -> Client:
    access = Access(TOKEN, "127.0.0.1")
    return Client(Site(None, ReleasedRows(), access, HealthObserver(), lambda: b"", Intake(reader)).app())


def values(reader: HttpReader) -> list[bytes | None]:
    return [value for one in reader.fetch([0], 0.0) for value in one.messages.values]


def post(reader: HttpReader, content: bytes, **options: Any) -> httpx.Response:
    return client_of(reader).post("/events", content=content, headers={**ALLOWED, **options})


def test_lines_are_accepted_in_order_and_blank_ones_left_out(reader: HttpReader) -> None:
    answer = post(reader, b'{"a": 1}\n\n{"a": 2}\r\n{"b": []}\n')
    assert (answer.status_code, answer.json()) == (200, {"accepted": 3})
    assert values(reader) == [b'{"a": 1}', b'{"a": 2}', b'{"b": []}']
    assert post(reader, b"").json() == {"accepted": 0}


@pytest.mark.parametrize("wrong", [b"not JSON", b"7", b'"text"', b"[1]", b'{"a": ', b'{"a": 1} {"a": 2}', b"\xff"])
def test_the_first_line_that_is_no_json_object_is_named_and_nothing_is_stored(reader: HttpReader, wrong: bytes) -> None:
    answer = post(reader, b'{"a": 1}\n\n' + wrong + b'\n{"a": 2}\nanother\n')
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("line 3 is not a JSON object;")
    assert reader.lag() == 0


def test_without_the_token_nothing_is_stored(reader: HttpReader) -> None:
    assert client_of(reader).post("/events", content=b"{}").status_code == 403
    assert reader.lag() == 0


def test_a_body_that_is_too_long_is_refused_whole(reader: HttpReader) -> None:
    line = b'{"a": "' + b"x" * 1000 + b'"}\n'
    answer = post(reader, line * (MOST_BYTES // len(line) + 1))
    assert answer.status_code == 413
    assert "send fewer records" in answer.json()["error"]
    assert reader.lag() == 0


def test_too_many_waiting_records_are_sent_again_later(reader: HttpReader) -> None:
    assert post(reader, b"{}\n" * 100).status_code == 200
    answer = post(reader, b"{}\n")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert len(values(reader)) == 100
    assert post(reader, b"{}\n").status_code == 200


@pytest.mark.parametrize(
    ("content", "headers", "code"),
    [(b'[{"a": 1}]', {}, 400), (b"{}", {"content-encoding": "gzip"}, 415)],
)
def test_other_forms_are_refused(reader: HttpReader, content: bytes, headers: dict[str, str], code: int) -> None:
    answer = post(reader, content, **headers)
    assert answer.status_code == code
    assert answer.json()["error"]
    assert reader.lag() == 0


def test_a_run_that_is_not_ready_or_has_ended_accepts_nothing(make_reader: Callable[..., HttpReader]) -> None:
    reader = make_reader()
    assert post(reader, b"{}").status_code == 503
    reader.open([None], Needs())
    assert post(reader, b"{}").status_code == 200
    reader.close()
    assert post(reader, b"{}").status_code == 503


def test_a_full_disk_refuses_records_and_ends_the_run(reader: HttpReader, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    answer = post(reader, b"{}")
    assert answer.status_code == 503
    assert "nothing was stored (No space left on device)" in answer.json()["error"]
    with pytest.raises(InputError, match="cannot be written"):
        reader.fetch([0], 0.0)


def test_requests_at_the_same_time_are_stored_whole_and_together(
    reader: HttpReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks: list[int] = []
    accept: Callable[[Any], None] = reader.accept
    monkeypatch.setattr(reader, "accept", lambda records: (blocks.append(len(records)), accept(records)))
    app = client_of(reader)._app

    async def all_at_once() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
            bodies = [b"".join(b'{"at": [%d, %d]}\n' % (request, line) for line in range(3)) for request in range(8)]
            return await asyncio.gather(*(client.post("/events", content=one, headers=ALLOWED) for one in bodies))

    assert [one.json() for one in asyncio.run(all_at_once())] == [{"accepted": 3}] * 8
    stored = values(reader)
    assert sum(blocks) == 24
    assert sorted(stored) == sorted(b'{"at": [%d, %d]}' % (request, line) for request in range(8) for line in range(3))
    for start in range(0, 24, 3):
        assert len({str(value).partition(",")[0] for value in stored[start : start + 3]}) == 1


def test_what_was_accepted_survives_a_kill(make_reader: Callable[..., HttpReader], tmp_path: Path) -> None:
    script = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with script:
        assert script.stdout is not None
        assert script.stdout.readline() == "accepted\n"
        script.send_signal(signal.SIGKILL)
    reader = make_reader()
    reader.open([None], Needs())
    assert values(reader) == [b"%d" % number for number in range(1000)]


def test_reading_goes_on_where_a_checkpoint_says(reader: HttpReader, make_reader: Callable[..., HttpReader]) -> None:
    for number in range(5):
        post(reader, b'{"at": %d}\n' % number)
    assert len(values(reader)) == 5
    reader.close()
    again = make_reader()
    assert again.open([2], Needs()) == [2]
    assert values(again) == [b'{"at": 3}', b'{"at": 4}']
    again.close()
    with pytest.raises(InputError, match="has messages 0 to 4, and 10 is the next"):
        make_reader().open([9], Needs())


def test_a_record_that_is_sent_again_is_refused_if_it_has_an_id(make_reader: Callable[..., HttpReader]) -> None:
    reader = make_reader(repeats="id")
    reader.open([None], Needs())
    for _ in range(2):
        post(reader, b'{"id": 1}\n{"id": 2}\n')
    (fetched,) = reader.fetch([0], 0.0)
    assert fetched.refused == {2: REPEATED, 3: REPEATED}


def test_without_a_web_server_reading_says_how_to_start_one(make_reader: Callable[..., HttpReader]) -> None:
    reader = make_reader()
    reader.is_served = False
    with pytest.raises(InputError, match="start it with shoal run or shoal serve"):
        reader.fetch([0], 0.0)
