"""A label with a single child means the same as the child: only the child is published."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal import Categorical, FlexibleK, Hierarchy, Ontology, Schema

NETWORKS = Hierarchy.from_nested({"any network": {"mobile": ["3G", "4G"], "fixed": {"wireless": ["Wi-Fi"]}}})
PHONES = [
    {"model": "S5", "family": "Galaxy", "brand": "Samsung", "os": "Android"},
    {"model": "S6", "family": "Galaxy", "brand": "Samsung", "os": "Android"},
    {"model": "One", "family": "HTC One", "brand": "HTC", "os": "Android"},
    {"model": "6s", "family": "iPhone", "brand": "Apple", "os": "iOS"},
]
DEVICES = Ontology.from_table(
    PHONES, value="model", is_a=["family", "brand"], properties=["os"], tag="sparse", attribute="device"
)
SECOND_SPELLINGS = {"fixed", "wireless", "Samsung", "HTC One", "HTC", "iPhone", "Apple", "iOS"}


def labels_of(window, root, sparse, seed):
    """Published labels of a stream in which some cells and models are rare."""
    random = np.random.default_rng(seed)
    size = 150
    table = pa.table({
        "maid": [f"u{number}" for number in random.integers(0, 40, size)],
        "network": random.choice(["3G", "4G", "Wi-Fi"], size, p=[0.1, 0.6, 0.3]),
        "device": random.choice([phone["model"] for phone in PHONES], size, p=[0.5, 0.3, 0.05, 0.15]),
    })  # fmt: skip
    schema = Schema(person="maid", quasi=[Categorical("network", NETWORKS), Categorical("device")])
    flexible = FlexibleK(schema, DEVICES, k=5, k_s=3, window=window, root=root, sparse=sparse, key=b"0" * 16)
    parts = [flexible.push_batch(table.slice(start, 50)).rows for start in range(0, size, 50)]
    parts.append(flexible.flush().rows)
    return {label for part in parts for name in ("network", "device") for label in part.column(name).to_pylist()}


@pytest.mark.parametrize("window", [20, 75])
@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("sparse", [["device"], ["network"]])
def test_only_the_child_is_published(window, root, sparse):
    found = set().union(*(labels_of(window, root, sparse, seed) for seed in range(2)))
    assert found & SECOND_SPELLINGS == set()
    assert found >= {"Wi-Fi", "6s"}
