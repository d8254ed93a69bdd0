"""Generate a stream of people for policy.toml: four quasi-identifiers, some missing, and their work.

`python make_people.py` writes people.csv next to it; then `shoal doctor policy.toml` checks the policy and the file,
and `shoal run policy.toml` writes released.parquet.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

SCHOOLS = ["primary", "secondary", "vocational", "bachelor", "master", "doctorate"]
DISTRICTS = ["Harbour", "Old Town", "Station", "Hill", "Meadow", "Mill"]
WORK = ["sales", "care", "crafts", "transport", "teaching", "office"]


def make_row(number: int, dice: random.Random) -> list[object]:
    """One arrival: every tenth is a returning person, and any quasi-identifier may be missing."""
    who = dice.randrange(number) if number and dice.random() < 0.1 else number
    person = random.Random(who)  # the same person gives the same answers
    values: list[object] = [
        min(90, 17 + int(person.gammavariate(3, 10))),
        person.choices(SCHOOLS, weights=[2, 6, 4, 4, 3, 1])[0],
        round(person.gauss(38, 8), 1) % 80,
        person.choices(DISTRICTS, weights=[4, 3, 3, 2, 1, 1])[0],
    ]
    shown = ["" if dice.random() < 0.05 else value for value in values]
    return [f"person-{who}", *shown, person.choice(WORK), dice.choice(["web", "desk"])]


def main(folder: Path = Path(__file__).parent, *, rows: int = 2000, seed: int = 1) -> Path:
    """Write people.csv; the same seed writes the same file."""
    dice = random.Random(seed)
    path = folder / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "school", "hours", "district", "work", "channel"])
        writer.writerows(make_row(number, dice) for number in range(rows))
    return path


if __name__ == "__main__":
    print(f"wrote {main()}")
