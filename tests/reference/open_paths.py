"""Paths of values in open hierarchies, by splitting: what a label is, not how to find it fast."""

from __future__ import annotations

MOST = 64


def open_path(value: str, *, separator: str, side: str, root: str) -> tuple[str, ...]:
    """The value, its ancestors (nearest first), the root."""
    if side == "suffix":
        shorter = [value[at + 1 :] for at, char in enumerate(value) if char == separator]
        shorter = [text for text in shorter if text and text[0] != separator]
    else:
        shorter = [value[:at] for at, char in enumerate(value) if char == separator][::-1]
        shorter = [text for text in shorter if text and text[-1] != separator]
    labels = [value, *shorter[max(0, len(shorter) - MOST) :]]
    below = labels[: labels.index(root)] if root in labels else labels
    return (*below, root)
