"""TLS and logins on real servers: the right secret works, a wrong one or an unknown authority is one clear sentence."""

from __future__ import annotations

import gc
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.pipeline.stopping import Stop
from tests.brokers.certificates import Certificates
from tests.brokers.guarded import (
    SECRET,
    Guarded,
    GuardedKafka,
    GuardedMosquitto,
    GuardedNats,
    GuardedNatsToken,
    GuardedRabbitMq,
    GuardedRedis,
)
from tests.brokers.stream_scene import policy_text
from tests.e2e.scene import shoal

# Clients leave connections open that they, or the server, refuse; they are closed when they are collected.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SYSTEMS: list[type[Guarded]] = [
    GuardedKafka, GuardedRedis, GuardedNats, GuardedNatsToken, GuardedRabbitMq, GuardedMosquitto,
]  # fmt: skip
START = 1_750_000_000
WRONG = "tr0ub4dor-and-3"
VALUES = [json.dumps({"ts": START + at, "user": f"u{at % 3}", "site": "s"}).encode() for at in range(12)]
GIVE_UP = 'give_up = "90s"'
TYPES = '[source.types]\nts = "int64"\nuser = "string"\nsite = "string"'


@pytest.fixture(scope="module", params=SYSTEMS, ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    """A running broker; skips if it is not on this machine."""
    missing = request.param.missing()
    if missing:
        pytest.skip(missing)
    with request.param() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the policy, with secrets in a file and in the environment."""
    (tmp_path / "key").write_text("a key of more than sixteen bytes")
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("WRONG", WRONG)
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(VALUES))
    return tmp_path


def write_policy(folder: Path, source: str, sink: str) -> Path:
    path = folder / "policy.toml"
    text = policy_text(
        stream='person = "user"\ntime = "ts"\ntime_unit = "s"',
        source=source,
        sink=sink,
        anonymize='method = "z-anonymity"\nattribute = "site"\nz = 2\nwindow = "60s"',
        checkpoint='path = "state"\nevery = "10s"',
    )
    path.write_text(text)
    return path


FILE_SOURCE = 'kind = "jsonl"\npath = "in.jsonl"'
FILE_SINK = 'kind = "jsonl"\npath = "out.jsonl"'


@pytest.mark.parametrize("kind", SYSTEMS)
def test_the_page_shows_these_settings(kind: type[Guarded]) -> None:
    """What its examples say is what is tested here."""
    page = Path(__file__).parents[2] / "docs" / "howto" / "live-security.md"
    policies = map(tomllib.loads, re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    shown = [(one["kind"], set(one["client"]), set(one["secrets"])) for policy in policies for one in policy.values()]
    assert (kind.kind, set(kind.settings), {kind.secret}) in shown


class StopAt(Observer):
    """Stops a live run when it has read this many records."""

    def __init__(self, rows: int) -> None:
        self.stop, self._rows = Stop(), rows

    def progress(self, summary: RunSummary) -> None:
        if summary.rows_in >= self._rows:
            self.stop.ask()


def published(values: list[bytes]) -> list[int]:
    return [json.loads(value)["ts"] for value in values]


EXPECTED = [f"2025-06-15T15:06:{second}Z" for second in range(41, 52)]
"""The second person of the site, and everybody after that."""


def test_the_right_secret_works(server: Guarded, folder: Path) -> None:
    """From the system to the system: once with a secret of the environment, once from a file."""
    ca, name = server.certificates.ca, "right"
    server.produce(f"{name}-in", VALUES)
    source = f"{server.source(f'{name}-in')}\n{TYPES}\n{server.login('source', 'env:SECRET', ca)}"
    sink = f"{server.sink(f'{name}-out')}\n{server.login('sink', 'file:secret', ca)}"
    observer = Observer()
    if isinstance(server, GuardedMosquitto):  # its topics have no end
        server.subscribe(f"{name}-out")
        observer = StopAt(len(VALUES))
    stop = observer.stop if isinstance(observer, StopAt) else None
    summary = Pipeline.from_policy(write_policy(folder, source, sink)).run(observer, stop=stop)
    assert summary.ok
    assert (summary.rows_in, summary.dead) == (len(VALUES), 0)
    assert published(server.content(f"{name}-out")) == EXPECTED
    written = b"".join(path.read_bytes() for path in (folder / "state").rglob("*") if path.is_file())
    assert SECRET.encode() not in written


@pytest.mark.parametrize("side", ["source", "sink"])
@pytest.mark.parametrize("what", ["secret", "authority"])
def test_what_is_refused_is_one_sentence(server: Guarded, folder: Path, side: str, what: str) -> None:
    """At once, although a system that does not answer is waited for."""
    name = f"{what}-{side}"
    if what == "secret":
        login = server.login(side, "env:WRONG", server.certificates.ca)
    else:
        login = server.login(side, "env:SECRET", Certificates.make(folder / "others").ca)
    if side == "source":
        server.produce(name, VALUES)
        source, sink = f"{server.source(name)}\n{GIVE_UP}\n{TYPES}\n{login}", FILE_SINK
    else:
        source, sink = FILE_SOURCE, f"{server.sink(name)}\n{GIVE_UP}\n{login}"
    ended = shoal("run", write_policy(folder, source, sink), "--quiet")
    gc.collect()  # see pytestmark
    assert ended.code == 1
    (sentence,) = (one for one in ended.sentences if not one.startswith("shoal: warning: "))
    expected = (
        "refuses? the user.* check .*secrets" if what == "secret" else "certificate .* cannot be verified.* check"
    )
    assert re.search(expected, sentence)
    assert "give_up" not in sentence
    assert SECRET not in ended.err
    assert WRONG not in ended.err
