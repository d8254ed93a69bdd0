"""Paths of open hierarchies, where the text itself says what it lies under."""

from __future__ import annotations

from typing import Final, Literal

Side = Literal["suffix", "prefix"]
MAX_ANCESTORS: Final = 64
"""Ancestors of one value, the root left out. Names of hosts and files stay far below; a hostile value of a
million separators must not cost a million counters."""


def ancestors(value: str, *, separator: str, side: Side) -> list[str]:
    """Strict ancestors of `value` below the root, nearest first.

    An ancestor starts (suffix) or ends (prefix) with a segment that is not empty: ``a..b`` lies under ``b``
    at once. Of more than `MAX_ANCESTORS` the coarsest are kept: still a tree, with finer levels left out.
    """
    cuts = _cuts(value, separator) if side == "suffix" else _cuts(value[::-1], separator)
    return [value[cut:] if side == "suffix" else value[: len(value) - cut] for cut in cuts]


def _cuts(value: str, separator: str) -> list[int]:
    """Where shorter texts start, nearest first; sought from the far end, so a hostile value stays cheap."""
    cuts: list[int] = []
    end = len(value)
    while len(cuts) < MAX_ANCESTORS:
        at = value.rfind(separator, 0, end)
        if at < 0:
            break
        if at + 1 < len(value) and value[at + 1] != separator:
            cuts.append(at + 1)
        end = at
    return cuts[::-1]
