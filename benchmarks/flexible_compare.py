"""Flexible k-anonymity and least-loss on the same records: python -m benchmarks.flexible_compare [--data FOLDER]

A synthetic campaign of measurements, and a second one with thousands of models, few common and most rare. With --data
these are of Google's list of certified devices (google_play_certified_devices.csv.gz).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.flexible_speed import roles_of, with_devices
from benchmarks.measure import Report, parse, parser
from shoal import FlexibleK, Ontology, Schema
from shoal.pipeline.doctor.flexible import least_loss_baseline
from shoal.reproduce.data.campaign import make_campaign

COLUMNS = ["records", "people", "k", "method", "people alike in all columns", "loss", "not published", "says nothing"]
LISTED = "google_play_certified_devices.csv.gz"


def with_listed_devices(table: pa.Table, path: Path, seed: int = 0) -> tuple[pa.Table, Ontology]:
    """Every person gets a model of the list; the chance of the n-th one is in proportion to 1 / n."""
    ontology = Ontology.from_table(
        path, value="model", is_a=["marketing_name", "brand"], tag="sparse", attribute="device"
    )
    models = np.array(ontology.attribute("device").values, dtype=object)
    random = np.random.default_rng(seed)
    random.shuffle(models)
    chances = 1 / np.arange(1, len(models) + 1)
    people = table["maid"].combine_chunks().dictionary_encode()
    own = random.choice(models, size=len(people.dictionary), p=chances / chances.sum())
    devices = pa.array(own[people.indices.to_numpy()], pa.string())
    return table.set_column(table.schema.get_field_index("device"), "device", devices), ontology


def models_seen(table: pa.Table) -> tuple[int, float]:
    """How many devices occur, and the share of them that one person has."""
    people = table.select(["device", "maid"]).group_by(["device", "maid"]).aggregate([]).group_by("device")
    counts = people.aggregate([("maid", "count")])["maid_count"].to_numpy()
    return len(counts), float((counts == 1).mean())


def with_strangers(table: pa.Table, share: float, seed: int = 0) -> pa.Table:
    """Some people's devices are not in the ontology."""
    people = table["maid"].combine_chunks().dictionary_encode()
    is_stranger = np.random.default_rng(seed).random(len(people.dictionary)) < share
    numbers = people.indices.to_numpy()
    named = [
        f"unheard of {number}" if is_stranger[number] else device
        for number, device in zip(numbers.tolist(), table["device"].to_pylist(), strict=True)
    ]
    return table.set_column(table.schema.get_field_index("device"), "device", pa.array(named, pa.string()))


def flexible_line(
    table: pa.Table, ontology: Ontology, k: int, window: int, **options: Any
) -> tuple[FlexibleK, list[str]]:
    """The method after the whole stream, and its line of the table."""
    schema = Schema(person="maid", quasi=roles_of(table, 5))
    flexible = FlexibleK(schema, ontology, k=k, window=window, **options)
    parts = [flexible.push_batch(table.select(schema.columns)), flexible.flush()]
    devices = pa.chunked_array([part.rows.column("device") for part in parts])
    nothing = (pc.sum(pc.equal(devices, "unknown")).as_py() or 0) / max(len(devices), 1)
    metrics: dict[str, Any] = flexible.metrics
    alike = str(int(metrics.get("k_s", k)))
    pending = f"{flexible.pending / len(table):.1%} pending"
    return flexible, ["flexible-k", alike, f"{metrics['loss']:.3f}", pending, f"{nothing:.1%}"]


def least_loss_line(flexible: FlexibleK, table: pa.Table, k: int) -> list[str]:
    """Least-loss with the same records, grids and domains; its k holds for all columns together."""
    found = least_loss_baseline(
        flexible.settings.model_copy(update={"k": k, "density": {}, "density_from_data": {}}), table
    )
    lost = f"{found.suppressed / len(table):.1%} suppressed"
    return ["least-loss", str(k), f"{found.loss:.3f}", lost, f"{found.at_root:.1%}"]


def compare(table: pa.Table, ontology: Ontology, k: int, window: int) -> Iterator[list[str]]:
    """One line for flexible k, one with K_s = k (as many people alike in all columns), one for least-loss."""
    begin = [f"{len(table):,}", f"{len(table['maid'].unique()):,}", str(k)]
    flexible, line = flexible_line(table, ontology, k, window)
    yield [*begin, *line]
    yield [*begin, *flexible_line(table, ontology, k, window, k_s=k)[1]]
    yield [*begin, *least_loss_line(flexible, table, k)]


def compare_example(people: int, records: int, window: int) -> Iterator[list[str]]:
    """The records and the policy of examples/measurements, where villages need 10 people; or places by their people."""
    table, ontology = make_campaign(people, records, seed=1), Ontology.devices()
    begin = [f"{len(table):,}", f"{len(table['maid'].unique()):,}"]
    flexible, line = flexible_line(table, ontology, 6, window, density={"place": {"villages": 10}})
    yield [*begin, "6, villages 10", *line]
    measured = {"place": {"level": 1, "classes": [{"fewer_than": 150, "k": 10}, {"fewer_than": 600, "k": 8}]}}
    by_people = flexible_line(table, ontology, 6, window, density_from_data=measured)[1]
    yield [*begin, "6, below 600 people 8, below 150 people 10", *by_people]
    yield [*begin, "6", *flexible_line(table, ontology, 6, window, k_s=6)[1]]
    yield [*begin, "6", *least_loss_line(flexible, table, 6)]
    yield [*begin, "10", *least_loss_line(flexible, table, 10)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write the tables."""
    given = parse(parser(__doc__, data=f"Google's list of devices, {LISTED}"), arguments)
    report = Report(__file__, given)
    sizes = [(300, 1_000, 4, 300)] if given.tiny else [(1_500, 20_000, 6, 5_000), (1_500, 20_000, 25, 5_000)]
    rows, strange, listed = [], [], []
    report.table(
        "example", COLUMNS, list(compare_example(*(300, 1_000, 300) if given.tiny else (1_500, 20_000, 5_000)))
    )
    path = next((file for file in given.data.rglob(LISTED)), None) if given.data else None
    for people, records, k, window in sizes:
        table = make_campaign(people, records, seed=1)
        rows += compare(table, Ontology.devices(), k, window)
        strange += compare(with_strangers(table, 0.2), Ontology.devices(), k, window)
        models = 500 if given.tiny else 44_000
        listing = with_devices(table, models) if path is None else with_listed_devices(table, path)
        listed += compare(*listing, k, window)
    report.table("campaign", COLUMNS, rows)
    report.table("unlisted", COLUMNS, strange)
    source = "synthetic models of 50 brands" if path is None else "models of Google's list of certified devices"
    count, seen, single = len(listing[1].attribute("device").values), *models_seen(listing[0])
    report.text(
        "listed_source",
        f"The campaign's people with {count:,} {source}. {seen:,} of them occur, {single:.0%} of "
        "these with one person only.",
    )
    report.table("listed_devices", COLUMNS, listed)
    report.write()


if __name__ == "__main__":
    main()
