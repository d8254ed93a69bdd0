"""A naive Bayes classifier that learns from ranges and labels: a row counts evenly for all values it may stand for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Attribute, Labels, Spans

_BINS: Final = 32
_SMOOTH: Final = 1.0


class Spread:
    """One attribute: how much of each published value lies in each bin of true values."""

    def __init__(self, attribute: Attribute, first: Ints) -> None:
        self.values: dict[str, int] | None = None
        """The true labels, numbered; None for numbers, which have bins."""
        if isinstance(attribute, Spans):
            ends = np.concatenate([attribute.low, attribute.high])
            ends = ends[np.isfinite(ends)]
            step = float((ends == np.rint(ends)).all())  # a range of whole numbers includes its last one
            self.edges = self._quantiles(ends, step)
            self.share = self._of_ranges(attribute.low[first], attribute.high[first] + step)
        else:
            assert isinstance(attribute, Labels)
            used = np.unique(attribute.true_code[attribute.true_code >= 0])
            self.values = {attribute.texts[code]: place for place, code in enumerate(used.tolist())}
            self.share = self._of_labels(attribute, used, attribute.code[first])

    @property
    def names(self) -> list[str]:
        """What each value or bin is called."""
        if self.values is not None:
            return list(self.values)
        return [f"{low:g} – {high:g}" for low, high in pairwise(self.edges.tolist())]

    @staticmethod
    def _quantiles(ends: Floats, step: float) -> Floats:
        if not len(ends):
            return np.array([0.0, 1.0])
        edges = np.quantile(ends, np.linspace(0, 1, _BINS + 1))
        edges = np.unique(np.append(np.floor(edges) if step else edges, ends.max() + step))
        return edges if len(edges) > 1 else np.array([edges[0], edges[0] + 1.0])

    def _of_ranges(self, low: Floats, high: Floats) -> Floats:
        edges = self.edges
        bins = len(edges) - 1
        low, high = np.nan_to_num(low, nan=edges[0]), np.nan_to_num(high, nan=edges[-1])
        overlap = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
        share = np.maximum(overlap, 0)
        point = share.sum(axis=1) == 0
        share[point] = 0
        share[point, np.clip(np.searchsorted(edges, low[point], side="right") - 1, 0, bins - 1)] = 1
        found: Floats = share / share.sum(axis=1, keepdims=True)
        return found

    @staticmethod
    def _of_labels(attribute: Labels, used: Ints, shown: Ints) -> Floats:
        labels, turn = np.unique(shown, return_inverse=True)
        pairs = np.repeat(used, len(labels)), np.tile(labels, len(used))
        covers = ((attribute.paths.level(*pairs) >= 0) | (pairs[1] < 0)).reshape(len(used), len(labels)).T
        share = covers.astype(np.float64)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1)
        found: Floats = share[turn]
        return found

    def bins(self, attribute: Attribute, rows: Ints) -> Ints:
        """Return the bin of every record's true value; -1 for a missing or unknown one."""
        if isinstance(attribute, Spans):
            value = attribute.true_value[rows]
            place = np.clip(np.searchsorted(self.edges, value, side="right") - 1, 0, len(self.edges) - 2)
            return np.where(np.isnan(value), -1, place)
        assert isinstance(attribute, Labels)
        assert self.values is not None
        number = np.array([*(self.values.get(text, -1) for text in attribute.texts), -1], np.int64)
        return number[attribute.true_code[rows]]


class Bayes:
    """The tables of a trained classifier: for every attribute, rows by bin (line) and sensitive value (column)."""

    def __init__(self, spreads: Sequence[Spread], tables: Sequence[Floats], total: Floats) -> None:
        self._spreads, self._tables, self._total = spreads, tables, total

    @classmethod
    def trained(cls, attributes: Sequence[Attribute], first: Ints, counts: npt.NDArray[np.float64]) -> Bayes:
        """Train on classes of released rows (``first`` is a row of each) and their counts of sensitive values."""
        spreads = [Spread(attribute, first) for attribute in attributes]
        return cls(spreads, [spread.share.T @ counts for spread in spreads], counts.sum(axis=0))

    def retrained(self, attributes: Sequence[Attribute], rows: Ints, values: Ints, width: int) -> Bayes:
        """Return the same classifier, with the same bins, trained on true values."""
        tables = []
        for spread, attribute in zip(self._spreads, attributes, strict=True):
            place = spread.bins(attribute, rows)
            known = place >= 0
            size = spread.share.shape[1] * width
            table = np.bincount(place[known] * width + values[known], minlength=size).reshape(-1, width)
            tables.append(table.astype(np.float64))
        return Bayes(self._spreads, tables, np.bincount(values, minlength=width).astype(np.float64))

    def scores(self, attributes: Sequence[Attribute], rows: Ints, without: tuple[Ints, Ints] | None = None) -> Floats:
        """Return log scores: one line per record, one column per value.

        ``without`` names the class and the value of each record's own row, which is then left out of the training.
        """
        total = np.repeat(self._total[None, :], len(rows), axis=0)
        lines = np.arange(len(rows))
        if without is not None:
            total[lines, without[1]] = np.maximum(total[lines, without[1]] - 1, 0)
        found = np.log(total + 1e-9)
        for spread, table, attribute in zip(self._spreads, self._tables, attributes, strict=True):
            place = spread.bins(attribute, rows)
            known = place >= 0
            seen = table[np.where(known, place, 0)]
            if without is not None:
                own = spread.share[without[0], np.where(known, place, 0)]
                seen[lines, without[1]] = np.maximum(seen[lines, without[1]] - own, 0)
            chance = (seen + _SMOOTH / len(table)) / (total + _SMOOTH)
            found += np.where(known[:, None], np.log(chance), 0.0)
        return found
