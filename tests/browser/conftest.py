"""One browser for all tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

PATIENCE = 120_000  # milliseconds: only a failing test waits that long


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
