"""How useful released rows are: counts, marginals, correlations, and a classifier trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.attacks.classes import People, RowEvidence
from shoal.auditor.attacks.naive_bayes import Bayes, Spread
from shoal.auditor.attacks.sensitive_values import read_column
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Attribute, Spans
from shoal.auditor.utility.measure import Measure

QUERIES: Final = 300
_FLOOR: Final = 0.005
"""Counts below this share of all records are compared with it: an error of 1 in 2 means nothing."""
_MOST_VALUES: Final = 1000
"""Values, with null, that a classifier is trained to tell apart."""


def measure_rows(evidence: RowEvidence) -> list[Measure]:
    """Measure everything that can be measured of rows."""
    if not evidence.rows:
        return [Measure("released", "Share of the records that are released.", 0.0, 1.0)]
    spreads = [Spread(attribute, evidence.released.first) for attribute in evidence.members.attributes]
    shares = [marginal_shares(evidence, spread, attribute)
              for spread, attribute in zip(spreads, evidence.members.attributes, strict=True)]  # fmt: skip
    distance = [0.5 * float(np.abs(before - after).sum()) for before, after in shares]
    usable = int(evidence.members.records.usable.sum())
    return [
        Measure("released", "Share of the records that are released.", evidence.rows / max(usable, 1), 1.0),
        _counts(evidence, spreads),
        Measure("marginals", "Distance (total variation) between the distributions of a column before and after, on "
                "average over columns; a range or label counts evenly for all values it may stand for.",
                float(np.mean(distance)), 0.0),
        _correlations(evidence),
        *_predictions(evidence),
    ]  # fmt: skip


def marginal_shares(evidence: RowEvidence, spread: Spread, attribute: Attribute) -> tuple[Floats, Floats]:
    """Return the shares of a column's values (labels) or bins of values (numbers) before and after."""
    rows = np.flatnonzero(evidence.members.records.usable)
    place = spread.bins(attribute, rows)
    before = np.bincount(place[place >= 0], minlength=spread.share.shape[1]).astype(np.float64)
    after = evidence.released.rows @ spread.share
    return before / max(before.sum(), 1), after / max(after.sum(), 1e-12)


# ---- counting queries


def _counts(evidence: RowEvidence, spreads: Sequence[Spread]) -> Measure:
    """Count records by random conditions on one or two columns, and compare with the release."""
    random = np.random.default_rng(20_261)
    people, released = evidence.members, evidence.released
    rows = np.flatnonzero(people.records.usable)
    bins = [spread.bins(attribute, rows) for spread, attribute in zip(spreads, people.attributes, strict=True)]
    errors = []
    for _ in range(QUERIES):
        columns = random.permutation(len(spreads))[: random.integers(1, min(2, len(spreads)) + 1)]
        hit, share = np.ones(len(rows), np.bool_), released.rows.astype(np.float64)
        for column in columns.tolist():
            asked = _condition(people.attributes[column], spreads[column], random)
            hit &= asked[bins[column]] & (bins[column] >= 0)
            share = share * (spreads[column].share @ asked.astype(np.float64))
        true = float(hit.sum())
        errors.append(abs(float(share.sum()) - true) / max(true, _FLOOR * len(rows)))
    return Measure(
        "counts", f"Median relative error of {QUERIES} random counts: ranges and groups over one or two columns.",
        float(np.median(errors)), 0.0,
    )  # fmt: skip


def _condition(attribute: Attribute, spread: Spread, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw a condition: a range of neighbouring bins, or one value or more."""
    width = spread.share.shape[1]
    asked = np.zeros(width, np.bool_)
    if isinstance(attribute, Spans):
        first, last = np.sort(random.integers(0, width, size=2))
        asked[first : last + 1] = True
    else:
        asked[random.permutation(width)[: random.integers(1, max(width // 3, 1) + 1)]] = True
    return asked


# ---- correlations


def _correlations(evidence: RowEvidence) -> Measure:
    what = "Largest change of a correlation between two columns of numbers (middles of ranges count)."
    spans = [attribute for attribute in evidence.members.attributes if isinstance(attribute, Spans)]
    if len(spans) < 2:
        return Measure("correlations", what, None, 0.0, "fewer than two columns of numbers")
    usable = np.flatnonzero(evidence.members.records.usable)
    before = _correlation([span.true_value[usable] for span in spans])
    after = _correlation(
        [((span.low + span.high) / 2)[evidence.released.first[evidence.released.of_row]] for span in spans]
    )
    return Measure("correlations", what, float(np.abs(before - after).max()), 0.0)


def _correlation(columns: Sequence[Floats]) -> Floats:
    table = np.stack(columns)
    table = table[:, ~np.isnan(table).any(axis=0)]
    if table.shape[1] < 2:
        return np.zeros((len(columns), len(columns)))
    table = table - table.mean(axis=1, keepdims=True)
    size = np.sqrt((table**2).sum(axis=1))
    found: Floats = table @ table.T / np.maximum(np.outer(size, size), 1e-300)
    return found


# ---- a classifier


def _predictions(evidence: RowEvidence) -> list[Measure]:
    found = []
    for name in evidence.members.sensitive:
        outside = evidence.outsiders
        tested = evidence.members if outside is None or name not in outside.sensitive else outside
        whom = "people who are not in the data" if tested is outside else "people in the data"
        what = f"Accuracy of naive Bayes for {name}, trained on the release (ideal: on the raw data), tried on {whom}."
        found.append(_prediction(evidence, name, tested, f"prediction of {name}", what))
    return found


def _prediction(evidence: RowEvidence, name: str, tested: People, title: str, what: str) -> Measure:
    column = read_column(evidence, name)
    if column is None or column.width > _MOST_VALUES:
        return Measure(title, what, None, 1.0, "too many different values")
    members = evidence.members
    rows = np.flatnonzero(members.records.usable)
    if tested is members:
        rows = np.setdiff1d(rows, tested.targets)  # a record that is tried is left out
        values = column.true[tested.targets]
    else:
        assert column.outside is not None
        values = column.outside[tested.targets]
    after = Bayes.trained(members.attributes, evidence.released.first, column.counts)
    raw = after.retrained(members.attributes, rows, column.true[rows], column.width)
    right, ideal = (_accuracy(model.scores(tested.attributes, tested.targets), values) for model in (after, raw))
    return Measure(title, what, right, ideal)


def _accuracy(scores: Floats, values: Ints) -> float:
    return float((scores.argmax(axis=1) == values).mean()) if len(values) else 0.0
