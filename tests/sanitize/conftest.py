"""The process on SQLite, and on a PostgreSQL that the tests start themselves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sanitize.scene import SQLITE, Scene
from tests.sanitize.servers import server, why_not

_NUMBERS = itertools.count()
URL = "SHOAL_TEST_URL"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo every change of the environment."""
    monkeypatch.setenv("SHOAL_KEY_FILE", "")
    monkeypatch.setattr("shoal.sanitize.process.must_compile", lambda method: False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[tuple[str, Path]]:
    """URL and data folder of a server."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgres"])
def make_scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scene]:
    """Makes scenes with stores of one kind."""
    if request.param == "sqlite":
        return lambda folder=tmp_path, **options: Scene(folder, stores=SQLITE, **options)
    url, _ = request.getfixturevalue("postgres")
    monkeypatch.setenv(URL, url)

    def make(folder: Path = tmp_path, **options: Any) -> Scene:
        number = next(_NUMBERS)
        lines = [
            f'store = "postgres"\nurl_env = "{URL}"\nschema_name = "{role}_{number}"' for role in ("inner", "outer")
        ]
        return Scene(folder, stores=(lines[0], lines[1]), **options)

    return make


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A scene on SQLite."""
    return Scene(tmp_path)
