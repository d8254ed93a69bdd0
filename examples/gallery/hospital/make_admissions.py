"""Generate the admissions of a synthetic hospital, in the order of their arrival.

`python make_admissions.py` writes admissions.csv into the current folder; the same seed writes the same file.
"""

from __future__ import annotations

import csv
import random
from datetime import datetime, timedelta

DIAGNOSES = {
    "injury": 5,
    "heart": 4,
    "infection": 4,
    "birth": 3,
    "cancer": 2,
    "stroke": 2,
    "diabetes": 2,
    "epilepsy": 1,
}
TYPES = ["emergency", "planned", "transfer"]


def make_row(number: int, time: datetime, dice: random.Random) -> list[object]:
    """One admission. Every eighth patient has been here before; postcodes have a dense and a sparse end."""
    who = dice.randrange(number) if number and dice.random() < 0.12 else number
    patient = random.Random(who)
    diagnosis = dice.choices(list(DIAGNOSES), list(DIAGNOSES.values()))[0]
    sex = "f" if diagnosis == "birth" else patient.choice("fm")
    age = patient.randint(17, 44) if diagnosis == "birth" else min(99, int(patient.betavariate(2, 1.4) * 100))
    postcode = f"10{patient.choices(range(4), [6, 4, 2, 1])[0]}{patient.randrange(10)}"
    return [f"patient-{who}", time.isoformat() + "Z", age, sex, postcode, dice.choices(TYPES, [6, 4, 1])[0], diagnosis]


def main(rows: int = 4000, seed: int = 17) -> None:
    """Write admissions.csv: about forty admissions a day."""
    dice, time = random.Random(seed), datetime(2026, 1, 1)
    with open("admissions.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "admitted", "age", "sex", "postcode", "type", "diagnosis"])
        for number in range(rows):
            time += timedelta(seconds=int(dice.expovariate(1 / 2100)))
            writer.writerow(make_row(number, time, dice))


if __name__ == "__main__":
    main()
