"""The stream of the z-anonymity benchmarks: people × attributes, Zipf, in time order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Stream:
    """Events as Arrow columns: ts (seconds), user and site (text)."""

    batch: pa.RecordBatch
    window: int
    """A tenth of the stream, in seconds."""

    def batches(self, rows: int = 65_536) -> list[pa.RecordBatch]:
        """The stream in pieces as a pipeline would hand them over."""
        return [self.batch.slice(start, rows) for start in range(0, self.batch.num_rows, rows)]

    def lists(self, rows: int) -> tuple[list[int], list[str], list[str]]:
        """The first rows as Python lists."""
        head = self.batch.slice(0, rows)
        return tuple(head.column(name).to_pylist() for name in ("ts", "user", "site"))  # type: ignore[return-value]


def names(prefix: str, numbers: np.ndarray, suffix: str) -> pa.Array:
    """Texts made of numbers, without a Python loop."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), suffix, "")


@lru_cache(maxsize=2)
def make_stream(events: int = 2_000_000, people: int = 100_000, attributes: int = 10_000, seed: int = 1) -> Stream:
    """Zipf(1) attributes, uniform people, times spread evenly over a million seconds."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, attributes + 1)
    sites = rng.choice(attributes, events, p=weights / weights.sum())
    times = np.sort(rng.integers(0, 1_000_000, events))
    columns = [
        pa.array(times),
        names("user-", rng.integers(0, people, events), "@mail.example"),
        names("site-", sites, ".example"),
    ]
    return Stream(pa.RecordBatch.from_arrays(columns, names=["ts", "user", "site"]), window=100_000)
