"""Which known texts are most like an unknown one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

import numpy as np

_SHORTLIST: Final = 40
"""So many share most pieces with the unknown text; only these are compared letter by letter."""
_PIECE: Final = 3
LEAST_LIKENESS: Final = 0.6
"""Below this, of 1 for the same text, two names have little in common."""


class NearestTexts:
    """An index of pieces of three letters over known texts."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known
        pieces: dict[str, list[int]] = {}
        sizes = np.zeros(len(known), dtype=np.int64)
        for place, text in enumerate(known):
            found = _pieces(_plain(text))
            sizes[place] = len(found)
            for piece in found:
                pieces.setdefault(piece, []).append(place)
        self._sizes = sizes
        self._holding = {piece: np.array(places, dtype=np.int64) for piece, places in pieces.items()}

    def like(self, text: str, most: int = 3) -> tuple[str, ...]:
        """The known texts most like this one, best first; none where nothing is like it."""
        plain = _plain(text)
        pieces = _pieces(plain)
        holding = [self._holding[piece] for piece in pieces if piece in self._holding]
        if not holding:
            return ()
        places, shared = np.unique(np.concatenate(holding), return_counts=True)
        overlap = 2 * shared / (self._sizes[places] + len(pieces))
        shortlist = places[np.lexsort((places, -overlap))[:_SHORTLIST]]
        rated = [(_likeness(plain, _plain(self._known[place])), self._known[place]) for place in shortlist.tolist()]
        best = sorted(((-rate, known) for rate, known in rated if rate >= LEAST_LIKENESS))
        return tuple(known for _, known in best[:most])


def _plain(text: str) -> str:
    """Without capitals, and with one blank for whatever is neither a letter nor a digit."""
    return re.sub(r"[^\w]+|_+", " ", text.casefold()).strip()


def _pieces(plain: str) -> set[str]:
    padded = f" {plain} "
    return {padded[start : start + _PIECE] for start in range(max(1, len(padded) - _PIECE + 1))}


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
