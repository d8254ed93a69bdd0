"""What least-loss makes of the same rows, measured with the flexible method's own measure of loss."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Schema
from shoal.hierarchies.ontology.tree import nested_tree
from shoal.pipeline.doctor.flexible import density_remarks, least_loss_baseline
from tests.methods.flexible.phones import devices, phones

KEY = b"0123456789abcdef"
PHONES = phones("S3", "S4", "G2", "P8", "6s", "SE")


def test_labels_of_several_properties_nest_in_one_tree():
    tree = nested_tree(devices(PHONES).attribute("device"))
    assert tree.path("S3") == ("S3", "Samsung", "Korea", "Android", "any device")
    assert tree.path("P8") == ("P8", "Android", "any device")  # brand and country cover this value alone
    assert tree.path("6s") == ("6s", "Apple", "any device")  # the system and the country cover the same values


def test_labels_that_do_not_nest_are_ignored():
    """A brand of two systems: classes come first, so the systems that cut through one have no place."""
    rows = [*PHONES, {"model": "S9", "brand": "Samsung", "os": "Tizen", "country": "Korea"}]
    rows += [{"model": "TV", "brand": "LG", "os": "Tizen", "country": "Korea"}]
    tree = nested_tree(devices(rows).attribute("device"))
    assert tree.path("S9") == ("S9", "Samsung", "Korea", "any device")
    assert "Tizen" not in tree.labels
    assert "Android" not in tree.labels


@pytest.mark.parametrize("seed", range(20))
def test_any_ontology_becomes_a_tree_of_true_labels(seed):
    random = np.random.default_rng(seed)
    rows = [{"model": f"m{n}", **{name: f"{name}{random.integers(4)}" for name in ("brand", "os", "country")}}
            for n in range(30)]  # fmt: skip
    concepts = devices(rows).attribute("device")
    tree = nested_tree(concepts)
    inner = {tree.labels[node] for node in set(tree.parents.tolist()) - {-1}}
    assert set(tree.labels) - inner == set(concepts.values)
    for value in concepts.values:
        for label in tree.path(value):
            assert concepts.subsumes(label, value)
    for label in inner - {concepts.root}:
        assert {value for value in concepts.values if label in tree.path(value)} == set(concepts.covered(label))


PLACES = Hierarchy.from_nested({"land": {"city": ["a", "b"], "edge": ["c", "d"]}})
START = datetime(2026, 3, 2, tzinfo=UTC)
SCHEMA = Schema(
    person="maid",
    quasi=[Categorical("place", PLACES, weight=2), Categorical("device"),
           Numeric("time", low="2026-03-02", high="2026-03-03", grid="1h")],
)  # fmt: skip


def table(rows):
    names = ("maid", "place", "device", "time")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns["time"] = pa.array([None if hour is None else START + timedelta(hours=hour) for hour in columns["time"]],
                               pa.timestamp("ms", tz="UTC"))  # fmt: skip
    return pa.table(columns)


def baseline(rows, **options):
    return least_loss_baseline(FlexibleK(SCHEMA, devices(PHONES), key=KEY, window=100, **options).settings, table(rows))


def test_equal_rows_lose_only_their_cell():
    found = baseline([(f"u{n}", "a", "S3", 5) for n in range(6)], k=3)
    assert (found.k, found.released, found.suppressed, found.at_root) == (3, 6, 0, 0.0)
    assert found.loss == 0.0


def test_labels_and_ranges_lose_their_share():
    """Two of four places, five of six devices, four hours of a day; weights 2, 1, 1."""
    found = baseline([("u1", "a", "S3", 0), ("u2", "b", "P8", 4)] * 2, k=2)
    expected = (2 * 1 / 3 + 3 / 5 + 4 / 24) / 4
    assert found.loss == pytest.approx(expected, abs=0.02)


def test_values_that_are_not_listed_lose_all():
    found = baseline([(f"u{n}", "a", f"x{n}", 0) for n in range(4)], k=4)
    assert (found.released, found.at_root) == (4, 1.0)
    assert found.loss == pytest.approx(1 / 4, abs=0.02)


def test_missing_values_lose_nothing_and_hidden_ones_all():
    missing = baseline([(f"u{n}", "a", None, 0) for n in range(4)], k=4)
    assert missing.loss == pytest.approx(0, abs=0.02)
    hidden = baseline([("u0", "a", "S3", 0), *((f"u{n}", "a", None, 0) for n in range(1, 4))], k=4)
    assert hidden.loss == pytest.approx(1 / 4 / 4, abs=0.02)  # one of four had a device, which counts a quarter
    assert hidden.at_root == 0.25


def test_a_suppressed_row_loses_all():
    found = baseline([("u1", "a", "S3", 0)] * 3, k=2)
    assert (found.released, found.suppressed, found.loss) == (0, 3, 1.0)


def test_density_asks_for_the_largest_k():
    assert baseline([(f"u{n}", "a", "S3", 5) for n in range(8)], k=3, density={"place": {"city": 7}}).k == 7


def test_cells_by_the_people_in_the_sample():
    """Nine people in the two places of the city, one in the village."""
    rule = {"level": 1, "classes": [{"fewer_than": 5, "k": 6}]}
    rows = table([(f"u{n}", "ab"[n % 2], "S3", 5) for n in range(9)] + [("v", "c", "S3", 5)])
    for window, level, words in (
        (10, "good", "counted in the first 10 rows: 1 with k = 6, 1 with k = 3"),
        (4, "look", "2 with k = 6; none has enough people for k = 3"),
    ):
        made = FlexibleK(SCHEMA, devices(PHONES), key=KEY, window=window, k=3, density_from_data={"place": rule})
        made.push_batch(rows)
        (found,) = density_remarks(made.settings, made.frozen.density, rows.num_rows)
        assert found.level == level
        assert words in found.sentence
