"""Flexible k-anonymity through its public interface: what is published, what stays pending, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Ontology, Schema, restore
from shoal.cli.app import app
from shoal.errors import CheckpointError, InputError, PolicyError
from shoal.methods.flexible.calibration import label_crowd
from shoal.policy import load_policy
from tests.methods.flexible.phones import devices, phones

KEY = b"0123456789abcdef"
PHONES = phones("M8", "S3", "P8", "G2", "6s", "Lumia")
ONTOLOGY = devices(PHONES)
PLACES = Hierarchy.from_nested({"land": {"centre": ["c1", "c2"], "village": ["v1", "v2"]}})
SCHEMA = Schema(person="maid", quasi=[Categorical("place", PLACES), Categorical("device")])


def run(rows, schema=SCHEMA, ontology=ONTOLOGY, **options):
    """Rows of (maid, place, device), then a flush."""
    made = FlexibleK(schema, ontology, key=KEY, **options)
    table = pa.Table.from_pylist([dict(zip(("maid", "place", "device"), row, strict=True)) for row in rows])
    releases = [made.push_batch(table), made.flush()]
    return [row for release in releases for row in release.rows.to_pylist()], made


def test_the_papers_example():
    """Six phones, K_s = 3: three equal ones are published unchanged, the other three by their system."""
    models = ["S3"] * 3 + ["M8", "P8", "G2"]
    rows, made = run([(f"u{n}", "c1", model) for n, model in enumerate(models)], k=6, p_sparse=0.5)
    assert [row["device"] for row in rows] == ["S3"] * 3 + ["Android"] * 3
    assert made.frozen.k_s == {6: 3}
    assert {row["place"] for row in rows} == {"c1"}


@pytest.mark.parametrize(
    ("share", "k", "expected"),
    [("0.5", 6, 3), ("0.3", 6, 2), ("0.3", 10, 3), ("0.04", 6, 6), ("0.05", 6, 2), ("1", 6, 6), ("0.1", 30, 3),
     ("0.34", 3, 2), ("0", 5, 5)],
)  # fmt: skip
def test_k_s_is_a_share_of_k(share, k, expected):
    assert label_crowd(Fraction(share), k, 0.05) == expected


def test_rows_of_too_few_people_wait_and_are_never_suppressed():
    rows, made = run([("u1", "c1", "G2")] * 20, k=2)
    assert rows == []
    assert made.counts == {"pushed": 20, "released": 0, "suppressed": 0, "dead": 0, "pending": 20}
    more = made.push_batch(pa.table({"maid": ["u2"], "place": ["c1"], "device": ["G2"]}))
    assert more.rows.num_rows == 0
    assert made.flush().rows.to_pylist() == [{"place": "c1", "device": "G2"}] * 21
    assert made.pending == 0


def test_rows_that_fit_a_published_group_are_published_at_once():
    _, made = run([(f"u{n}", "c1", "G2") for n in range(4)], k=3)
    again = made.push_batch(pa.table({"maid": ["u9", "u8"], "place": ["c1", "c2"], "device": ["G2", "G2"]}))
    assert again.rows.to_pylist() == [{"place": "c1", "device": "G2"}]
    assert again.trace.to_pylist()[0]["delay"] == 0


def test_a_root_label_is_published_only_where_allowed():
    apart = [("u1", "c1", "G2"), ("u2", "v1", "G2"), ("u3", "c1", "Lumia")]
    rows, made = run(apart, k=3, k_s=2)
    assert rows == []
    assert made.pending == 3
    rows, _ = run(apart, k=3, k_s=3, root=True)
    assert rows == [{"place": "land", "device": "any device"}] * 3


def test_density_sets_the_crowd():
    options = {"k": 2, "density": {"place": {"village": 4}}, "sparse": ["device"], "k_s": 2}
    rows, made = run([(f"u{n}", "v1", "G2") for n in range(3)], **options)
    assert rows == []
    rows, made = run([(f"u{n}", "v1", "G2") for n in range(4)], **options)
    assert len(rows) == 4
    assert {row["k"] for row in made.flush().trace.to_pylist()} == set()


def test_density_of_a_value_in_several_classes():
    """Of two equally near classes the larger crowd applies; a nearer class takes precedence."""
    rows = [{"model": "Fold", "kind": "phone"}, {"model": "Fold", "kind": "tablet"}]
    rows += [{"model": "S3", "kind": "phone"}, {"model": "Tab", "kind": "tablet"}]
    both = Ontology.from_table(rows, value="model", is_a=["kind"], attribute="device", tag="normal")
    for density, needed in (
        ({"phone": 2, "tablet": 5}, 5),
        ({"phone": 5, "tablet": 2}, 5),
        ({"tablet": 5, "Fold": 3}, 3),
    ):
        for people in (needed - 1, needed):
            released, _ = run(
                [(f"u{n}", "c1", "Fold") for n in range(people)], ontology=both, k=2, density={"device": density}
            )
            assert len(released) == (people if people == needed else 0)


def test_density_of_a_sparse_column_gives_every_block_the_largest_k():
    options = {"k": 2, "k_s": 2, "density": {"device": {"Apple": 4}}}
    for people, leaves in ((3, 0), (4, 4)):
        rows, _ = run([(f"u{n}", "c1", "G2") for n in range(people)], **options)
        assert len(rows) == leaves


def test_one_row_with_a_larger_k_does_not_delay_the_others():
    tree = Hierarchy.from_nested({"land": {"all": ["c1", "v1"]}})
    schema = Schema(person="maid", quasi=[Categorical("place", tree), Categorical("device")])
    rows = [("u1", "c1", "G2"), ("u2", "c1", "G2"), ("u3", "v1", "G2")]
    left, made = run(rows, schema=schema, k=2, k_s=2, density={"place": {"v1": 9}})
    assert [row["place"] for row in left] == ["c1", "c1"]
    assert made.pending == 1
    only_above = [("u1", "c1", "G2"), ("u2", "c1", "Lumia"), ("u3", "v1", "Lumia"), ("u1", "c1", "Lumia")]
    left, made = run(only_above, schema=schema, k=2, k_s=2, density={"place": {"v1": 9}})
    assert [row["device"] for row in left] == ["Lumia", "Lumia"]
    assert made.pending == 2


def test_rows_join_a_published_label():
    first = [("u1", "c1", "M8"), ("u2", "c1", "G2"), ("u3", "c1", "P8")]
    rows, made = run(first, k=3, k_s=2)
    assert [row["device"] for row in rows] == ["Android"] * 3
    later = [("u4", "c1", "Lumia"), ("u5", "c1", "6s"), ("u6", "c1", "S3")]
    made.push_batch(pa.Table.from_pylist([dict(zip(("maid", "place", "device"), row, strict=True)) for row in later]))
    assert made.flush().rows.to_pylist() == [{"place": "c1", "device": "Android"}]
    assert made.pending == 2


def test_missing_values_are_grouped_separately():
    rows, made = run(
        [("u1", None, "G2"), ("u2", None, "G2"), ("u3", "c1", None), ("u4", "c1", None), ("u5", "c1", "G2")],
        k=2, k_s=2,
    )  # fmt: skip
    rows.sort(key=str)
    assert rows == [{"place": "c1", "device": None}] * 2 + [{"place": None, "device": "G2"}] * 2
    assert made.pending == 1


def test_moments_are_published_in_hours_and_days():
    schema = Schema(
        person="maid", time="when", quasi=[Numeric("when", low="2026-03-01", high="2026-03-29"), Categorical("device")]
    )
    when = [datetime(2026, 3, 2, 9, minute, tzinfo=UTC) for minute in (5, 15, 25, 59)]
    when += [datetime(2026, 3, 4, hour, tzinfo=UTC) for hour in (0, 7, 16, 23)]
    table = pa.table({"maid": [f"u{n}" for n in range(8)], "when": when, "device": ["G2"] * 8})
    made = FlexibleK(schema, ONTOLOGY, k=4, key=KEY)
    made.push_batch(table)
    spans = sorted((row["when"]["lo"], row["when"]["hi"]) for row in made.flush().rows.to_pylist())
    assert spans[0] == (datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 10, tzinfo=UTC))
    assert spans[4] == (datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC))


def test_the_loss_is_reported_by_column():
    """Half of the places lose one of two cells; the device, with three times the weight, loses nothing."""
    schema = Schema(person="maid", quasi=[Categorical("place", PLACES), Categorical("device", weight=3.0)])
    table = pa.table({"maid": list("abcd"), "place": ["c1", "c2", "v1", "v1"], "device": ["G2"] * 4})
    made = FlexibleK(schema, ONTOLOGY, k=2, k_s=2, key=KEY)
    made.push_batch(table)
    rows = made.flush().rows.to_pylist()
    loss = {"centre": 1 / 3, "v1": 0.0}  # one of three other cells
    expected = sum(loss[row["place"]] for row in rows) / len(rows)
    assert expected > 0
    assert made.metrics["loss_place"] == pytest.approx(expected)
    assert made.metrics["loss_device"] == 0
    assert made.metrics["loss"] == pytest.approx(expected / 4)
    again = restore(made.snapshot(), key=KEY)
    assert again.metrics == made.metrics


def test_a_label_with_a_single_child_is_not_published():
    """ "fixed" and "Wi-Fi" mean the same, so only the finer one is published."""
    networks = Hierarchy.from_nested({"any": {"mobile": ["3G", "4G"], "fixed": ["Wi-Fi"]}})
    schema = Schema(person="maid", quasi=[Categorical("network", networks), Categorical("place", PLACES)])
    places, own = ["c1", "c2", "v1", "v2"], ["3G", "4G", "Wi-Fi", "Wi-Fi"]
    table = pa.table({
        "maid": [f"u{n}" for n in range(48)], "place": [places[n % 4] for n in range(48)],
        "network": [own[n // 4 % 4] for n in range(48)],
    })  # fmt: skip
    for k in (2, 5, 11):
        made = FlexibleK(schema, None, k=k, key=KEY)
        made.push_batch(table)
        labels = set(made.flush().rows.column("network").to_pylist())
        assert "Wi-Fi" in labels
        assert "fixed" not in labels


def test_whole_numbers_lie_in_one_cell_only():
    schema = Schema(person="maid", quasi=[Numeric("speed", low=0, high=100, grid=25), Categorical("device")])
    speeds = [0, 24, 25, 49, 99, 100]
    table = pa.table({"maid": [f"u{n}" for n in range(6)], "speed": speeds, "device": ["G2"] * 6})
    made = FlexibleK(schema, ONTOLOGY, k=2, key=KEY)
    made.push_batch(table)
    spans = sorted(tuple(row["speed"].values()) for row in made.flush().rows.to_pylist())
    assert spans == [(0, 24), (0, 24), (25, 49), (25, 49), (75, 100), (75, 100)]


def test_values_at_rough_grid_ends_lie_within_the_published_range():
    schema = Schema(person="maid", quasi=[Numeric("speed", low=0.1, high=7.3, grid=0.1), Categorical("device")])
    speeds = np.repeat(0.1 + 0.1 * np.arange(73), 3)
    table = pa.table({"maid": [f"u{n}" for n in range(219)], "speed": speeds, "device": ["G2"] * 219})
    made = FlexibleK(schema, ONTOLOGY, k=3, key=KEY)
    released = made.push_batch(table), made.flush()
    for release in released:
        for row, one in zip(release.trace.to_pylist(), release.rows.to_pylist(), strict=True):
            assert one["speed"]["lo"] <= speeds[row["row"]] <= one["speed"]["hi"]
    assert made.pending == 0


@pytest.mark.parametrize(
    ("low", "high", "grid"),
    [(-20.0, -19.2, 0.1), (-20.0, -19.4, 0.3), (-20.0, -17.3333333333, 1 / 3), (0.3, 1.1, 0.1), (-1e9, 0.2 - 1e9, 0.1)],
)
def test_a_domain_of_nearly_whole_steps_is_not_published_whole(low, high, grid):
    schema = Schema(person="maid", quasi=[Numeric("x", low=low, high=high, grid=grid)])
    made = FlexibleK(schema, None, k=6, key=KEY)
    values = [low, low + grid, high, high, high - grid / 2, (low + high) / 2]
    release = made.push_batch(pa.table({"maid": list("abcdef"), "x": values}))
    assert release.rows.num_rows + made.flush().rows.num_rows == 0
    made.push_batch(pa.table({"maid": [f"n{n}" for n in range(6)], "x": [high] * 6}))
    shown = {tuple(row["x"].values()) for row in made.flush().rows.to_pylist()}
    assert (low, high) not in shown
    assert all(lo < hi == high for lo, hi in shown)  # nor is anyone's value shown as a cell without width


def test_k_s_has_no_effect_without_sparse_columns():
    schema = Schema(person="maid", quasi=[Categorical("place", PLACES)])
    made = FlexibleK(schema, None, k=4, k_s=2, threshold=1, key=KEY)
    made.push_batch(pa.table({"maid": list("abcd"), "place": ["c1"] * 4}))
    assert {row["k_s"] for row in made.flush().trace.to_pylist()} == {4}


def test_rows_of_a_round_are_not_in_arrival_order():
    schema = Schema(person="maid", carry=["n"], quasi=[Categorical("place", PLACES)])
    table = pa.table({
        "maid": [f"u{n}" for n in range(40)], "place": [("c1", "c2")[n % 2] for n in range(40)], "n": list(range(40)),
    })  # fmt: skip
    orders = []
    for key in (KEY, KEY, b"another key, also 16 or more"):
        made = FlexibleK(schema, None, k=4, key=key, threshold=1)
        made.push_batch(table)
        last = made.flush()
        rows = last.rows.to_pylist()
        assert [row["n"] for row in rows] == last.trace.column("row").to_pylist()
        groups = last.trace.column("group").to_pylist()
        assert groups == sorted(groups)
        assert all(row["place"] == ("c1", "c2")[row["n"] % 2] for row in rows)
        orders.append([row["n"] for row in rows])
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0], key=lambda n: (n % 2, n))
    assert sorted(orders[0]) == list(range(40))


def test_decimals_are_read_alike_in_batches_and_single_records():
    schema = Schema(person="maid", quasi=[Numeric("x", low=0.3, high=0.7, grid=0.1)])
    table = pa.table({"maid": list("abcdef"), "x": pa.array([Decimal(n) / 10 for n in (3, 3, 3, 7, 7, 7)])})
    together, alone = (FlexibleK(schema, None, k=3, key=KEY) for _ in range(2))
    together.push_batch(table)
    for record in table.to_pylist():
        alone.push(record)
    assert together.counts == alone.counts
    rows = together.flush().rows
    assert rows == alone.flush().rows
    assert rows.num_rows == 6  # the ends belong to the domain


def test_unusable_records_are_dead_with_a_reason():
    rows = [("u1", "c1", "typewriter"), (None, "c1", "G2"), ("u2", "nowhere", "G2"), ("u3", "c1", "Samsung")]
    _, made = run(rows, unknown="refuse")
    assert made.counts["dead"] == 4
    reasons = {name: count for name, count in made.counts.items() if ":" in name or "-" in name}
    assert reasons == {"unknown:device": 2, "unknown:place": 1, "null-person": 1}
    assert "ontology check" in made.explain("unknown:device").sentence
    assert "hierarchy" in made.explain("unknown:place").sentence


def test_unlisted_values_are_published_as_unknown():
    rows = [("u1", "c1", "typewriter"), ("u2", "c1", "Samsung"), ("u3", "c1", ""), ("u4", "c1", "G2")]
    left, made = run(rows, k=3, k_s=3)
    assert left == [{"place": "c1", "device": "unknown"}] * 3
    assert made.counts == {"pushed": 4, "released": 3, "suppressed": 0, "dead": 0, "pending": 1}
    assert made.metrics["unknown_device"] == 3
    assert made.metrics["loss"] == 0.5  # nothing is left of the device, all of the place


def test_too_few_people_with_unlisted_values_stay_pending():
    """One of K_s = 2 stays pending: no label but the root covers both a listed value and one that is not listed."""
    rows = [("u1", "c1", "typewriter"), *((f"u{n}", "c1", "G2") for n in range(2, 6))]
    left, made = run(rows, k=3, k_s=2)
    assert [row["device"] for row in left] == ["G2"] * 4
    assert made.pending == 1
    more = made.push_batch(pa.table({"maid": ["u9"], "place": ["c1"], "device": ["telegraph"]}))
    assert more.rows.num_rows == 0
    assert made.flush().rows.to_pylist() == [{"place": "c1", "device": "unknown"}] * 2
    joins = made.push({"maid": "u7", "place": "c1", "device": "a third one"})
    assert joins == [{"place": "c1", "device": "unknown"}]


def test_listed_and_unlisted_values_meet_at_the_root_alone():
    rows = [("u1", "c1", "typewriter"), ("u2", "c1", "G2"), ("u3", "c1", "Lumia")]
    assert run(rows, k=3, k_s=3)[0] == []
    assert run(rows, k=3, k_s=3, root=True)[0] == [{"place": "c1", "device": "any device"}] * 3
    places = [("u1", "nowhere", "G2"), ("u2", "c1", "G2"), ("u3", "v1", "G2")]
    assert run(places, k=3, k_s=2)[0] == []
    assert run(places, k=3, k_s=2, root=True)[0] == [{"place": "land", "device": "G2"}] * 3


@pytest.mark.parametrize(("density", "needed"), [({"village": 4}, 2), ({"land": 4}, 4), ({"unknown": 3, "land": 5}, 3)])
def test_density_of_an_unlisted_value(density, needed):
    """The nearest label above it applies: its own or the root."""
    if "unknown" in density:
        with pytest.raises(PolicyError, match="no label"):
            run([], k=2, k_s=2, density={"place": density}, unknown="refuse")
    for people in (needed - 1, needed):
        rows = [(f"u{n}", f"nowhere {n}", "G2") for n in range(people)]
        left, _ = run(rows, k=2, k_s=2, density={"place": density})
        assert [row["place"] for row in left] == ["unknown"] * (people if people == needed else 0)


def test_a_tree_of_one_label_has_no_room_for_others():
    schema = Schema(person="maid", quasi=[Categorical("place", Hierarchy.from_nested({"here": None})),
                                          Categorical("device")])  # fmt: skip
    rows = [(f"u{n}", "here", "G2") for n in range(3)]
    left, made = run([*rows, ("u9", "there", "G2")], schema=schema, k=3)
    assert [row["place"] for row in left] == ["here"] * 3
    assert made.counts["unknown:place"] == 1


def test_unlisted_values_are_read_alike_in_all_types():
    whole = Ontology.from_table([{"model": str(n), "os": "A"} for n in range(3)], value="model", properties=["os"],
                                attribute="device", tag="sparse")  # fmt: skip
    values = [0, 0, 7, 8, 7, None]
    columns = [pa.array(values), pa.array([None if v is None else str(v) for v in values])]
    columns += [columns[1].dictionary_encode(), columns[1].cast(pa.large_string())]
    found = []
    for column in columns:
        made = FlexibleK(SCHEMA, whole, key=KEY, k=2)
        made.push_batch(pa.table({"maid": list("abcdef"), "place": ["c1"] * 6, "device": column}))
        found.append((made.flush().rows.to_pylist(), made.frozen, made.metrics))
    made = FlexibleK(SCHEMA, whole, key=KEY, k=2)
    for maid, value in zip("abcdef", values, strict=True):
        made.push({"maid": maid, "place": "c1", "device": value})
    found.append((made.flush().rows.to_pylist(), made.frozen, made.metrics))
    assert all(one == found[0] for one in found)
    assert found[0][1].shares["device"] == pytest.approx(2 / 6)  # the 8 and the missing value have one person each
    assert [row["device"] for row in found[0][0]].count("unknown") == 3


def test_without_a_sparse_column_it_is_k_anonymity():
    normal = Ontology.from_table(PHONES, value="model", is_a=["brand"], tag="normal", attribute="device")
    rows, made = run([(f"u{n}", "c1", "G2") for n in range(3)], ontology=normal, k=3)
    assert made.frozen.sparse == ()
    assert len(rows) == 3


def test_sparsity_is_measured_where_the_ontology_has_no_tag():
    silent = Ontology.from_table(PHONES, value="model", is_a=["brand"], properties=["os"], attribute="device")
    many = [(f"u{n}", "c1", "G2") for n in range(20)]
    _, made = run([*many, ("u20", "c1", "Lumia")], ontology=silent, k=3)
    assert made.frozen.sparse == ()
    _, made = run([*many, ("u20", "c1", "Lumia"), ("u21", "c1", "M8"), ("u22", "c1", "6s")],
                  ontology=silent, k=3)  # fmt: skip
    assert made.frozen.sparse == ("device",)
    assert made.frozen.shares["device"] == pytest.approx(3 / 23)


def test_the_calibration_stays_fixed():
    _, made = run([(f"u{n}", "c1", PHONES[n % 6]["model"]) for n in range(6)], k=3)
    before = made.frozen
    assert before.k_s == {3: 3}
    flood = pa.table({"maid": [f"x{n}" for n in range(100)], "place": ["c1"] * 100, "device": ["G2"] * 100})
    made.push_batch(flood)
    made.flush()
    assert made.frozen == before


def test_a_snapshot_restores_everything():
    _, made = run([(f"u{n}", "c1", PHONES[n % 6]["model"]) for n in range(7)], k=3)
    back = restore(made.snapshot(), KEY)
    more = pa.table({"maid": ["u8", "u9"], "place": ["c2", "c1"], "device": ["G2", "Lumia"]})
    assert back.push_batch(more).rows == made.push_batch(more).rows
    assert back.flush().rows == made.flush().rows
    assert back.metrics == made.metrics
    other = FlexibleK(SCHEMA, ONTOLOGY, k=4, key=KEY)
    with pytest.raises(CheckpointError, match="other parameters"):
        other.restore(made.snapshot())


def test_the_loss_of_a_label_is_its_share_of_the_values():
    rows = [(f"u{n}", "c1", "G2") for n in range(4)] + [("v1", "c1", "M8"), ("v2", "c1", "P8")]
    _, made = run(rows, k=4, k_s=2)
    assert made.metrics["loss"] == pytest.approx(2 * 0.5 * (3 / 5) / 6, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 1}, "k: must be at least 2"),
        ({"k_s": 9}, "k_s: must be at most k, which is 6"),
        ({"k": 2_000_000_000}, "k: must be at most 1000000"),
        ({"density": {"place": {"centre": 2_000_000_000}}}, r"density\.place\.centre: must be at most 1000000"),
        ({"p_sparse": 1.5}, "p_sparse: must be at most 1"),
        ({"p_sparse": 0.5, "k_s": 2}, "leave one of them out"),
        ({"sparse": ["speed"]}, "names of categorical"),
        ({"sparse": ["device", "place"]}, "leaves no normal"),
        ({"window": 0}, "window: must be"),
        ({"density": {"place": {"moon": 3}}}, "no label 'moon'"),
        ({"density": {"place": {"village": 1}}}, r"density\.place\.village: must be at least 2"),
        ({"density": {"speed": {"village": 3}}}, "must be a categorical"),
        ({"density": 3}, "density: must be a table"),
        ({"root": 1}, "root: must be true or false"),
    ],
)
def test_wrong_parameters_are_reported(options, words):
    with pytest.raises(PolicyError, match=words):
        FlexibleK(SCHEMA, ONTOLOGY, key=KEY, **options)


def test_a_column_needs_a_hierarchy_or_an_ontology():
    with pytest.raises(PolicyError, match="column 'device': has neither"):
        FlexibleK(SCHEMA, None, key=KEY)
    with pytest.raises(PolicyError, match="no column uses it"):
        FlexibleK(Schema(person="maid", quasi=[Categorical("place", PLACES)]), ONTOLOGY, key=KEY)
    with pytest.raises(PolicyError, match="no categorical column 'phone'"):
        FlexibleK(SCHEMA, {"device": ONTOLOGY, "phone": ONTOLOGY}, key=KEY)
    with pytest.raises(PolicyError, match=r"must be a shoal\.Schema"):
        FlexibleK("schema", ONTOLOGY, key=KEY)


def test_an_unusable_type_is_reported_with_its_column():
    made = FlexibleK(SCHEMA, ONTOLOGY, key=KEY)
    with pytest.raises(InputError, match="column 'device'"):
        made.push_batch(pa.table({"maid": ["a"], "place": ["c1"], "device": [1.5]}))
    with pytest.raises(InputError, match="column 'maid'"):
        made.push_batch(pa.table({"maid": [1.5], "place": ["c1"], "device": ["G2"]}))


@pytest.mark.parametrize(("lines", "code"), [([], 0), ([",c1"] * 3, 3)])
def test_a_run_without_usable_records_is_reported(tmp_path, monkeypatch, capsys, lines, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("\n".join(["maid,place", *lines, ""]))
    (tmp_path / "p.toml").write_text("""
source = { kind = "csv", path = "in.csv" }
sink = { kind = "csv", path = "out.csv" }
stream = { person = "maid" }
[anonymize]
method = "flexible-k"
quasi.place = { kind = "categorical", hierarchy = { kind = "nested", tree = { land = ["c1", "c2"] } } }
""")
    assert app(["run", "p.toml"], result_action="return_value") == code
    assert "average loss" in capsys.readouterr().out


def test_the_doctor_and_a_run_count_unlisted_values(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.csv").write_text("model,os\nS3,Android\nP8,Android\n")
    lines = [f"u{n},{'c1' if n % 4 else 'nowhere'},{'S3' if n % 5 else f'secret model {n}'}" for n in range(40)]
    (tmp_path / "in.csv").write_text("\n".join(["maid,place,device", *lines, ""]))
    (tmp_path / "p.toml").write_text(
        """
source = { kind = "csv", path = "in.csv" }
sink = { kind = "csv", path = "out.csv" }
stream = { person = "maid" }
[anonymize]
method = "flexible-k"
k = 4
compare = false
quasi.place = { kind = "categorical", hierarchy = { kind = "flat", values = ["c1", "c2"] } }
quasi.device = { kind = "ontology", ontology = { kind = "table", path = "models.csv", value = "model", properties = \
["os"], tag = "sparse" } }
""".replace("\\\n", "")
    )
    app(["doctor", "p.toml"], result_action="return_value")
    printed = " ".join(capsys.readouterr().out.split())
    assert "column 'place': 10 rows (25.0%) have a value that the hierarchy does not list" in printed
    assert "column 'device': 8 rows (20.0%) have a value that the ontology does not list" in printed
    assert "shoal ontology check` with --values and --column device" in printed
    assert "secret model" not in printed
    assert app(["run", "p.toml"], result_action="return_value") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "unlisted 8 values of column 'device', published as \"unknown\" or pending" in printed
    published = (tmp_path / "out.csv").read_text()
    assert "secret model" not in published
    assert "unknown" in published
    assert not (tmp_path / "dead.jsonl").exists()


@pytest.mark.parametrize("sparse", ["5", '["place", "place"]', "[1]"])
def test_a_wrong_list_of_sparse_columns_is_reported_in_a_sentence(tmp_path, sparse):
    (tmp_path / "p.toml").write_text(f"""
source = {{ kind = "csv", path = "in.csv" }}
sink = {{ kind = "csv", path = "out.csv" }}
stream = {{ person = "maid" }}
[anonymize]
method = "flexible-k"
sparse = {sparse}
quasi.place = {{ kind = "categorical", hierarchy = {{ kind = "nested", tree = {{ land = ["c1", "c2"] }} }} }}
quasi.other = {{ kind = "categorical", hierarchy = {{ kind = "nested", tree = {{ land = ["c1", "c2"] }} }} }}
""")
    with pytest.raises(PolicyError) as error:
        load_policy(tmp_path / "p.toml")
    assert str(error.value).splitlines() == ['[anonymize] sparse: must be "auto" or different names of columns']


def test_a_block_needs_the_largest_k_of_any_value_under_its_label():
    """Later rows of other density classes must not find a block, or a label in it, with too few people for them."""
    tree = Hierarchy.from_nested({"land": {"all": ["c1", "v1"]}})
    schema = Schema(person="maid", quasi=[Categorical("place", tree), Categorical("device")])
    options = {"schema": schema, "k": 2, "p_sparse": 0.5, "density": {"place": {"v1": 6}}}
    rows, made = run([("u1", "c1", "G2"), ("u2", "c1", "G2"), ("u3", "c1", "Lumia")], **options)
    assert {row["place"] for row in rows} == {"c1"}
    assert made.pending == 1  # "all" covers v1, so it needs six people
    assert made.frozen.k_s == {2: 2, 6: 3}
