"""No row stays pending if some assignment publishes it: compared with a search through all assignments."""

from __future__ import annotations

import random
from functools import cache

import pyarrow as pa
import pytest

from shoal import Categorical, FlexibleK, Hierarchy, Schema
from tests.methods.flexible.phones import devices, phones

PLACES = Hierarchy.from_nested({"city": {"north": ["a", "b"], "south": ["c", "d"]}})
MODELS = ["S5", "S6", "G2", "M8", "P8", "Mi", "6s", "7s"]
DEVICES = devices(phones(*MODELS))


def publish(rows, **options):
    """Labels of the published rows of (person, place, device)."""
    schema = Schema(person="maid", quasi=[Categorical("place", PLACES), Categorical("device")])
    flexible = FlexibleK(schema, DEVICES, key=b"0123456789abcdef", **options)
    columns = dict(zip(("maid", "place", "device"), map(list, zip(*rows, strict=True)), strict=True))
    parts = [flexible.push_batch(pa.table(columns)).rows, flexible.flush().rows]
    return [(row["place"], row["device"]) for part in parts for row in part.to_pylist()]


def most_published(rows, k, k_s, density):
    """The largest number of rows that some assignment publishes under F0, F1 and F2."""
    devices = DEVICES.attribute("device")

    @cache
    def need(label):
        under = [leaf for leaf in "abcd" if label in PLACES.path(leaf)]
        return max(next((density[one] for one in PLACES.path(leaf) if one in density), k) for leaf in under)

    choices = []
    for _, place, device in rows:
        labels = [device, *devices.labels_above(device)]
        choices.append([(block, label) for block in PLACES.path(place)[-2::-1] for label in reversed(labels)])

    def lacking(chosen):
        """Number of people that blocks and labels in use still need."""
        parts, blocks = {}, {}
        for (person, _, _), choice in zip(rows, chosen, strict=False):
            if choice is not None:
                parts.setdefault(choice, set()).add(person)
                blocks.setdefault(choice[0], set()).add(person)
        return max(
            sum(max(0, min(k_s, need(block)) - len(people)) for (block, _), people in parts.items()),
            sum(max(0, need(block) - len(people)) for block, people in blocks.items()),
        )

    def exists(chosen, pending):
        if lacking(chosen) > len(rows) - len(chosen):
            return False
        if len(chosen) == len(rows):
            return True
        if any(exists([*chosen, choice], pending) for choice in choices[len(chosen)]):
            return True
        return pending > 0 and exists([*chosen, None], pending - 1)

    return next(len(rows) - pending for pending in range(len(rows) + 1) if exists([], pending))


def crowds(seed):
    """A few rows, some of them of the same person; k, K_s and perhaps density."""
    drawn = random.Random(seed)
    people, models = drawn.randint(2, 7), drawn.sample(MODELS, drawn.randint(1, 5))
    places = drawn.choice(["ab", "abcd"])
    rows = [
        (f"u{drawn.randrange(people)}", drawn.choice(places), drawn.choice(models)) for _ in range(drawn.randint(3, 6))
    ]
    k = drawn.randint(2, 5)
    density = drawn.choice([{}, {}, {"a": drawn.randint(2, 5)}, {"north": drawn.randint(2, 5)}])
    return rows, k, drawn.randint(2, min(k, 3)), density


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_as_many_rows_are_published_as_any_assignment_publishes(first):
    found = 0
    for seed in range(first, first + 20):
        rows, k, k_s, density = crowds(seed)
        published = publish(rows, k=k, k_s=k_s, density={"place": density})
        assert len(published) == most_published(rows, k, k_s, density), (seed, rows, k, k_s, density)
        found += len(published) > 0
    assert found


def test_people_of_a_frequent_label_are_lent_to_a_rare_one():
    """Five Galaxy S6 and one HTC M8: three keep their model, three share the system."""
    rows = [*((f"u{number}", "a", "S6") for number in range(5)), ("u5", "a", "M8")]
    published = publish(rows, k=6, k_s=3)
    assert sorted(label for _, label in published) == ["Android"] * 3 + ["S6"] * 3


def test_a_village_is_published_under_what_its_phones_have_in_common():
    """A village needs ten people: ten phones of five models, two each, with K_s = 5."""
    models = ["S5", "S6", "G2", "M8", "P8"]
    rows = [(f"u{number}", "a", models[number % 5]) for number in range(10)]
    published = publish(rows, k=6, k_s=5, density={"place": {"a": 10}})
    assert len(published) == 10
    assert {place for place, _ in published} == {"a"}


def test_labels_of_a_block_are_chosen_together():
    """No label covers all nine; S6 alone and Android alone are too few for the block."""
    rows = [*((f"s{number}", "a", "S6") for number in range(5)), ("h", "a", "M8"),
            *((f"i{number}", "a", "6s") for number in range(3))]  # fmt: skip
    published = publish(rows, k=9, k_s=3)
    assert sorted(label for _, label in published) == ["6s"] * 3 + ["Android"] * 3 + ["S6"] * 3
