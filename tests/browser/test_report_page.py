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


def test_links_work_by_keyboard(chromium, page_file):
    page = chromium.new_page()
    page.goto(page_file.as_uri())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#promise")
    assert page.url.endswith("#promise")
    page.close()


def test_it_prints(chromium, page_file):
    page = chromium.new_page()
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert len(page.pdf()) > 10_000
    page.close()
