"""README and docs pages, and the fenced blocks in them."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
"""How examples are compared with what they print."""
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|&& )(?:\$ )?(shoal [^&|>#\n]*)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    language: str
    text: str


def name_of(page: Path) -> str:
    """The page's path inside the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(language: str) -> list[Block]:
    """All fenced blocks in a language, over all pages."""
    return [
        Block(name_of(page), found[1], found[2])
        for page in PAGES
        for found in _FENCE.finditer(page.read_text(encoding="utf-8"))
        if found[1] == language
    ]


def commands() -> list[tuple[str, str]]:
    """Every `shoal ...` command in a shell or text block, or an indented one, with its page."""
    found = [(block.page, block.text) for language in ("sh", "text") for block in blocks(language)]
    found += [
        (name_of(page), "\n".join(re.findall(r"^ {4}(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)))
        for page in PAGES
    ]
    return sorted({(page, one.strip()) for page, text in found for one in _COMMAND.findall(text.replace("\\\n", " "))})
