"""Generate a day of web visits: a few sites that everyone visits, and a long tail that one or two people visit.

`python make_visits.py` writes visits.csv into the current folder; the same seed writes the same file.
"""

from __future__ import annotations

import csv
import random

TOPICS = ["news", "weather", "shop", "video", "recipes", "health", "bank", "games"]
START = 1_772_409_600  # 2026-03-02T00:00:00Z


def main(visits: int = 20_000, people: int = 1_000, sites: int = 2_000, seed: int = 17) -> None:
    """Write visits.csv, in the order of time."""
    dice = random.Random(seed)
    names = [f"{dice.choice(TOPICS)}-{rank}.example" for rank in range(sites)]
    popular = [1 / (rank + 1) for rank in range(sites)]
    favourites = [dice.choices(names, popular, k=12) for _ in range(people)]
    with open("visits.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["ts", "user", "site", "device"])
        for second in sorted(dice.choices(range(86_400), k=visits)):
            who = dice.randrange(people)
            writer.writerow(
                [START + second, f"user-{who}", dice.choice(favourites[who]), "phone" if who % 3 else "laptop"]
            )


if __name__ == "__main__":
    main()
