"""Count cells that show something although their record has nothing there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from shoal.auditor.findings import Notes, filled_in_words
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.values import Attribute


@dataclass(frozen=True, slots=True)
class FilledCells:
    """How many cells of each column show something that their record does not have."""

    columns: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: FilledCells) -> FilledCells:
        return FilledCells(self.columns + other.columns)

    def note(self, notes: Notes, *, is_asked: bool) -> None:
        """Note the number of cells; warn if there are any and the policy does not ask for them."""
        columns = {name: count for name, count in sorted(self.columns.items()) if count}
        cells = sum(columns.values())
        found = {"cells": cells, "columns": columns}
        notes.metrics["filled_cells"] = found
        if not is_asked:
            notes.warning("filled-cells", f"{filled_in_words(found)}; the policy does not ask for it.", count=cells)


def count_filled(attributes: Sequence[Attribute], row: Ints, unchanged: Mapping[str, Bools]) -> FilledCells:
    """Count the filled cells of released rows, of which each has its row of the truth (-1: not known).

    Parameters
    ----------
    unchanged
        By column that is published unchanged: which rows show a value although their record has none.
    """
    found = Counter({name: int(filled.sum()) for name, filled in unchanged.items()})
    known = row >= 0
    for attribute in attributes:
        shown = known & (attribute.code >= 0)
        found[attribute.name] = int(np.count_nonzero(~attribute.carried[row[shown]]))
    return FilledCells(found)
