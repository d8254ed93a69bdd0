"""Count who shares what: every set of values shown of a person in an epoch must be that of k people."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from shoal.auditor.aligned import Facts
from shoal.auditor.findings import Notes
from shoal.auditor.promise import ZPromise

_Someone = tuple[int, int]


def check_sets(facts: Facts, promise: ZPromise, k: int, notes: Notes) -> None:
    """Collect the set of every pseudonym of every epoch, one by one, and count how many have the same."""
    epochs = (facts.shown_time // promise.rotation_ns).tolist()
    people = list(zip(epochs, facts.shown_person.tolist(), strict=True))
    sets = _sets(facts, people)
    shared = Counter((someone[0], shown) for someone, shown in sets.items())
    alone = {someone for someone, shown in sets.items() if shown and shared[someone[0], shown] < k}
    notes.violation(
        "set-below-k",
        "All that was released of a person in an epoch, taken as a set, was released of fewer than k people.",
        rows=np.array([someone in alone for someone in people], np.bool_),
    )
    sizes = [shared[someone[0], shown] for someone, shown in sets.items() if shown]
    notes.metrics["smallest_shared_set"] = min(sizes, default=None)


def _sets(facts: Facts, people: list[_Someone]) -> dict[_Someone, frozenset[tuple[str, int]]]:
    found: dict[_Someone, set[tuple[str, int]]] = defaultdict(set)
    for name, values in facts.values.items():
        for someone, value, is_readable in zip(
            people, values.shown.tolist(), facts.shown_readable.tolist(), strict=True
        ):
            if value >= 0 and is_readable:
                found[someone].add((name, value))
    return {someone: frozenset(shown) for someone, shown in found.items()}
