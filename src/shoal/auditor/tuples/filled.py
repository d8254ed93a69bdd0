"""Count cells that show something although their record has nothing there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shoal.auditor.findings import Notes, filled_in_words
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.rows.attributes import Attribute


@dataclass(frozen=True, slots=True)
class FilledCells:
    """How many cells of each column show something that their record does not have."""

    columns: Counter[str] = field(default_factory=Counter)
    at_root: Counter[str] = field(default_factory=Counter)
    """Those in suppressed rows published at the root: a policy that asks for such rows asks for them."""

    def __add__(self, other: FilledCells) -> FilledCells:
        return FilledCells(self.columns + other.columns, self.at_root + other.at_root)

    def note(self, notes: Notes, *, is_asked: bool) -> None:
        """Note the number of cells; warn if there are any and the policy does not ask for them."""
        found, unasked = _by_column(self.columns), _by_column(self.columns - self.at_root)
        notes.metrics["filled_cells"] = {
            "cells": sum(found.values()),
            "at_root": self.at_root.total(),
            "columns": found,
        }
        if not is_asked:
            cells = sum(unasked.values())
            sentence = f"{filled_in_words(cells, unasked)}; the policy does not ask for it."
            notes.warning("filled-cells", sentence, count=cells)


def _by_column(counts: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}


def count_filled(
    attributes: Sequence[Attribute], row: Ints, unchanged: Mapping[str, Bools], is_root: Bools | None = None
) -> FilledCells:
    """Count the filled cells of released rows, of which each has its row of the truth (-1: not known).

    Parameters
    ----------
    unchanged
        By column that is published unchanged: which rows show a value although their record has none.
    is_root
        Suppressed rows published at the root.
    """
    found, at_root = Counter({name: int(filled.sum()) for name, filled in unchanged.items()}), Counter[str]()
    known = row >= 0
    for attribute in attributes:
        filled = known & (attribute.code >= 0)
        filled[filled] = ~attribute.carried[row[filled]]
        found[attribute.name] = int(filled.sum())
        if is_root is not None:
            at_root[attribute.name] = int((filled & is_root).sum())
    return FilledCells(found, at_root)
