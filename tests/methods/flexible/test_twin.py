"""The compiled flexible method decides as the naive one does, record by record.

The kernels of this method that have no other test are covered by this one: it compares labels and counts
of all rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Ontology, Schema
from tests.reference.effort import IS_COMPILED, some_by_default, tries
from tests.reference.flexible import NaiveFlexible

PLACES = Hierarchy.from_nested({"city": {"north": {"n1": ["a", "b"], "n2": ["c"]}, "south": ["d", "e"], "west": None}})
NETWORKS = Hierarchy.from_nested({"any": {"slow": ["2G", "3G"], "fast": ["4G", "5G"]}})
PHONES = [
    {"model": "S3", "family": "Galaxy", "brand": "Samsung", "os": "Android", "country": "Korea"},
    {"model": "S4", "family": "Galaxy", "brand": "Samsung", "os": "Android", "country": "Korea"},
    {"model": "Note", "family": "Note", "brand": "Samsung", "os": "Android", "country": "Korea"},
    {"model": "G2", "family": "G", "brand": "LG", "os": "Android", "country": "Korea"},
    {"model": "P8", "family": "P", "brand": "Huawei", "os": "Android", "country": "China"},
    {"model": "Mi", "family": "Mi", "brand": "Xiaomi", "os": "Android", "country": "China"},
    {"model": "6s", "family": "iPhone", "brand": "Apple", "os": "iOS", "country": "USA"},
    {"model": "Lumia", "family": "Lumia", "brand": "Nokia", "os": "Windows", "country": "Finland"},
]  # fmt: skip
MODELS = [phone["model"] for phone in PHONES]
KEY = b"0123456789abcdef"


def ontology(tag):
    return Ontology.from_table(
        PHONES, value="model", is_a=["family", "brand"], properties=["os", "country"], tag=tag, attribute="device"
    )


records = st.fixed_dictionaries(
    {
        "maid": st.one_of(st.sampled_from([f"u{n}" for n in range(9)]), st.none()),
        "device": st.one_of(
            st.sampled_from(MODELS), st.sampled_from(["S3", "P8", None, "unknown", "x1", "x2", "Samsung"])
        ),
        "place": st.one_of(st.sampled_from(["a", "b", "c", "d", "e", "west", "nowhere"]), st.none()),
        "network": st.sampled_from(["2G", "3G", "4G", "5G"]),
        "speed": st.one_of(st.sampled_from([0.0, 9.0, 10.0, 19.999, 55.5, 100.0]), st.none()),
    }
)
streams = st.lists(records, min_size=1, max_size=60)


def the_schema(columns):
    roles = {
        "device": Categorical("device"),
        "place": Categorical("place", PLACES, weight=2.0),
        "network": Categorical("network", NETWORKS),
        "speed": Numeric("speed", low=0, high=100, grid=10),
    }
    return Schema(person="maid", quasi=[roles[name] for name in columns])


TYPES = pa.schema(
    [("maid", pa.string()), ("device", pa.string()), ("place", pa.string()), ("network", pa.string()),
     ("speed", pa.float64())]
)  # fmt: skip


def compiled(stream, columns, **options):
    schema, concepts = the_schema(columns), ontology(options.pop("tag"))
    flexible = FlexibleK(schema, concepts, key=KEY, **options)
    table = pa.Table.from_pylist(stream, schema=TYPES)
    release = flexible.push_batch(table)
    last = flexible.flush()
    left = {}
    for part in (release, last):
        released = [row["row"] for row in part.trace.to_pylist() if row["verdict"] == "released"]
        left |= dict(zip(released, part.rows.to_pylist(), strict=True))
    return left, flexible


def naive(stream, columns, **options):
    schema, concepts = the_schema(columns), ontology(options.pop("tag"))
    twin = NaiveFlexible(schema, {"device": concepts.attribute("device")}, **options)
    left = dict(pair for record in stream for pair in twin.push(record))
    left |= dict(twin.flush())
    return left, twin


def plain(row):
    return {name: tuple(value.values()) if isinstance(value, dict) else value for name, value in row.items()}


options = st.fixed_dictionaries(
    {
        "k": st.integers(2, 4), "window": st.sampled_from([5, 13, 100]), "root": st.booleans(),
        "tag": st.sampled_from(["sparse", "normal", None]),
    },
    optional={
        "k_s": st.just(2), "density": st.just({"place": {"north": 3, "a": 5}}),
        "sparse": st.sampled_from([["device"], ["device", "network"], ["network", "place"]]),
        "unknown": st.just("refuse"),
        "density_from_data": st.sampled_from(
            [{"network": {"classes": [{"fewer_than": 3, "k": 6}]}},
             {"network": {"level": 1, "classes": [{"fewer_than": 3, "k": 7}, {"fewer_than": 5, "k": 5}]}}]
        ),
    },
)  # fmt: skip
COLUMNS = st.sampled_from(
    [["device", "place", "network", "speed"], ["place", "device", "network"], ["network", "place", "device"]]
)


@tries(80)
@given(streams, COLUMNS, options)
def test_decides_as_the_naive_one(stream, columns, chosen):
    got, flexible = compiled(stream, columns, **chosen)
    expected, twin = naive(stream, columns, **chosen)
    assert {row: plain(labels) for row, labels in got.items()} == expected
    if twin.sparse is not None:
        assert list(flexible.frozen.sparse) == twin.sparse
        assert flexible.frozen.k_s[chosen["k"]] == twin.k_s(chosen["k"])
    assert flexible.pending == len(twin.pending)


@tries(60)
@given(streams, COLUMNS, options)
def test_every_group_has_its_people(stream, columns, chosen):
    """The guarantee, counted naively."""
    got, flexible = compiled(stream, columns, **chosen)
    if flexible.frozen is None:
        assert not got
        return
    schema, place = the_schema(columns), chosen.get("density", {}).get("place", {})
    sparse = flexible.frozen.sparse
    blocks, labels, needed = {}, {}, {}
    for row, shown in got.items():
        shown = {name: str(value) for name, value in shown.items()}
        block = tuple(shown[role.name] for role in schema.quasi if role.name not in sparse)
        whole = tuple(shown.values())
        path = PLACES.path(stream[row]["place"]) if stream[row]["place"] in PLACES else ()
        k = next((place[label] for label in path if label in place), chosen["k"])
        needed[block] = max(needed.get(block, 0), k)
        blocks.setdefault(block, set()).add(stream[row]["maid"])
        labels.setdefault((block, whole), set()).add(stream[row]["maid"])
    for block, people in blocks.items():
        assert len(people) >= needed[block]
    for (block, _), people in labels.items():
        assert len(people) >= flexible.frozen.k_s[needed[block]]


FEW_SEEDS = (0, 1, 2, 7)
"""With every option of `crowded`."""


def crowded(seed):
    """Many people in few cells, some devices far more common than others: good splits, and parts that are too small."""
    random = np.random.default_rng(seed)
    size = int(random.integers(60, 140))
    people = int(random.integers(8, 40))
    shares = random.dirichlet(np.full(len(MODELS), 0.5))
    own = random.choice(MODELS, size=people, p=shares)
    own[: people // 6] = [f"x{number % 3}" for number in range(people // 6)]  # not in the ontology
    rows = []
    for person in random.integers(0, people, size).tolist():
        rows.append({
            "maid": f"u{person}", "device": str(own[person]),
            "place": str(random.choice(["a", "b", "c", "d", "e", "west"], p=[0.3, 0.2, 0.05, 0.25, 0.15, 0.05])),
            "network": str(random.choice(["2G", "3G", "4G", "5G"], p=[0.05, 0.25, 0.6, 0.1])),
            "speed": float(random.choice([3.0, 17.0, 33.0, 95.0])),
        })  # fmt: skip
    chosen = {"k": int(random.integers(2, 6)), "window": int(random.choice([40, 90, 500])), "root": bool(seed % 3 == 0),
              "tag": "sparse"}  # fmt: skip
    if seed % 4 == 1:
        chosen["density"] = {"place": {"north": 3, "south": 6}}
    if seed % 5 == 2:
        chosen |= {"sparse": ["device", "network"], "k_s": 2}
    return rows, chosen


@pytest.mark.parametrize("seed", some_by_default(range(20) if IS_COMPILED else FEW_SEEDS, FEW_SEEDS))
def test_decides_as_the_naive_one_with_many_people(seed):
    stream, chosen = crowded(seed)
    got, flexible = compiled(stream, ["device", "place", "network", "speed"], **chosen)
    expected, twin = naive(stream, ["device", "place", "network", "speed"], **chosen)
    assert {row: plain(labels) for row, labels in got.items()} == expected
    assert len({str(labels) for labels in expected.values()}) > 1 or len(twin.pending) == len(stream)
    assert flexible.pending == len(twin.pending)
    known = sorted(twin.groups.values())
    table = flexible._engine._decider.grouping.table
    assert sorted(table.groups.counts[: len(table)].tolist()) == known
