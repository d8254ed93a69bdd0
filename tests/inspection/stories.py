"""Five kinds of synthetic data about people: visits, sensors, admissions, baskets, measurements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

START = 1_772_000_000


def _popular(random: np.random.Generator, choices: int, rows: int) -> np.ndarray:
    weights = 1 / np.arange(1, choices + 1)
    return random.choice(choices, rows, p=weights / weights.sum())


def visits(rows: int = 3000) -> pa.Table:
    """Web visits of people within a day, in order."""
    random = np.random.default_rng(1)
    return pa.table({
        "ts": np.sort(random.integers(START, START + 86_400, rows)),
        "user": [f"u{who}" for who in random.integers(0, 300, rows)],
        "site": [f"www.site-{rank}.example" for rank in _popular(random, 150, rows)],
        "device": random.choice(["phone", "laptop"], rows).tolist(),
    })  # fmt: skip


def sensors(rows: int = 3000) -> pa.Table:
    """Wide tuples of wearables in which most columns are missing."""
    random = np.random.default_rng(2)
    at = np.sort(random.integers(START, START + 86_400, rows))
    columns = {
        "device_id": [f"d{who:04}" for who in random.integers(0, 600, rows)],
        "time": pa.array(at * 1000).cast(pa.timestamp("ms")),
    }
    for name, low, high in (("pulse", 50, 160), ("steps", 0, 9000), ("temperature", 34, 40), ("noise", 20, 90)):
        values = random.uniform(low, high, rows).round(1 if high < 100 else 0)
        columns[name] = pa.array(values, mask=random.random(rows) < 0.6)
    return pa.table(columns)


def admissions(rows: int = 2500) -> pa.Table:
    """Hospital admissions: who, how old, from where, with what."""
    random = np.random.default_rng(3)
    districts = [f"{first}{second:02}00" for first in (79, 80, 81) for second in range(12)]
    days = START + 86_400 * np.sort(random.integers(0, 90, rows))
    return pa.table({
        "patient": [f"P-{who:05}" for who in random.integers(0, 2200, rows)],
        "name": [f"Person Number{row}" for row in range(rows)],
        "admitted": pa.array(days).cast(pa.timestamp("s")).cast(pa.date32()).cast(pa.string()).to_pylist(),
        "age": random.integers(0, 96, rows),
        "sex": random.choice(["f", "m"], rows).tolist(),
        "postcode": random.choice(districts, rows).tolist(),
        "diagnosis": random.choice(["flu", "asthma", "fracture", "burn", "angina"], rows).tolist(),
    })  # fmt: skip


def baskets(rows: int = 1500) -> pa.Table:
    """One set of groceries per customer."""
    random = np.random.default_rng(4)
    goods = ["milk", "bread", "eggs", "apples", "rice", "beer", "soap", "tea", "cheese", "pasta", "fish", "salt"]
    lists = [sorted({goods[item] for item in _popular(random, len(goods), 1 + row % 4)}) for row in range(rows)]
    return pa.table({"customer": [f"c{row}" for row in range(rows)], "items": lists})


def measurements(rows: int = 2500) -> pa.Table:
    """Tests of mobile networks: many phone models, some of which few people have."""
    random = np.random.default_rng(5)
    brands = ["Acme", "Bolt", "Core", "Dash", "Echo", "Flux"]
    models = [f"{brands[rank % 6]} {rank}" for rank in range(240)]
    return pa.table({
        "maid": [f"m{who:05}" for who in random.integers(0, 1500, rows)],
        "ts": np.sort(random.integers(START, START + 7 * 86_400, rows)) * 1000,
        "model": [models[rank] for rank in _popular(random, len(models), rows)],
        "network": random.choice(["3G", "4G", "5G"], rows, p=[0.1, 0.6, 0.3]).tolist(),
        "mbps": random.gamma(2, 20, rows).round(2),
    })  # fmt: skip


STORIES: dict[str, Callable[[], pa.Table]] = {
    "visits": visits, "sensors": sensors, "admissions": admissions, "baskets": baskets, "measurements": measurements,
}  # fmt: skip
METHODS = {
    "visits": "z-anonymity", "sensors": "k-varp", "admissions": "least-loss", "baskets": "k^m",
    "measurements": "flexible-k",
}  # fmt: skip
PERSONS = {"sensors": "device_id"}
"""Who must be named, since several devices may be one person's."""
