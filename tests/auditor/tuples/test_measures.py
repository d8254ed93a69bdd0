"""The measures of the auditor, compared with pycanon and with simple counting."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pycanon import anonymity

from shoal.auditor import audit
from shoal.auditor.tuples.diversity.distances import distinct, effective, gather, growing, ordered, refer, variation
from shoal.auditor.tuples.history import History
from tests.auditor.tuples.naive import SPAN, policy

QUASI = ["age", "tree"]


def small_release(seed):
    """A table without nulls: pycanon ignores rows with nulls."""
    draw = random.Random(seed)
    count = draw.randrange(20, 120)
    low = [draw.randrange(0, 3) * 10 for _ in range(count)]
    return pa.table(
        {
            "age": pa.array([{"lo": end, "hi": end + 10} for end in low], SPAN),
            "tree": [draw.choice(["ash", "north", "south"]) for _ in range(count)],
            "ill": [draw.choice("abcde"[: draw.randrange(1, 6)]) for _ in range(count)],
            "dose": [draw.choice([1, 2, 3, 5, 8, 13]) for _ in range(count)],
        }
    )


def frame_of(release):
    frame = release.to_pandas()
    frame["age"] = [f"{span['lo']}-{span['hi']}" for span in frame["age"]]
    return pd.DataFrame({name: frame[name].astype(object if name != "dose" else int) for name in frame.columns})


@pytest.mark.parametrize("seed", range(12))
def test_as_pycanon_counts(seed):
    release = small_release(seed)
    frame = frame_of(release)
    metrics = audit(release, policy=policy(k=1, sensitive=["ill", "dose"], carry=[])).metrics
    assert metrics["smallest_k"] == anonymity.k_anonymity(frame, QUASI)
    for name in ("ill", "dose"):
        assert metrics["l"][name] == anonymity.l_diversity(frame, QUASI, [name])
        assert metrics["t"][name] == pytest.approx(anonymity.t_closeness(frame, QUASI, [name]), abs=1e-9)
        # pycanon cuts to a whole number, one lower where rounding falls just below
        entropy_l = metrics["entropy_l"][name]
        assert anonymity.entropy_l_diversity(frame, QUASI, [name]) in {int(entropy_l - 1e-9), int(entropy_l + 1e-9)}
    assert min(metrics["l"].values()) == anonymity.l_diversity(frame, QUASI, ["ill", "dose"])


# ---- distances


def plain_variation(one, other):
    return sum(abs(one[value] - other[value]) for value in {*one, *other}) / 2


def plain_ordered(one, other):
    values = sorted(value for value in {*one, *other} if one[value] or other[value])
    if len(values) < 2:
        return 0.0
    ahead, total = 0.0, 0.0
    for value in values:
        ahead += one[value] - other[value]
        total += abs(ahead)
    return total / (len(values) - 1)


def shares(values):
    counts = Counter(values)
    return Counter({value: count / len(values) for value, count in counts.items()})


@pytest.mark.parametrize("seed", range(30))
def test_distances(seed):
    draw = np.random.default_rng(seed)
    width, sets, references = int(draw.integers(1, 12)), int(draw.integers(1, 6)), int(draw.integers(1, 4))
    member = np.concatenate([np.arange(sets), draw.integers(0, sets, 30)])
    value = draw.integers(0, width, len(member))
    own = np.concatenate([np.arange(references), draw.integers(0, references, 20)])
    expected = draw.integers(0, width, len(own))
    of_set = draw.integers(0, references, sets)
    found = gather(member, value, sets)
    refs = refer(own, expected, np.ones(len(own)), count=references, width=width)
    for number in range(sets):
        mine, theirs = value[member == number].tolist(), expected[own == of_set[number]].tolist()
        one, other = shares(mine), shares(theirs)
        assert variation(found, refs, of_set)[number] == pytest.approx(plain_variation(one, other), abs=1e-12)
        assert ordered(found, refs, of_set)[number] == pytest.approx(plain_ordered(one, other), abs=1e-12)
        assert distinct(found)[number] == len(one)
        entropy = -sum(share * math.log(share) for share in one.values())
        assert effective(found)[number] == pytest.approx(math.exp(entropy))


@pytest.mark.parametrize("seed", range(10))
def test_sets_as_they_grow(seed):
    draw = random.Random(seed)
    rows = []
    for group in range(draw.randrange(1, 5)):
        rows += [(group, draw.randrange(4), 0) for _ in range(draw.randrange(1, 4))]
        rows += [(group, draw.randrange(4), step + 1) for step in range(draw.randrange(4))]
    draw.shuffle(rows)
    group, value, step = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    sets, own = growing(group, value, step, int(group.max()) + 1)
    number = 0
    for which in range(int(group.max()) + 1):
        for until in range(int(step[group == which].max()) + 1):
            expected = Counter(value[(group == which) & (step <= until)].tolist())
            inside = sets.member == number
            assert dict(zip(sets.value[inside].tolist(), sets.times[inside].tolist(), strict=True)) == expected
            assert own[number] == which
            number += 1
    assert sets.count == number


# ---- history


def plain_history(of_row, person, decision, place, k):
    """Every row's shortest stretch, by looking at all."""
    longest = 0
    for row in range(len(of_row)):
        together = [at for at in range(len(of_row)) if (of_row[at], decision[at]) == (of_row[row], decision[row])]
        end, people = max(together), set()
        for start in range(end, -1, -1):
            if of_row[start] == of_row[row]:
                people.add(person[start])
            if len(people) == k:
                longest = max(longest, place[end] - place[start])
                break
        else:
            return None
    return longest


@pytest.mark.parametrize("seed", range(60))
def test_the_shortest_history(seed):
    draw = random.Random(seed)
    count, k = draw.randrange(1, 40), draw.randrange(1, 4)
    of_row = [draw.randrange(draw.choice([1, 2, 4])) for _ in range(count)]
    person = [draw.randrange(draw.choice([2, 5, 50])) for _ in range(count)]
    decision = [at if draw.random() < 0.5 else count + at // 4 for at in range(count)]
    steps = [draw.choice([0, 0, 1, 5]) for _ in range(count)]
    for place in (list(range(count)), np.cumsum(steps).tolist(), [int(at) - 2**62 for at in np.cumsum(steps)]):
        history = History(*(np.array(given, np.int64) for given in (of_row, person, decision, place)))
        assert history.shortest(k) == plain_history(of_row, person, decision, place, k)
