"""Generate a campaign of measurements: people move through a city with their phones and measure the network.

`python make_measurements.py` writes measurements.csv and places.csv (the city as a hierarchy) next to it. Then
`shoal run policy.toml` publishes every record with flexible k-anonymity, and `shoal sanitize sanitize.toml` runs the
whole process: sealed identifiers, an internal store with decoys, an external store.
"""

from __future__ import annotations

from pathlib import Path

from pyarrow import csv

from shoal.reproduce.data.campaign import campaign_places, make_campaign


def write_places(path: Path) -> None:
    """Write one line per cell: the cell, its district, its part of the city, the city."""
    places = campaign_places()
    inner = set(places.parents.tolist())
    cells = [label for node, label in enumerate(places.labels) if node not in inner]
    path.write_text("".join(";".join(places.path(cell)) + "\n" for cell in cells), encoding="utf-8")


def main(folder: Path = Path(__file__).parent, *, people: int = 1500, records: int = 20_000, seed: int = 1) -> Path:
    """Write both files; the same seed writes the same files."""
    write_places(folder / "places.csv")
    path = folder / "measurements.csv"
    csv.write_csv(make_campaign(people, records, seed=seed), path)
    return path


if __name__ == "__main__":
    print(f"wrote {main()}")
