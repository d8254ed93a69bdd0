"""Generate a campaign of network measurements: people move through a city with their phones and measure.

`python make_measurements.py` writes measurements.csv and places.csv (the city as a hierarchy) into the current folder;
the same seed writes the same files. Speeds are rounded to steps of 10 Mbit/s: exact ones would single people out.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from shoal.reproduce.data.campaign import campaign_places, make_campaign


def write_places() -> None:
    """Write one line per cell: the cell, its district, its part of the city, the city."""
    places = campaign_places()
    inner = set(places.parents.tolist())
    cells = [label for node, label in enumerate(places.labels) if node not in inner]
    Path("places.csv").write_text("".join(";".join(places.path(cell)) + "\n" for cell in cells), encoding="utf-8")


def main(people: int = 800, records: int = 6_000, seed: int = 17) -> None:
    """Write both files."""
    write_places()
    table = make_campaign(people, records, seed=seed)
    rounded = pc.min_element_wise(pc.multiply(pc.round(pc.divide(table["mbps_down"], 10.0)), 10.0), 100.0)
    speed = table.schema.get_field_index("mbps_down")
    csv.write_csv(table.set_column(speed, "mbps_down", rounded.cast(pa.int64())), "measurements.csv")


if __name__ == "__main__":
    main()
