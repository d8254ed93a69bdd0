"""One local Spark for all tests of this folder, on the loopback address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.scene import KEY, SETTINGS, Stage

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "session" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # PySpark's own


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two tasks at a time."""
    from shoal.spark.cluster.session import start_session

    key = tmp_path_factory.mktemp("keys") / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    os.environ["SHOAL_KEY_FILE"], os.environ["SPARK_LOCAL_IP"] = str(key), "127.0.0.1"
    found = start_session("local[2]", {**SETTINGS, "spark.local.dir": str(tmp_path_factory.mktemp("spark"))})
    yield found
    found.stop()
    del os.environ["SHOAL_KEY_FILE"]


@pytest.fixture(autouse=True)
def _free_blocks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Free what a test leaves in Spark's memory, so that the session does not fill up."""
    yield
    if "session" in request.fixturenames:
        context = request.getfixturevalue("session").sparkContext
        for blocks in list(context._jsc.getPersistentRDDs().values()):
            blocks.unpersist(True)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A key for methods that are made from a recipe, without Spark."""
    path = tmp_path_factory.mktemp("keys") / "key"
    path.write_bytes(KEY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_KEY_FILE", str(path))
        yield


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A folder for one test."""
    return Stage(tmp_path / "stage")
