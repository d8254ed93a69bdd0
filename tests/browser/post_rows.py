"""Does the page keep up? `python -m tests.browser.post_rows --bodies 15 --rows 10000 --pages 2`, with Chromium.

Posts rows to a run as fast as they are accepted while pages are open, and prints when every page shows all of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.serve.test_server import Served

START = 1_772_409_600  # 2026-03-02T00:00:00Z


def body(second: int, rate: int) -> str:
    """The visits of a second: two thirds to sites that many visit."""
    sites = (f"s{number * number % 97 if number % 3 else number}" for number in range(rate))
    rows = (
        {"user": f"u{(second * rate + number) % 3000}", "time": START + second, "site": site}
        for number, site in enumerate(sites)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def post(run: Served, bodies: list[str]) -> tuple[float, int]:
    """Post one body after the other; returns the seconds it took, and how often the server asked to wait."""
    begun, refused = time.monotonic(), 0
    for text in bodies:
        while run.client.post("/events", content=text).status_code != 200:
            refused += 1
    return time.monotonic() - begun, refused


def main() -> None:
    """Post, and print what was measured."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--bodies", type=int, default=15)
    options.add_argument("--pages", type=int, default=2)
    given = options.parse_args()
    bodies = [body(second, given.rows) for second in range(given.bodies)]
    expect.set_options(timeout=300_000)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running, Served(Path(folder)).running() as run:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = [browser.new_page() for _ in range(given.pages)]
        for page in pages:
            page.goto(run.host.address)
        run.send([{"user": "first", "time": START, "site": "first"}])  # the run is ready from here on
        seconds, refused = post(run, bodies)
        ended, rows = time.monotonic(), given.rows * given.bodies + 1
        for page in pages:
            expect(page.locator("#total-in")).to_have_text(f"{rows:,}")
        behind = time.monotonic() - ended
        totals = run.client.get("/api/state").json()["totals"]
        for page in pages:
            for key, count in totals.items():
                expect(page.locator(f"#total-{key}")).to_have_text(f"{count:,}")
        posted = f"{rows:,} rows in {seconds:.1f} s ({rows / seconds:,.0f} a second), {refused} requests to wait"
        print(f"{posted}; {len(pages)} pages show all {behind:.1f} s later")  # noqa: T201
        browser.close()


if __name__ == "__main__":
    main()
