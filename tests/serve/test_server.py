"""A run behind its real server: records in, rows and snapshots out, for several readers, until it is stopped."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pyarrow as pa
import pytest

from shoal.errors import PolicyError
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.pipeline.stopping import Stop
from shoal.serve.demo import VisitSender
from shoal.serve.host import RunHost

POLICY = """
[stream]
person = "user"
time = "time"
time_unit = "s"
[source]
kind = "http"
types = { user = "string", time = "int64", site = "string" }
lag = "0s"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "1h"
[sink]
kind = "jsonl"
path = "published/"
[checkpoint]
path = "state"
"""
SETS = """
[stream]
person = "user"
[source]
kind = "csv"
path = "in.csv"
[anonymize]
method = "k^m"
item = "site"
k = 2
m = 1
[anonymize.generalize]
hierarchy = { kind = "nested", tree = { any = ["a", "b"] } }
[sink]
kind = "csv"
path = "out.csv"
"""
PATIENCE = 60.0
MARKER = "SECRET-MARKER"


class Served:
    """A run in a thread of its own, with a client that has the token."""

    def __init__(self, folder: Path, *, with_page: bool = True, policy: str = POLICY) -> None:
        (folder / "policy.toml").write_text(policy)
        pipeline = Pipeline.from_policy(folder / "policy.toml")
        self.host = RunHost(pipeline, port=0, with_page=with_page)
        self.stop, self.summary = Stop(), RunSummary()
        self.base = f"http://127.0.0.1:{self.host.port}"
        self.client = httpx.Client(
            base_url=self.base, headers={"authorization": f"Bearer {self.host.token}"}, timeout=PATIENCE
        )
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self.summary = self.host.run(Observer(), stop=self.stop)

    def send(self, rows: list[dict[str, Any]]) -> None:
        """Send records; again while the run is not ready."""
        body = "".join(f"{json.dumps(row)}\n" for row in rows)
        while (answer := self.client.post("/events", content=body)).status_code == 503:
            pass
        assert answer.json() == {"accepted": len(rows)}

    def end(self) -> RunSummary:
        self.stop.ask()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.summary

    @contextmanager
    def running(self) -> Iterator[Served]:
        self._thread.start()
        try:
            yield self
        finally:
            self.end()
            self.client.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path).running() as served:
        yield served


def visits(*sites: str, people: tuple[str, ...] = ("ann", "bob", "cat")) -> list[dict[str, Any]]:
    return [{"user": person, "time": 1_700_000_000, "site": site} for site in sites for person in people]


def states(client: httpx.Client) -> Generator[tuple[str, dict[str, Any], str], None, None]:
    """The events of the stream: name, content, and the text as it came."""
    with client.stream("GET", "/api/stream") as answer:
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: ")), line


def first_state(client: httpx.Client, is_wanted: Any) -> dict[str, Any]:
    with closing(states(client)) as stream:
        return next(state for name, state, _ in stream if name == "state" and is_wanted(state))


def test_records_sent_are_released_to_listeners_and_to_the_sink(served: Served, tmp_path: Path) -> None:
    served.send(visits("first"))  # the run is ready from here on
    with served.client.stream("GET", "/released") as released:
        assert released.status_code == 200
        served.send(visits("second"))
        lines = released.iter_lines()
        row = next(row for line in lines if (row := json.loads(line))["site"] == "second")
    assert row["user"] not in ("ann", "bob", "cat")
    assert served.end().released == 4
    parts = sorted((tmp_path / "published").iterdir())
    published = [json.loads(line) for path in parts for line in path.read_text().splitlines()]
    assert [one["site"] for one in published] == ["first", "first", "second", "second"]


def test_two_listeners_at_once_both_get_every_row(served: Served) -> None:
    served.send(visits("first"))  # the run is ready from here on
    first_state(served.client, lambda state: state["totals"]["published"] == 2)
    with served.client.stream("GET", "/released") as one, served.client.stream("GET", "/released") as other:
        for number in range(5):
            served.send(visits(f"s{number}"))
        first_state(served.client, lambda state: state["totals"]["published"] == 12)
        served.stop.ask()
        found = [[json.loads(line) for line in stream.iter_lines()] for stream in (one, other)]
    assert [row["site"] for row in found[0]] == [f"s{number}" for number in range(5) for _ in range(2)]
    assert found[0] == found[1]


def test_a_reader_that_does_not_read_is_cut_off(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    """Its connection breaks, so that nobody takes what came before for everything."""
    served.send(visits("first"))
    rows = pa.RecordBatch.from_pydict({"site": ["x" * 1_000] * 1_000})
    shared = served.host._released
    shared._most_bytes = 5_000_000
    with served.client.stream("GET", "/released") as released:
        for _ in range(60):  # more than sockets and 5 MB hold
            shared.add(rows)
        with pytest.raises(httpx.RemoteProtocolError):
            sum(map(len, released.iter_bytes()))
    served.end()
    assert "Traceback" not in capfd.readouterr().err


def test_two_pages_see_the_same_snapshots_and_both_end_with_the_run(served: Served) -> None:
    served.send(visits("a"))
    with httpx.Client(base_url=served.base, headers=served.client.headers, timeout=PATIENCE) as other:
        compare_pages(served, [states(served.client), states(other)])


def compare_pages(served: Served, streams: list[Iterator[tuple[str, dict[str, Any], str]]]) -> None:
    found: list[dict[int, dict[str, Any]]] = [{}, {}]
    while not set(found[0]) & set(found[1]):
        for seen, stream in zip(found, streams, strict=True):
            _, state, _ = next(stream)
            seen[state["number"]] = state
    shared = max(set(found[0]) & set(found[1]))
    assert found[0][shared] == found[1][shared]
    served.stop.ask()
    for stream in streams:
        *_, (_, last, _) = stream
        assert last["run"]["state"] == "stopped"


def test_numbers_move_and_history_has_no_gap(served: Served) -> None:
    served.send(visits("a"))
    first = first_state(served.client, lambda state: state["totals"]["in"] == 3)
    served.send(visits("b"))
    second = first_state(served.client, lambda state: state["totals"]["in"] == 6)
    assert second["number"] > first["number"]
    history = served.client.get("/api/history").json()
    numbers = [one["number"] for one in history]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert second["series"]["t"] in [one["t"] for one in history]


def test_a_trial_is_answered_in_the_stream(served: Served) -> None:
    served.send(visits("a", "b"))
    first_state(served.client, lambda state: state["totals"]["in"] == 6)
    with closing(states(served.client)) as stream:
        next(stream)
        asked = served.client.post("/api/whatif", json={"z": 3})
        assert asked.status_code == 202
        result = next(content for name, content, _ in stream if name == "whatif")
    assert result["id"] == asked.json()["id"]
    assert (result["now"]["published"], result["then"]["published"]) == pytest.approx((4 / 6, 2 / 6), abs=1e-3)
    for content, code in ((b"no JSON", 400), (b'{"z": -1}', 422)):
        refused = served.client.post("/api/whatif", content=content)
        assert (refused.status_code, bool(refused.json()["error"])) == (code, True)


def test_no_answer_holds_a_person_or_a_suppressed_or_refused_value(served: Served) -> None:
    served.send(visits("shown"))
    served.send(visits(f"{MARKER}-site", people=(f"{MARKER}-person",)))
    refused = served.client.post("/events", content=f"{MARKER}\n")
    assert refused.status_code == 400
    body = f'{{"user": "{MARKER}", "time": "{MARKER}"}}\n{{"user": "{MARKER}", "time": -1}}\n'
    assert served.client.post("/events", content=body).status_code == 200
    first_state(served.client, lambda state: state["totals"]["in"] == 6 and state["promise"][0]["measured"] == 2)
    trial = served.client.post("/api/whatif", json={"z": 1}).text
    texts = [
        refused.text,
        trial,
        *(served.client.get(path).text for path in ("/", "/api/state", "/api/history", "/metrics")),
    ]
    with closing(states(served.client)) as stream:
        for name, _, text in stream:
            texts.append(text)
            if name == "whatif":
                break
    assert not [text for text in texts if MARKER in text]


def test_a_run_without_a_page_serves_rows_only(tmp_path: Path) -> None:
    with Served(tmp_path, with_page=False).running() as served:
        served.send(visits("a"))
        assert served.client.get("/").status_code == 404
        assert served.client.get("/api/state").status_code == 404
        assert httpx.post(f"{served.base}/events", content=b"{}").status_code == 403
        assert "shoal_records_in_total" in served.client.get("/metrics").text
        assert served.end().rows_in == 3


def test_a_stopped_run_goes_on_with_what_was_accepted(tmp_path: Path) -> None:
    for round_ in (1, 2):
        with Served(tmp_path).running() as served:
            served.send(visits(f"site {round_}"))
            first_state(served.client, lambda state, rows=3 * round_: state["totals"]["in"] == rows)
            assert served.end().rows_in == 3 * round_


def test_a_port_that_is_taken(served: Served, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"cannot listen at 127\.0\.0\.1"):
        RunHost(Pipeline.from_policy(tmp_path / "policy.toml"), port=served.host.port)


def test_a_port_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    with pytest.raises(PolicyError, match="must be from 0 to 65535"):
        RunHost(Pipeline.from_policy(tmp_path / "policy.toml"), port=99_999)


def test_a_method_that_decides_all_at_once_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "sets.toml").write_text(SETS)
    with pytest.raises(PolicyError, match="use shoal run"):
        RunHost(Pipeline.from_policy(tmp_path / "sets.toml"))


def test_others_on_the_network_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    host = RunHost(Pipeline.from_policy(tmp_path / "policy.toml"), host="0.0.0.0", port=0)
    host.close()
    assert "not encrypted" in host.warnings[0]


def test_the_visits_of_the_demo_are_accepted(served: Served) -> None:
    served.send([])
    sender = VisitSender(served.host.events_address, str(served.host.token), people=50, events=600, seed=1, rate=10)
    sender.send(550)
    with pytest.raises(OSError, match="403"):
        VisitSender(served.host.events_address, "wrong", people=5, events=6, seed=1, rate=10).send(1)
    first_state(served.client, lambda state: state["totals"]["in"] == 550)
