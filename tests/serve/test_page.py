"""The routes of the page: who gets in, what is answered, and that nothing but counts and labels is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.observe.serving import HealthObserver
from shoal.pipeline import Pipeline
from shoal.serve.access import Access, make_token
from shoal.serve.app import Site
from shoal.serve.board import Board
from shoal.serve.recent import RecentRows
from shoal.serve.released import ReleasedRows
from shoal.serve.tap import RunTap
from tests.serve.asking import Client

TOKEN = "a token of this test"
POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "visits.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "1h"
[sink]
kind = "csv"
path = "released.csv"
"""


class Scene:
    """A finished run and its site."""

    def __init__(self, folder: Path, token: str | None = TOKEN) -> None:
        (folder / "policy.toml").write_text(POLICY)
        visits = [(time, site) for time in range(6) for site in ("a", f"rare{time}")]
        rows = "".join(f"{time},secret-person-{time % 3},{site}\n" for time, site in visits)
        (folder / "visits.csv").write_text("ts,user,site\n" + rows)
        pipeline = Pipeline.from_policy(folder / "policy.toml")
        released, health = ReleasedRows(), HealthObserver()
        self.tap = RunTap(RecentRows(), released)
        self.board = Board(pipeline.policy, self.tap)
        self.tap.progress(pipeline.run(self.tap))
        site = Site(self.board, released, Access(token, "127.0.0.1"), health, lambda: b"shoal_records_in_total 12\n")
        self.client = Client(site.app())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("page"))


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/static/page.css", "/api/state", "/api/history", "/released"])
def test_without_the_token_there_is_a_sentence_and_nothing_else(scene: Scene, path: str) -> None:
    answer = scene.client.get(path, headers={"cookie": "shoal-8765=guessed"})
    assert answer.status_code == 403
    assert "the address with the token" in answer.text


def test_records_sent_to_a_run_over_files_are_refused_with_a_way_out(scene: Scene) -> None:
    answer = scene.client.post("/events", content=b"{}", headers=bearer())
    assert answer.status_code == 404
    assert 'kind = "http" in [source]' in answer.text
    assert scene.client.post("/events", content=b"{}").status_code == 403


def test_the_token_moves_from_the_address_to_a_cookie(scene: Scene) -> None:
    answer = scene.client.get("/", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    pair = cookie.partition(";")[0]
    page = scene.client.get("/", headers={"cookie": pair})
    assert page.status_code == 200
    assert page.headers["content-security-policy"].startswith("default-src 'self'")


def test_a_page_of_another_site_is_refused_even_with_the_cookie(scene: Scene) -> None:
    headers = {**bearer(), "origin": "http://elsewhere.example"}
    assert scene.client.get("/api/state", headers=headers).status_code == 403
    assert scene.client.get("/api/state", headers={**bearer(), "origin": "http://127.0.0.1:8765"}).status_code == 200


def test_without_tokens_only_names_of_this_machine_are_answered(tmp_path: Path) -> None:
    open_to_all = Scene(tmp_path, token=None)
    assert open_to_all.client.get("/api/state").status_code == 200
    assert open_to_all.client.get("/api/state", headers={"host": "rebound.example:8765"}).status_code == 403


def test_a_snapshot_counts_rows_and_names_no_person_and_no_suppressed_value(scene: Scene) -> None:
    scene.board.tick(2_000_000_000.0)
    answer = scene.client.get("/api/state", headers=bearer())
    found = answer.json()
    assert found["totals"] == {"in": 12, "published": 5, "suppressed": 7, "dead": 0, "pending": 0}
    assert found["run"]["family"] == "z"
    assert [one["key"] for one in found["settings"]] == ["z"]
    history = scene.client.get("/api/history", headers=bearer())
    assert history.json()[-1]["t"] == found["series"]["t"]
    for text in (answer.text, history.text):
        assert "secret-person" not in text
        assert "rare" not in text


def test_files_outside_the_page_are_not_served(scene: Scene) -> None:
    assert scene.client.get("/static/app.py", headers=bearer()).status_code == 404
    assert scene.client.get("/static/..%2Fapp.py", headers=bearer()).status_code == 404


def test_machines_read_counts_without_a_token(scene: Scene) -> None:
    assert scene.client.get("/metrics").text == "shoal_records_in_total 12\n"
    assert scene.client.get("/metrics", headers={"host": "elsewhere.example:8765"}).status_code == 403
    assert scene.client.get("/healthz").text == "ok\n"
    assert scene.client.get("/readyz").status_code == 503


def test_a_token_is_random_or_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_SERVE_TOKEN", raising=False)
    assert make_token() != make_token()
    monkeypatch.setenv("SHOAL_SERVE_TOKEN", "0123456789abcdef")
    assert make_token() == "0123456789abcdef"
    monkeypatch.setenv("SHOAL_SERVE_TOKEN", "short")
    with pytest.raises(ValueError, match="at least 16"):
        make_token()
