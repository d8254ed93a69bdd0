"""The words of a column's name."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[a-z]+|\d+")
_NOTHING: Final = re.compile(
    r"(?i)[a-z]{0,2}_?\d*|(column|col|field|var|feature|label|key|entity|unit|unnamed)[\s:_]*\d*"
)
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
"""Letters with a stroke and ligatures, which Unicode does not take apart."""


def printable(name: str) -> str:
    """A column's name on one line, without characters that control a terminal."""
    return name if name.isprintable() else repr(name)


def words_of(name: str) -> list[str]:
    """The words of a column's name: userId, user_id and USER-ID are user and id."""
    spaced = unicodedata.normalize("NFKD", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).casefold().translate(_LETTERS))
    spaced = "".join(letter for letter in spaced if not unicodedata.combining(letter))  # Prénom is prenom
    return _WORD.findall(re.sub(r"([a-z]{3,})id\b", r"\1 id", spaced))


def words(text: str) -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split())


def phrases(text: str) -> frozenset[str]:
    """A set of words or phrases, written as one text with | between them."""
    return frozenset(text.replace("\n", "").replace("    ", "").split("|"))


def says_nothing(name: str) -> bool:
    """Whether a name says nothing of what is in the column, such as v1 or column2."""
    return _NOTHING.fullmatch(name) is not None
