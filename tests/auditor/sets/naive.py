"""Sets published and judged by plain loops, and cases that tests may spoil."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from math import comb

from shoal.auditor import audit

TREE = {"all": {"west": ["la", "sf", "seattle"], "east": ["ny", "boston", "miami"]}}
ITEMS = ("la", "sf", "seattle", "ny", "boston", "miami")
UP = {item: region for region, items in TREE["all"].items() for item in items}

NO_CERTIFICATE = "The certificate was not checked: the release has no certificate file next to it."


def unchecked(report):
    """What was not checked, the certificate apart."""
    return tuple(sentence for sentence in report.not_checked if sentence != NO_CERTIFICATE)


def policy(k=2, m=2, *, hierarchy=True, **more):
    rules = {"method": "k^m", "item": "items", "k": k, "m": m, "sigma": 1, **more}
    if hierarchy:
        rules["generalize"] = {"hierarchy": {"kind": "nested", "tree": TREE}}
    return {"anonymize": rules}


def support(records, labels):
    return sum(labels <= record for record in records)


def itemsets(records, size):
    return {frozenset(chosen) for record in records for chosen in itertools.combinations(sorted(record), size)}


def itemset_share(truth, released, label_of, size, k):
    """Return (how many itemsets, how many of them below k)."""
    known = itemsets(truth, size)
    return len(known), sum(support(released, {label_of[item] for item in chosen}) < k for chosen in known)


def person_share(truth, released, label_of, size, k):
    able = [record for record in truth if len(record) >= size]
    shares = [
        Fraction(
            sum(
                support(released, {label_of[item] for item in chosen}) < k
                for chosen in itertools.combinations(record, size)
            ),
            comb(len(record), size),
        )
        for record in able
    ]
    return sum(shares) / len(able) if able else None


def image(truth, label_of):
    return [frozenset(label_of[item] for item in record) for record in truth]


class Case:
    """Forty records under a cut that joins the west; 3^2-anonymous, shuffled, with its trace and blocks."""

    def __init__(self, k=3, m=2, **more):
        self.label_of = {item: "west" if UP[item] == "west" else item for item in ITEMS}
        self.blocks = {"west": ["la", "sf", "seattle"], "ny": ["ny"], "boston": ["boston"], "miami": ["miami"]}
        rng = random.Random(5)
        self.truth = [frozenset(rng.sample(ITEMS, rng.randint(1, 4))) for _ in range(40)]
        order = list(range(40))
        rng.shuffle(order)
        self.rows = [{self.label_of[item] for item in self.truth[row]} for row in order]
        self.positions = [order.index(row) for row in range(40)]
        self.policy = policy(k, m, **more)

    def audit(self, truth=True, trace=None):
        return audit(self.rows, list(map(set, self.truth)) if truth else None, trace, self.policy)

    def codes(self, **given):
        return {found.code for found in self.audit(**given).violations}
