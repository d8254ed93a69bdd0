"""Generate the baskets of a supermarket's regular customers: one row per customer and product.

`python make_baskets.py` writes baskets.csv into the current folder; the same seed writes the same file.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any


def products(tree: dict[str, Any]) -> list[str]:
    """The leaves of shelves.json, from left to right."""
    return [leaf for below in tree.values() for leaf in (below if isinstance(below, list) else products(below))]


def main(customers: int = 1_500, seed: int = 17) -> None:
    """Write baskets.csv; staples are in most baskets, a pregnancy test or insulin needles in a few."""
    dice = random.Random(seed)
    names = products(json.loads(Path(__file__).with_name("shelves.json").read_text()))
    popular = list(names)
    dice.shuffle(popular)
    rare = ["pregnancy test", "insulin needles", "nicotine gum"]
    popular = [name for name in popular if name not in rare] + rare
    weights = [1 / (rank + 2) for rank in range(len(popular))]
    with open("baskets.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "product"])
        for who in range(customers):
            basket = sorted(set(dice.choices(popular, weights, k=dice.randint(2, 9))))
            writer.writerows([f"card-{who}", name] for name in basket)


if __name__ == "__main__":
    main()
