"""Every path that a page names exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import PAGES, ROOT, name_of

PATH = re.compile(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_exist(page):
    paths = PATH.findall(page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_paths_are_found():
    assert len(PATH.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))) > 10
