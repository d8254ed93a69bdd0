"""Which released values cost most: without them fewer people would stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.report.released_sets import Savings
from shoal.auditor.report.windows_report import Cost

_TOP: Final = 10
_TOP_OF_A_WINDOW: Final = 3

Names = list[tuple[str, str]]
"""Attribute and value, by number."""


@dataclass(frozen=True, slots=True)
class _Ledger:
    """Of epochs and values at which somebody would be saved, or of values over all epochs."""

    epoch: Ints
    item: Ints
    saved: Ints
    holders: Ints
    rows: Ints
    windows: Ints

    def entry(self, place: int, names: Names) -> Cost:
        """Return one entry with its name."""
        attribute, value = names[self.item[place]]
        numbers = (self.saved, self.holders, self.rows, self.windows)
        return Cost(attribute, value, *(int(column[place]) for column in numbers))


def rank_costs(
    savings: Savings, epoch: Ints, items: list[Ints], names: Names
) -> tuple[list[Cost], dict[int, list[Cost]]]:
    """Return the ten values that cost most over all epochs, and the three that cost most in each."""
    by_epoch = _costly(savings, _rows(savings, epoch, items, len(names)))
    over_all = _totals(by_epoch, savings, items, len(names))
    top = _ranked(over_all, names)[:_TOP]
    of_each: dict[int, list[Cost]] = {}
    ranked = _ranked(by_epoch, names)
    for place in ranked[_is_among_first(by_epoch.epoch[ranked], _TOP_OF_A_WINDOW)].tolist():
        of_each.setdefault(int(by_epoch.epoch[place]), []).append(by_epoch.entry(place, names))
    return [over_all.entry(place, names) for place in top.tolist()], of_each


def _rows(savings: Savings, epoch: Ints, items: list[Ints], stride: int) -> Ints:
    """Count the released rows with each epoch's values."""
    pairs = savings.epoch * stride + savings.item  # rises
    rows = np.zeros(len(pairs), np.int64)
    for item in items:
        asked = (epoch * stride + item)[item >= 0]
        rows += np.bincount(np.searchsorted(pairs, asked), minlength=len(pairs))
    return rows


def _costly(savings: Savings, rows: Ints) -> _Ledger:
    costly = np.flatnonzero(savings.saved)
    columns = (savings.epoch, savings.item, savings.saved, savings.holders, rows, np.ones(len(rows), np.int64))
    return _Ledger(*(column[costly] for column in columns))


def _totals(by_epoch: _Ledger, savings: Savings, items: list[Ints], count: int) -> _Ledger:
    """Add up over epochs; people and rows also where the value costs nobody anything."""
    saved = np.bincount(by_epoch.item, weights=by_epoch.saved, minlength=count).astype(np.int64)
    holders = np.bincount(savings.item, weights=savings.holders, minlength=count).astype(np.int64)
    rows = sum((np.bincount(item[item >= 0], minlength=count) for item in items), np.zeros(count, np.int64))
    windows = np.bincount(by_epoch.item, minlength=count)
    item = np.flatnonzero(saved)
    return _Ledger(np.zeros(len(item), np.int64), item, saved[item], holders[item], rows[item], windows[item])


def _ranked(ledger: _Ledger, names: Names) -> Ints:
    """Put entries in order: epochs, the most saved, the fewest who would lose the value, the name."""
    used = sorted(set(ledger.item.tolist()), key=lambda item: names[item])
    by_name = np.zeros(len(names), np.int64)
    by_name[used] = np.arange(len(used))
    return np.lexsort((by_name[ledger.item], ledger.holders, -ledger.saved, ledger.epoch))


def _is_among_first(epoch: Ints, count: int) -> Bools:
    """Mark the first few entries of every epoch; epochs stand together."""
    return np.asarray(np.arange(len(epoch)) - np.searchsorted(epoch, epoch) < count)
