"""Every path that a page names exists, and so does every name that it locates in a file."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, ROOT, name_of

NAME = re.compile(r"`(?:\w+\.)?(\w+)` in `(src/[\w/]+\.py)`")
PATH = re.compile(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_exist(page):
    paths = PATH.findall(page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_are_in_their_files(page):
    named = NAME.findall(page.read_text(encoding="utf-8"))
    wrong = [(name, path) for name, path in named if not re.search(rf"\b{name}\b", (ROOT / path).read_text())]
    assert wrong == []


def test_paths_are_found():
    assert len(PATH.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))) > 10
    assert len(NAME.findall((ROOT / "docs" / "contributing.md").read_text(encoding="utf-8"))) > 5
