"""How a result shows itself: as text, in a notebook, as a page and as a picture."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.errors import OutputError, PolicyError
from shoal.frames.summary import headline
from tests.frames.frames import TABLE
from tests.inspection.stories import admissions, baskets, visits

pytestmark = pytest.mark.compiled

CALLS: dict[str, Any] = {
    "rows": lambda: shoal.anonymize(admissions(), k=5),
    "events": lambda: shoal.anonymize(visits(800), z=3),
    "sets": lambda: shoal.anonymize(baskets(400), m=2, k=5),
}


@pytest.fixture(scope="module", params=CALLS)
def result(request: pytest.FixtureRequest) -> Any:
    return CALLS[request.param]()


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (
            {"rows": 2000, "released": 1890, "suppressed": 110, "refused": 0},
            "1,890 of 2,000 rows released, 110 suppressed",
        ),
        ({"rows": 5, "released": 5, "suppressed": 0, "refused": 0}, "5 of 5 rows released"),
        ({"rows": 9, "sets": 4, "released": 3, "suppressed": 0, "refused": 1}, "3 of 4 sets released, 1 refused"),
    ],
)
def test_the_headline(counts: dict[str, int], words: str) -> None:
    assert headline({**counts, "pending": 0}) == words


def test_every_text_begins_with_how_many_are_released(result: Any) -> None:
    counts = result.counts
    words = f"{len(result):,} of {counts.get('sets', counts['rows']):,}"
    assert repr(result).startswith(f"<Anonymized: {words}")
    assert result.report().startswith(words)
    assert f"<b>{words}" in result._repr_html_()
    assert result.audit().text() in result.report()


def test_a_result_shows_the_verdict_once_it_is_known() -> None:
    found = CALLS["rows"]()
    assert "audit      not audited yet: audit() checks it" in repr(found)
    assert "not audited yet" in found._repr_html_()
    sentence = found.audit().verdict.sentence
    assert found.audit() is found.audit()
    assert sentence.startswith("promise kept; the smallest crowd has ")
    assert f"audit      {sentence}" in repr(found).splitlines()
    assert f"P{sentence[1:]}." in found._repr_html_()


def test_after_attacks_a_result_says_what_the_strongest_gains(tmp_path: Path) -> None:
    found = CALLS["rows"]()
    text = found.report(tmp_path / "report.html")
    assert ", but the attack “" in found.verdict
    assert text.count(found.verdict) == 2, "the summary and the audit say the same"
    for shown in (repr(found), found._repr_html_(), (tmp_path / "report.html").read_text()):
        assert found.verdict[1:] in shown


def test_text_and_notebook_show_roles_and_losses_but_no_value() -> None:
    found = CALLS["rows"]()
    text, page = repr(found), found._repr_html_()
    for words in ("at least 5 different people", "2,500 rows", "age: quasi", "left out   name"):
        assert words in text
    assert "at least 5 different people" in page
    assert page.count("<svg") == 1 + len(found.losses)
    assert "Person Number" not in text + page
    assert all(0 <= loss <= 1 for loss in found.losses.values())
    assert len(pl.DataFrame(found)) == len(found)


def test_a_report_of_events_says_who_stands_out() -> None:
    assert "windows of" in CALLS["events"]().report()


def test_the_report_is_also_a_page_for_its_owner(result: Any, tmp_path: Path) -> None:
    text = result.report(tmp_path / "report.html")
    assert text == result.report()
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "The three questions" in page
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600


def test_a_page_needs_a_place_for_html(tmp_path: Path) -> None:
    found = shoal.anonymize(TABLE, k=3, person="id", quasi=["age"])
    with pytest.raises(PolicyError, match=r"^path: report.pdf does not end in \.html; the report is one page of HTML$"):
        found.report(tmp_path / "report.pdf")
    with pytest.raises(OutputError, match=r"report\.html: cannot be written \(No such file or directory\); choose"):
        found.report(tmp_path / "none" / "report.html")


def test_the_picture_shows_losses_classes_and_attacks(result: Any, tmp_path: Path) -> None:
    figure = result.plot(tmp_path / "release.png")
    assert (tmp_path / "release.png").read_bytes().startswith(b"\x89PNG")
    assert figure.get_suptitle() == headline(result.counts)
    _, classes, learned = figure.axes
    assert sum(bar.get_height() for bar in classes.containers[0]) == pytest.approx(_classified(result))
    tried = shoal.attack(result.rows, result.truth, result.policy, trace=result.trace)
    rates = {one.name: one.success.value for one in tried.attacks if one.success is not None}
    names = [label.get_text() for label in learned.get_yticklabels()]
    drawn = {names[int(line.get_ydata()[0])]: line.get_xdata()[0] for line in learned.lines if line.get_marker() == "o"}
    assert drawn
    assert drawn.items() <= rates.items()


def _classified(result: Any) -> int:
    """Rows, or people of an epoch where pseudonyms are published."""
    method = result.policy["anonymize"]["method"]
    return len(set(result.rows.column("user").to_pylist())) if method == "z-anonymity" else len(result)


def test_bars_are_the_losses_of_columns() -> None:
    found = CALLS["rows"]()
    first = found.plot().axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == list(found.losses)
    assert [bar.get_width() for bar in first.containers[0]] == pytest.approx(list(found.losses.values()), abs=0.02)


def test_any_name_of_a_column_can_be_drawn(tmp_path: Path) -> None:
    names = ["in $_{$ or €", "a line\nand another"]
    found = shoal.anonymize(TABLE.rename_columns(["id", *names, "ill"]), k=3, person="id", quasi=names)
    figure = found.plot(tmp_path / "release.png")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [names[0], repr(names[1])]


@pytest.mark.parametrize("rows", ["events", "rows"])
def test_nothing_released_can_be_shown(rows: str, tmp_path: Path) -> None:
    if rows == "events":
        found = shoal.anonymize(visits(800), z=200)
    else:
        table = TABLE.set_column(0, "id", [[row // 2 for row in range(60)]])  # 31 rows pending are of 16 people
        found = shoal.anonymize(table, k=25, person="id", quasi=["age"], deadline=30)
    assert found.counts["released"] == 0
    assert repr(found).startswith(
        f"<Anonymized: 0 of {found.counts['rows']} rows released, {found.counts['suppressed']}"
    )
    assert "nothing was released" in found._repr_html_()
    assert found.plot().axes[1].get_title(loc="left") == "How many look alike: nothing is published"
    found.report(tmp_path / "report.html")
