"""Generate readings of wearables: every device has other sensors, so most rows lack some columns.

`python make_readings.py` writes readings.csv into the current folder; the same seed writes the same file.
"""

from __future__ import annotations

import csv
import random

MODELS = {"watch": ["pulse", "steps", "skin"], "band": ["pulse", "steps"], "ring": ["pulse", "skin"], "clip": ["steps"]}


def make_row(who: int, second: int, dice: random.Random) -> list[object]:
    """A reading: age and district are the wearer's; each sensor drops out now and then."""
    wearer = random.Random(who)
    model = wearer.choices(list(MODELS), [4, 3, 2, 1])[0]
    age = wearer.randint(16, 89)
    district = wearer.choices(["north", "east", "south", "west"], [4, 3, 2, 1])[0]
    measured = {
        "pulse": round(dice.gauss(72, 9)),
        "steps": dice.randrange(0, 180, 10),
        "skin": round(dice.gauss(33, 0.6), 1),
    }
    here = [name for name in MODELS[model] if dice.random() > 0.15]
    return [
        f"wearer-{who}",
        1_772_409_600 + second,
        age,
        district,
        *(measured[name] if name in here else "" for name in measured),
    ]


def main(rows: int = 5_000, wearers: int = 800, seed: int = 17) -> None:
    """Write readings.csv: five hours, one reading every few seconds."""
    dice = random.Random(seed)
    with open("readings.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["wearer", "ts", "age", "district", "pulse", "steps", "skin"])
        writer.writerows(
            make_row(dice.randrange(wearers), second, dice) for second in sorted(dice.choices(range(18_000), k=rows))
        )


if __name__ == "__main__":
    main()
