"""The live page in a real browser, with a server whose snapshots the test sends."""

from __future__ import annotations

import re

import pytest

from shoal.serve.measured.verdict import verdict_now
from tests.browser.page_server import PageServer
from tests.browser.snapshots import Story
from tests.browser.test_report_page import contrast


@pytest.fixture
def expect():
    from playwright.sync_api import expect

    return expect


@pytest.fixture
def server():
    story = Story()
    for _ in range(20):
        story.next()
    running = PageServer(story)
    yield running
    running.close()


@pytest.fixture
def visit(chromium, server, expect):
    """Open the page as a reader does; at the end, no visit may have left an error in the console."""
    contexts, errors = [], []

    def opened(*, allow=(), **how):
        context = chromium.new_context(**how)
        contexts.append(context)
        page = context.new_page()

        def keep(text):
            if not any(part in text for part in allow):
                errors.append(text)

        page.on("pageerror", lambda error: keep(str(error)))
        page.on("console", lambda message: keep(message.text) if message.type == "error" else None)
        page.goto(f"{server.address}?token=right")
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#promises li")).to_have_count(3)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def total(snapshot, key="in"):
    return f"{snapshot['totals'][key]:,}"


def test_it_shows_the_state_and_the_promise_and_numbers_move(visit, server, expect):
    page = visit()
    assert page.url == server.address, "the address keeps no secret"
    expect(page.locator("#status")).to_have_attribute("data-kind", "good")
    expect(page.locator("#status-word")).to_have_text("Running.")
    words = "Promise kept in what could be checked; the smallest crowd has 7 people. Rows arrive over HTTP"
    expect(page.locator("#status-sentence")).to_contain_text(words)
    first = page.locator("#promises li").first
    expect(first).to_contain_text("at least 5 people")
    expect(first.locator(".side b").nth(0)).to_have_text("≥ 5")
    expect(first.locator(".side b").nth(1)).to_have_text("7")
    expect(first.locator(".verdict")).to_have_text("kept")
    for _ in range(3):
        snapshot = server.send()
        for key in ("in", "published", "suppressed", "dead", "pending"):
            expect(page.locator(f"#total-{key}")).to_have_text(total(snapshot, key))
    expect(page.locator("#loss tbody tr")).to_have_count(5)
    expect(page.locator("#map .cell").first).to_be_visible()
    expect(page.locator("#delay .limit-word")).to_have_text("deadline 2,000")


def test_a_broken_promise_is_said_in_words_and_announced(visit, server, expect):
    page = visit()
    server.story.broken = True
    server.send()
    expect(page.locator("#status")).to_have_attribute("data-kind", "bad")
    expect(page.locator("#announce")).to_contain_text("Promise broken")
    expect(page.locator("#promises .verdict").first).to_have_text("broken")
    expect(page.locator("#warnings")).to_be_hidden()
    server.send(server.story.next() | {"warnings": ["the disk is nearly full"]})
    expect(page.locator("#warnings li")).to_have_text("the disk is nearly full")
    expect(page).to_have_title("Promise broken · admissions.toml · shoal")


def test_what_does_not_apply_is_not_shown(visit, server, expect):
    page = visit()
    snapshot = server.story.next() | {"deadline": None, "places": None, "loss": [], "settings": [], "checkpoints": None}
    snapshot["dead_letters"] = []
    snapshot["promise"][0] |= {"measured": None, "holds": None}
    snapshot["promise"][1] |= {"promised": None, "measured": 0.285, "holds": None, "words": "share of people"}
    snapshot["verdict"] = verdict_now(snapshot["promise"]).to_dict()
    server.send(snapshot)
    for panel in ("delay", "map", "loss", "whatif"):
        expect(page.locator(f"#{panel}-panel")).to_be_hidden()
    expect(page.locator("#dead")).to_have_text("No row was refused.")
    expect(page.locator("#promises .verdict").first).to_have_text("not measured yet")
    expect(page.locator("#promises li").nth(1)).to_contain_text("28.5%")
    expect(page.locator("#promises .verdict").nth(1)).to_have_text("not promised")
    inside = """[...document.querySelectorAll("#promises li > *")].every(e => e.scrollWidth <= e.clientWidth + 1)"""
    assert page.evaluate(inside)
    expect(page.locator("#status-word")).to_have_text("Running.")
    words = "Promise could not be checked: no crowd is measured yet. Rows arrive over HTTP"
    expect(page.locator("#status-sentence")).to_contain_text(words)


def test_text_of_the_server_is_never_markup(visit, server, expect):
    page = visit()
    snapshot = server.story.next()
    planted = "<img src=x onerror=alert(1)>"
    snapshot["loss"] = [{"column": planted, "loss": 0.5}]
    snapshot["dead_letters"] = [{"reason": planted, "count": 1}]
    snapshot["promise"][0]["words"] = snapshot["run"]["sentence"] = snapshot["run"]["policy"] = planted
    snapshot["verdict"]["sentence"] = planted
    server.send(snapshot)
    expect(page.locator("#loss th[scope=row]")).to_have_text([planted])
    expect(page.locator("#status-sentence")).to_have_text(f"{planted}. {planted}")
    expect(page.locator("main img")).to_have_count(0)


def test_a_slider_compares_now_and_then(visit, server, expect):
    page = visit()
    slider = page.locator("#try-k")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#whatif-result strong")).to_have_text("k 5 → 10")
    expect(page.locator("#whatif-state")).to_have_text("On a sample of 20,000 recent rows, computed in 0.84 s.")
    expect(page.locator("#whatif-result tbody tr").first).to_contain_text("98.3%")
    expect(page.locator("#whatif-result tbody tr").first.locator(".then")).to_have_text("96.1%")
    assert server.asked[-1] == {"k": 10, "deadline": 2000}
    server.send()
    expect(slider).to_have_value("10")  # a snapshot does not move what a reader has moved
    field = page.get_by_label("k, typed")
    field.fill("46")
    field.press("Enter")
    expect(page.locator("#whatif-result strong")).to_have_text("k 5 → 46")
    page.get_by_role("button", name="Back to the running values").click()
    expect(slider).to_have_value("5")
    expect(page.locator("#whatif-result")).to_be_empty()


def test_settings_that_the_server_refuses_are_explained(visit, server, expect):
    page = visit(allow=["Failed to load resource"])
    server.most_k = 20
    page.get_by_label("k, typed").fill("30")
    page.get_by_label("k, typed").press("Enter")
    expect(page.locator("#whatif-state")).to_have_text("The sample has too few people for k = 30.")


def test_two_pages_show_the_same_and_have_their_own_sliders(visit, server, expect):
    one, other = visit(), visit()
    snapshot = server.send()
    for page in (one, other):
        expect(page.locator("#total-in")).to_have_text(total(snapshot))
    one.get_by_label("k, typed").fill("8")
    one.get_by_label("k, typed").press("Enter")
    expect(one.locator("#whatif-result strong")).to_have_text("k 5 → 8")
    expect(other.locator("#whatif-result")).to_be_empty()
    server.answers = False
    with one.expect_response("**/api/whatif"):
        one.get_by_label("k, typed").fill("9")
        one.get_by_label("k, typed").press("Enter")
    expect(one.locator("#whatif-state")).to_have_text("Computing on a sample …")
    server.answers = True
    other.get_by_label("k, typed").fill("12")
    other.get_by_label("k, typed").press("Enter")
    expect(other.locator("#whatif-result strong")).to_have_text("k 5 → 12")
    expect(one.locator("#whatif-state")).to_contain_text("Another page asked for something else")


LOST = ("Failed to load resource", "EventSource")


def moments(page):
    """How many seconds each uninterrupted line of published rows has."""
    return [path.get_attribute("d").count("L") + 1 for path in page.locator("#rates > svg .line.out").all()]


def test_it_says_that_the_connection_is_lost_and_catches_up_after_a_restart(visit, server, expect):
    page = visit(allow=LOST)
    expect(page.locator("#total-in")).to_have_text(total(server.send()))
    assert moments(page) == [21]
    server.go_down()
    expect(page.locator("#status-word")).to_have_text("Connection lost.")
    expect(page.locator("#announce")).to_contain_text("Connection lost")
    expect(page.locator("#connection")).to_have_attribute("data-kind", "warn")
    for _ in range(5):
        server.story.next()  # the run goes on: these seconds must not be missing
    server.come_back("right")
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#status-word")).to_have_text("Running.")
    expect(page.locator("#total-in")).to_have_text(total(server.send()))
    assert moments(page) == [27], "no second is missing, none is there twice"


def test_a_token_that_changed_is_explained(visit, server, expect):
    page = visit(allow=LOST)
    server.go_down()
    server.come_back("another")
    expect(page.locator("#status-word")).to_have_text("Access refused.")
    expect(page.locator("#status-sentence")).to_contain_text("Open the address that shoal printed")


def test_without_the_token_there_is_no_page(chromium, server):
    page = chromium.new_page()
    for address in (server.address, f"{server.address}?token=wrong", f"{server.address}static/page.js"):
        assert page.goto(address).status == 403
    page.close()


def test_pause_holds_the_numbers_and_resume_shows_the_newest(visit, server, expect):
    page = visit()
    before = page.locator("#total-in").text_content()
    page.get_by_role("button", name="Pause").click()
    server.send()
    last = server.send()
    expect(page.locator("#connection")).to_have_text("paused")
    assert page.locator("#total-in").text_content() == before
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#total-in")).to_have_text(total(last))


def test_nothing_is_wider_than_the_screen(visit, expect):
    page = visit(viewport={"width": 1280, "height": 800})
    page.locator("#try-k").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#whatif-result table")).to_be_visible()
    wide = """[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
              .map(e => e.id || e.className || e.tagName).join(" ")"""
    for width in (1280, 768, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(wide) == "", width


TEXTS = """[...document.querySelectorAll("body *")]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length)
  .map(e => {
    let behind = e;
    while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
    const style = getComputedStyle(e);
    const ink = e instanceof SVGElement ? style.fill : style.color;
    return [e.textContent.trim().slice(0, 40), ink, getComputedStyle(behind).backgroundColor];
  })"""


def test_every_text_is_readable(visit, server, expect):
    page = visit(reduced_motion="reduce")
    server.story.broken = True
    server.send()
    expect(page.locator("#status")).to_have_attribute("data-kind", "bad")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        texts = page.evaluate(TEXTS)
        assert len(texts) > 60
        poor = [(text, ink, behind) for text, ink, behind in texts if contrast(ink, behind) < 4.5]
        assert poor == [], scheme


def test_the_theme_can_be_chosen_and_is_remembered(visit, expect):
    page = visit(color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    button = page.get_by_role("button", name=re.compile("Theme"))
    button.click()
    expect(button).to_have_text("Theme: light")
    button.click()
    expect(button).to_have_text("Theme: dark")
    dark = page.evaluate(colour)
    assert dark != light
    page.reload()
    expect(button).to_have_text("Theme: dark")
    assert page.evaluate(colour) == dark


@pytest.mark.exhaustive
def test_everything_is_reached_by_keyboard_with_a_visible_focus(visit, expect):
    page = visit()
    reached = []
    for _ in range(18):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid", reached[-1]
        if reached[-1] == "/metrics":
            break
    assert reached[:3] == ["Skip to the promise", "pause", "theme"]
    assert {"try-k", "try-deadline", "Back to the running values", "/metrics"} <= set(reached)
    chart = page.locator("#rates svg[tabindex]")
    chart.focus()
    page.keyboard.press("Home")
    expect(chart).to_have_attribute("aria-label", re.compile("at 11:06:41 UTC"))
    page.keyboard.press("ArrowRight")
    expect(chart).to_have_attribute("aria-label", re.compile("at 11:06:42 UTC"))
    page.locator("#map svg").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#map-note")).to_contain_text("° N to")
