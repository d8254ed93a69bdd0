"""Every path that a page names exists, and so does every name that it locates in a file."""

from __future__ import annotations

import re
import tomllib

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


FAMILIES = ("z", "tuples", "sets", "flexible")


def test_the_table_of_layers_is_that_of_the_import_rules_and_names_their_folders():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    start = text.index("| layer | job | folders |")
    rows = [line.strip("|").split(" | ") for line in text[start : text.index("\n\n", start)].splitlines()[2:]]
    table = [(sorted(re.findall(r"`(\w+)`", names)), folders) for names, _, folders in rows]
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(rule["layers"] for rule in rules if rule["type"] == "layers")
    assert [names for names, _ in table] == [sorted(re.findall(r"shoal\.(\w+)", line)) for line in layers]
    for names, folders in table:
        named = {*re.findall(r"`(\w+)/`", folders), *(FAMILIES if "one per family" in folders else ())}
        parts = {path.parent.name for name in names for path in (ROOT / "src" / "shoal" / name).glob("*/__init__.py")}
        assert named == parts, f"docs/architecture.md: the folders of {names}"
