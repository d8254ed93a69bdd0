"""Worked examples of the papers on tuple streams, through the public interface."""

from __future__ import annotations

import pyarrow as pa
import pytest

import shoal
from shoal import Categorical, Fads, Fast, Hierarchy, IotAnonymization, KVarp, Numeric, Schema

KEY = bytes(32)
GENDER = Categorical("gender", Hierarchy.flat(["Male", "Female"], root="Gender"))
EDUCATION = Categorical(
    "education",
    Hierarchy.from_nested(
        {"Education": {"School": ["Primary", "Middle", "High", "Trade"], "University": ["Bachelor", "Master", "Ph.D"]}}
    ),
)


def publish(method, quasi, rows, **settings):
    """Push rows of different people; return the anonymizer, what left, and the trace of it."""
    made = method(Schema(person="id", quasi=quasi), key=KEY, **settings)
    release = made.push_batch(table_of(quasi, rows))
    return made, [vector_of(row) for row in release.rows.to_pylist()], release.trace.to_pylist()


def table_of(quasi, rows, first=0):
    columns = {"id": [f"t{first + number}" for number in range(len(rows))]}
    for role, values in zip(quasi, zip(*rows, strict=True), strict=True):
        columns[role.name] = pa.array(values, pa.int64() if isinstance(role, Numeric) else pa.string())
    return pa.table(columns)


def vector_of(row):
    return tuple((cell["lo"], cell["hi"]) if isinstance(cell, dict) else cell for cell in row.values())


# ---- the K-VARP paper


def test_table_1_information_loss():
    """Age [20-24], Gender, University: 0.458 by the paper's formula (its text divides leaves by leaves: 0.489)."""
    quasi = [Numeric("age", low=0, high=100), GENDER, EDUCATION]
    rows = [(20, "Male", "Bachelor"), (24, "Female", "Master"), (22, "Male", "Ph.D")]
    made, shown, _ = publish(KVarp, quasi, rows, k=3, deadline=2, reuse=0, alpha=0)
    assert shown == [((20, 24), "Gender", "University")] * 3
    assert made.metrics["loss"] == pytest.approx((4 / 100 + 1 / 1 + 2 / 6) / 3)
    assert made.metrics["cost"] == made.metrics["loss"]


def test_table_2_distance():
    """Height and weight are carried by one tuple each: the distance is over age, gender and education."""
    quasi = [
        Numeric("age", low=8, high=100), GENDER, EDUCATION, Numeric("height", low=120, high=200),
        Numeric("weight", low=30, high=120),
    ]  # fmt: skip
    first, other = (24, "Male", "Ph.D", None, 85), (20, "Female", "Bachelor", 162, None)
    apart = (4 / 92 + 1 / 1 + 2 / 6) / 3  # 0.459; 34 years and another gender are as far, nearly
    assert (34 / 92 + 1) / 3 < apart < (35 / 92 + 1) / 3
    for years, chosen in ((34, 2), (35, 1)):
        third = (24 + years, "Female", "Ph.D", 162, None)
        _, _, trace = publish(Fads, quasi, [first, other, third], k=2, deadline=2, reuse=0, missing="covered")
        assert {row["row"] for row in trace} == {0, chosen}


TABLE_3 = [(18, "Male", 168, 80), (20, "Male", 175, None), (19, None, 170, 74)]
QUASI = [
    Numeric("age", low=0, high=100), GENDER, Numeric("height", low=120, high=200), Numeric("weight", low=30, high=120),
]  # fmt: skip
AGE, HEIGHT, WEIGHT = (18, 20), (168, 175), (74, 80)
WHOLE = (AGE, "Male", HEIGHT, WEIGHT)


def publish_table_3(method, **settings):
    return publish(method, QUASI, TABLE_3, k=3, deadline=2, reuse=5, **settings)


def test_table_4_iot_anonymization_fills_in():
    """Male(3, 2) and [74-80](3, 2): three rows show them, two people carried them."""
    made, shown, trace = publish_table_3(IotAnonymization, missing="paper")
    assert shown == [WHOLE] * 3
    assert [row["carriers"] for row in trace] == [[3, 2, 3, 2]] * 3
    assert (made.metrics["merged"], made.metrics["formed"]) == (1, 1)
    # a merged cluster is not reused, not even by a tuple with everything in range
    release = made.push_batch(table_of(QUASI, [(18, "Male", 170, 75), (19, "Male", 171, 76)], first=3))
    assert release.rows.num_rows == 0
    assert [row["verdict"] for row in made.flush().trace.to_pylist()] == ["suppressed"] * 2


def test_table_5_k_varp_keeps_each_rows_nulls():
    made, shown, trace = publish_table_3(KVarp, missing="paper")
    shown = [vector for _, vector in sorted(zip([row["row"] for row in trace], shown, strict=True))]
    trace = sorted(trace, key=lambda row: row["row"])
    assert shown == [WHOLE, (AGE, "Male", HEIGHT, None), (AGE, None, HEIGHT, WEIGHT)]
    assert [row["carriers"] for row in trace] == [[3, 2, 3, 2]] * 3
    assert [row["delay"] for row in trace] == [2, 1, 0]
    # flexible reuse: by tuples that carry less, as long as it covers what they carry
    made.push_batch(table_of(QUASI, [(18, None, None, 75), (18, None, None, 81)], first=3))
    trace = sorted(made.flush().trace.to_pylist(), key=lambda row: row["row"])
    assert [(row["verdict"], row["group"], row["reused"]) for row in trace] == [
        ("released", 0, True),
        ("suppressed", None, None),
    ]


@pytest.mark.parametrize("method", [KVarp, IotAnonymization, Fads])
def test_table_3_without_telling_rows_apart(method):
    """Two of three people carry gender and weight: enough by default, not if all three must."""
    assert publish_table_3(method, missing="covered")[1] == [WHOLE] * 3
    assert publish_table_3(method, missing="covered", min_carriers=3)[1] == [(AGE, None, HEIGHT, None)] * 3
    assert publish_table_3(method, missing="hidden")[1] == [(AGE, None, HEIGHT, None)] * 3
    made = publish_table_3(method, missing="hidden")[0]
    assert made.metrics["loss_all"] == pytest.approx((0.02 + 1 + 7 / 80 + 1) / 4)


def test_the_order_of_merging_of_figure_3():
    """After the likest attributes, K-VARP takes the partition with more tuples near, IoT Anonymization the bigger."""
    quasi = [Numeric(name, low=0, high=100) for name in "xyz"]
    rows = [(50, 50, None)] + [(90, None, None)] * 3 + [(50, None, None)] * 2
    rows += [(None, 51, None)] * 4 + [(80, 80, 50)]
    settings = {"k": 4, "deadline": len(rows) - 1, "reuse": 0, "missing": "paper"}
    chosen = {
        method: sorted(row["row"] for row in publish(method, quasi, rows, **settings)[2])
        for method in (KVarp, IotAnonymization)
    }
    assert chosen == {KVarp: [0, 6, 7, 8], IotAnonymization: [0, 4, 5, 10]}


# ---- the FAST paper, section 4, as FADS decides it

PERSON = Categorical(
    "person",
    Hierarchy.from_nested(
        {"University-Person": {"Staff": ["Academic", "Non-Academic"], "Student": ["Bachelor", "Master", "PhD"]}}
    ),
)
PEOPLE = [Numeric("age", low=15, high=95), PERSON]


def test_the_nearest_are_published_together_and_one_stays():
    rows = [(22, "Bachelor"), (24, "Master"), (37, "Non-Academic")]
    made, shown, _ = publish(Fads, PEOPLE, rows, k=2, deadline=2, reuse=20)
    assert shown == [((22, 24), "Student")] * 2
    assert made.metrics["loss"] == pytest.approx((2 / 80 + 2 / 4) / 2)
    assert made.pending == 1
    assert [row["verdict"] for row in made.flush().trace.to_pylist()] == ["suppressed"]


def test_an_older_cluster_is_better_than_a_new_one():
    """[44-46] Staff loses less for (45, Academic) than the new [26-45] Staff; the others stay."""
    rows = [(44, "Academic"), (46, "Non-Academic"), (45, "Academic"), (26, "Non-Academic")]
    made, shown, trace = publish(Fads, PEOPLE, rows, k=2, deadline=1, reuse=20)
    assert shown == [((44, 46), "Staff")] * 3
    found = sorted((row["row"], row["group"], row["reused"]) for row in trace)
    assert found == [(0, 0, False), (1, 0, False), (2, 0, True)]
    assert made.pending == 1
    release = made.push_batch(table_of(PEOPLE, [(39, "PhD")], first=4))
    assert [vector_of(row) for row in release.rows.to_pylist()] == [((26, 39), "University-Person")] * 2


def test_equation_8_cost():
    """cost = loss * (1 + alpha) ** delay."""
    rows = [(22, "Bachelor"), (24, "Master"), (37, "Non-Academic")]
    made, _, _ = publish(Fads, PEOPLE, rows, k=2, deadline=2, reuse=20, alpha=0.5)
    loss = (2 / 80 + 2 / 4) / 2
    assert made.metrics["cost"] == pytest.approx(loss * (1.5**2 + 1.5**1) / 2)
    assert made.metrics["delay"] == 1.5


def test_an_example_continues_from_its_snapshot():
    made, _, _ = publish(Fads, PEOPLE, [(44, "Academic"), (46, "Non-Academic"), (45, "Academic")], k=2, deadline=1,
                         reuse=20)  # fmt: skip
    again = shoal.restore(made.snapshot(), key=KEY)
    assert [vector_of(row) for row in again.flush().rows.to_pylist()] == [((44, 46), "Staff")]


@pytest.mark.parametrize("threads", [1, 2])
def test_tables_1_and_2_as_fast_decides_them(threads):
    """id1 and id2 are published together, id3 at the root, id n by reuse, the last two in the next round."""
    settings = {"k": 2, "deadline": 1, "reuse": 20, "suppressed": "root", "threads": threads}
    rows = [(22, "Bachelor"), (24, "Master"), (37, "Non-Academic")]
    made, shown, _ = publish(Fast, PEOPLE, rows, **settings)
    assert shown == [((22, 24), "Student")] * 2
    assert [vector_of(row) for row in made.flush().rows.to_pylist()] == [((15, 95), "University-Person")]
    made.push_batch(table_of(PEOPLE, [(44, "Academic"), (46, "Non-Academic")], first=3))
    release = made.push_batch(table_of(PEOPLE, [(45, "Academic"), (26, "Non-Academic")], first=5))
    assert [vector_of(row) for row in release.rows.to_pylist()] == [((44, 46), "Staff")]
    assert [(row["row"], row["reused"]) for row in release.trace.to_pylist()] == [(5, True)]
    assert made.pending == 1
    release = made.push_batch(table_of(PEOPLE, [(39, "PhD")], first=7))
    assert [vector_of(row) for row in release.rows.to_pylist()] == [((26, 39), "University-Person")] * 2
