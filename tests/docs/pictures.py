"""Take the pictures of the gallery again: `python -m tests.docs.pictures`, with Chromium.

Each shows the head of a story's report and one of its sections.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.docs.pages import ROOT
from tests.docs.stories import STORIES, tell

IMAGES = ROOT / "docs" / "images"
SECTION = {
    "web-visits": "attacks",
    "baskets": "attacks",
    "hospital": "columns",
    "wearables": "columns",
    "network": "columns",
}
WIDTH, HEIGHT = 1000, 860
KEEP = """name => {
    for (const one of document.querySelectorAll("section")) if (one.id !== name) one.remove();
    for (const one of document.querySelectorAll("nav, section .scroll, section > p:not(.key)")) one.remove();
}"""

END = """(document.querySelector("#columns h3:nth-of-type(2)")?.getBoundingClientRect().top - 32)
    || document.querySelector("section").getBoundingClientRect().bottom"""


def take(browser: Browser, story: str, report: Path) -> None:
    """Write the picture of a story."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page.goto(report.as_uri())
    page.evaluate(KEEP, SECTION[story])
    height = min(HEIGHT, page.evaluate(END) + 16)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
    page.screenshot(path=IMAGES / f"gallery-{story}.png", clip=clip)
    page.close()


def main() -> None:
    """Carry out every story and write its picture."""
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for page in STORIES:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                tell(page, Path(folder))
                take(browser, page.stem, Path(folder) / "report.html")
                os.chdir(ROOT)
        browser.close()


if __name__ == "__main__":
    main()
