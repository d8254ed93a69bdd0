"""The page of evidence in a real browser: no errors, no requests, dark and light, keyboard, paper."""

from __future__ import annotations

import re

import pytest

from shoal.auditor.report.evidence_report import report_evidence
from tests.auditor.attacks.scenes import POLICY, in_classes, people, traced


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    truth = people()
    release, order = in_classes(truth, 5)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_evidence(release, truth, POLICY, trace=traced(order)).html(), encoding="utf-8")
    return path


def test_it_opens_without_errors_or_requests(chromium, page_file):
    page = chromium.new_page()
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_file.as_uri())
    assert errors == []
    assert requests == [page_file.as_uri()]
    assert page.locator("h2").count() >= 8
    assert page.locator("svg").count() >= 5
    # Nothing is wider than the page, also on a phone.
    for width in (1200, 400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()


def contrast(one: str, other: str) -> float:
    """The ratio of the luminances of two colours, such as rgb(1, 2, 3), as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_differ_and_stay_readable(chromium, page_file):
    colours = []
    for scheme in ("light", "dark"):
        page = chromium.new_page(color_scheme=scheme)
        page.goto(page_file.as_uri())
        colours.append(
            page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
        )
        page.close()
    light, dark = colours
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    for behind, ink in colours:
        assert contrast(behind, ink) >= 7, "WCAG's enhanced contrast"


FOCUSED = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect();
  return {
    name: one.tagName, link: one.getAttribute("href"), outline: getComputedStyle(one).outlineStyle,
    width: parseFloat(getComputedStyle(one).outlineWidth),
    seen: box.right > 0 && box.bottom > 0 && box.top < innerHeight,
  }
}"""


def test_everything_is_reached_by_keyboard_and_shows_its_focus(chromium, page_file):
    page = chromium.new_page(viewport={"width": 400, "height": 900})
    page.goto(page_file.as_uri())
    sections = page.evaluate("[...document.querySelectorAll('section')].map(one => '#' + one.id)")
    stops = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED))
        if stops[-1]["name"] == "BODY":
            break
    assert stops.pop()["name"] == "BODY", "the end of the page is reached"
    assert [stop["link"] for stop in stops if stop["link"]] == ["#promise", *sections]  # first the link that skips
    assert [stop["name"] for stop in stops].count("PRE") == 1
    assert "DIV" in {stop["name"] for stop in stops}, "tables wider than a phone can be scrolled"
    for stop in stops:
        assert stop["seen"]
        assert stop["outline"] == "solid"
        assert stop["width"] >= 2
    page.close()


def test_the_contents_can_be_skipped(chromium, page_file):
    page = chromium.new_page()
    page.goto(page_file.as_uri())
    link = page.locator(".skip")
    assert link.bounding_box()["x"] < 0
    page.keyboard.press("Tab")
    assert link.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    page.wait_for_url("**#promise")
    page.keyboard.press("Tab")  # the next stop is behind the contents
    assert page.evaluate("document.activeElement.closest('nav')") is None
    page.close()


def test_it_prints(chromium, page_file):
    page = chromium.new_page()
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator(".skip").is_hidden()
    assert len(page.pdf()) > 10_000
    page.close()
