"""Every story of the gallery is carried out as its page tells it, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, name_of
from tests.docs.stories import STORIES, tell
from tests.reference.effort import some_by_default


@pytest.mark.parametrize("page", some_by_default(STORIES, lambda page: page.stem == "web-visits"), ids=name_of)
def test_a_story(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tell(page, tmp_path) >= 2
    assert Path("report.html").is_file()


def test_every_story_has_its_example_its_picture_and_its_place_in_the_index():
    told = [page.stem for page in STORIES]
    assert told == sorted(folder.name for folder in (ROOT / "examples" / "gallery").iterdir() if folder.is_dir())
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    assert [name for name in told if f"({name}.md)" not in index] == []
    assert [name for name in told if not (ROOT / "docs" / "images" / f"gallery-{name}.png").is_file()] == []
