"""Parameters that have another name now, and words that replace their values."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

_KEYS: Final[Mapping[str, str]] = {"nulls": "missing"}
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {"missing": {"strict": "covered", "common": "hidden"}}


def renamed(key: str, value: Any, known: Container[str]) -> str | None:
    """The sentence about a key that had a name of one of the known keys; None if it did not."""
    new = _KEYS.get(key)
    if new is None or new not in known:
        return None
    word = _WORDS.get(new, {}).get(value, value) if isinstance(value, str) else value
    return f'is called {new} now; write {new} = "{word}"' if isinstance(word, str) else f"is called {new} now"


def renamed_word(key: str, word: Any) -> str | None:
    """The sentence about a value of a key that has another word now; None if it has not."""
    new = _WORDS.get(key, {}).get(word) if isinstance(word, str) else None
    return None if new is None else f'"{word}" is called "{new}" now; write {key} = "{new}"'
