"""The live page of a real run: what is posted is what the page counts, and the sliders answer."""

from __future__ import annotations

from tests.serve.test_server import Served

BODIES, ROWS = 20, 1_000


def visits(body: int) -> list[dict[str, object]]:
    """Rows of a second: three people visit the first site, everyone has a site of their own."""
    numbers = range(body * ROWS, (body + 1) * ROWS)
    return [
        {"user": f"u{number % 3}", "time": body, "site": "common" if number % 2 else f"own-{number}"}
        for number in numbers
    ]


def test_the_page_counts_what_is_posted_and_tries_other_settings(chromium, tmp_path):
    from playwright.sync_api import expect

    with Served(tmp_path).running() as run:
        page, errors = chromium.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(run.host.address)
        assert page.url == f"{run.base}/"
        for body in range(BODIES):
            run.send(visits(body))
        expect(page.locator("#total-in")).to_have_text("20,000")
        expect(page.locator("#total-published")).to_have_text("9,999")  # the first visit to `common` is alone
        expect(page.locator("#total-suppressed")).to_have_text("10,001")
        expect(page.locator("#status-word")).to_have_text("Running.")
        expect(page.locator("#status-sentence")).to_contain_text(
            "Promise kept in what could be checked; the smallest crowd"
        )
        totals = run.client.get("/api/state").json()["totals"]
        shown = {key: page.locator(f"#total-{key}").text_content() for key in totals}
        assert shown == {key: f"{count:,}" for key, count in totals.items()}
        page.get_by_label("z, typed").fill("4")
        page.get_by_label("z, typed").press("Enter")
        expect(page.locator("#whatif-result strong")).to_have_text("z 2 → 4")
        expect(page.locator("#whatif-result .then").first).to_have_text("0.0%")  # only three people visit a site
        assert errors == []
        page.close()
