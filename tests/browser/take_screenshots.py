"""Take the pictures of the live page for the docs: `python -m tests.browser.take_screenshots`, with Chromium.

A real run anonymizes synthetic rides that are posted to its HTTP source for a while. The rides come from a fixed seed;
rates and times are those of the machine.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.serve.test_server import Served

IMAGES = Path(__file__).parents[2] / "docs" / "images"
POLICY = """
[stream]
person = "rider"
time = "time"
time_unit = "ms"
[source]
kind = "http"
[source.types]
rider = "string"
time = "int64"
age = "int64"
lat = "float64"
lon = "float64"
plan = "string"
minutes = "int64"
[anonymize]
method = "least-loss"
k = 10
deadline = "20s"
reuse = "20s"
sensitive = ["plan"]
l = 2
[anonymize.quasi.age]
kind = "numeric"
low = 15
high = 90
grid = 5
[anonymize.quasi.lat]
kind = "numeric"
low = 45
high = 45.14
grid = 0.01
outside = "clamp"
[anonymize.quasi.lon]
kind = "numeric"
low = 7.58
high = 7.78
grid = 0.01
outside = "clamp"
[anonymize.quasi.minutes]
kind = "numeric"
low = 0
high = 120
grid = 5
outside = "clamp"
[sink]
kind = "jsonl"
path = "published/"
[checkpoint]
path = "state"
every = "10s"
"""
LOOKS: dict[str, dict[str, Any]] = {
    "live-page": {"viewport": {"width": 1280, "height": 990}, "color_scheme": "light"},
    "live-page-whole": {"viewport": {"width": 1280, "height": 990}, "color_scheme": "light"},
    "live-page-dark": {"viewport": {"width": 1280, "height": 990}, "color_scheme": "dark"},
    "live-page-phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
}


def ride(dice: random.Random, now: int) -> dict[str, Any]:
    """One ride: most begin in the centre, some riders forget to sign in."""
    who = dice.randrange(6_000)
    rider = random.Random(who)
    north, east = 45.07 + dice.gauss(0, 0.018), 7.68 + dice.gauss(0, 0.026)
    return {
        "rider": None if dice.random() < 0.002 else f"rider-{who}", "time": now, "age": rider.randint(16, 75),
        "lat": round(north, 4), "lon": round(east, 4), "plan": rider.choice(["day", "month", "year"]),
        "minutes": round(dice.gammavariate(2, 8)),
    }  # fmt: skip


def send_until(run: Served, is_over: Event, seconds: int, rate: int) -> None:
    """Post rides every second; there are two rushes."""
    dice, second = random.Random(17), 0
    while not is_over.wait(1):
        second += 1
        count = round(rate * (1 + 0.7 * math.sin(second / seconds * 4 * math.pi) + 0.1 * dice.random()))
        now = time.time_ns() // 1_000_000
        run.send([ride(dice, now) for _ in range(count)])


def show(browser: Browser, run: Served, look: dict[str, Any]) -> Page:
    """Open the page and try another k."""
    page = browser.new_page(**look, device_scale_factor=1, reduced_motion="reduce")
    page.goto(run.host.address)
    expect(page.locator("#connection")).to_have_text("live")
    page.get_by_label("k, typed").fill("25")
    page.get_by_label("k, typed").press("Enter")
    expect(page.locator("#whatif-result strong")).to_have_text("k 10 → 25")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    return page


def main() -> None:
    """Run, post, and write the pictures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=90)
    options.add_argument("--rate", type=int, default=250, help="rides a second")
    options.add_argument("--out", type=Path, default=IMAGES)
    given = options.parse_args()
    expect.set_options(timeout=120_000)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with Served(Path(folder), policy=POLICY).running() as run:
            is_over = Event()
            sender = Thread(target=send_until, args=(run, is_over, given.seconds, given.rate))
            sender.start()
            is_over.wait(given.seconds)
            for name, look in LOOKS.items():
                page = show(browser, run, look)
                page.screenshot(path=given.out / f"{name}.png", full_page=name == "live-page-whole")
                page.close()
            is_over.set()
            sender.join()
        browser.close()


if __name__ == "__main__":
    main()
