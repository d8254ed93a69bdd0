"""Decoys: enough of them, like real records, and no copy of one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.decoys import NORMALS, PlainMemory, attack, campaign, with_decoys

from shoal.crypto.keys import Secret
from shoal.sanitize.decoys.cells import Normal, decimals_of, group, shifted
from shoal.sanitize.decoys.decoys import DecoyMaker
from shoal.sanitize.pii import as_names
from shoal.sanitize.tags import as_blocks
from tests.reference.effort import IS_EXHAUSTIVE

SECRET = Secret(b"a key of sixteen bytes")


def make(data, who, normals, *, k=4, blend=True, seed=1, memory=None, large=()):
    draw = np.random.default_rng(seed)
    maker = DecoyMaker(normals, k=k, key=lambda purpose: SECRET.subkey(purpose), draw=draw, blend=blend)
    persons = as_blocks(np.random.default_rng(7).bytes(16 * (max(who, default=0) + 1)))[np.array(who, dtype=int)]
    return maker.make(
        persons,
        persons,
        data,
        memory or PlainMemory(data.schema),
        lambda names: np.isin(names, np.array(large, np.int64)),
    )


def people_by_group(data, ids, normals):
    found = defaultdict(set)
    for number, person in zip(group(b"k" * 16, data, normals).of.tolist(), ids.tolist(), strict=True):
        found[number].add(person)
    return found


@pytest.mark.parametrize("blend", [True, False])
@pytest.mark.parametrize("batches", [1, 3])
def test_every_group_has_k_people(blend, batches):
    table, who = campaign(60, 900, seed=3)
    data, ids, _, is_real = with_decoys(table, who, NORMALS, k=5, blend=blend, batches=batches, seed=3)
    assert min(map(len, people_by_group(data, ids, NORMALS).values())) >= 5
    assert is_real.sum() == 900
    if blend:
        assert len(is_real) == 5 * 900
    else:
        assert len(is_real) < 5 * 900


def test_a_group_that_is_large_needs_none():
    data = pa.table({"place": ["a"] * 4 + ["b"], "x": [1.5, 2.5, 3.5, 4.5, 5.5]})
    normals = [Normal("place")]
    made = make(data, [0, 1, 2, 3, 0], normals, blend=False)
    assert made.data.column("place").to_pylist() == ["b"] * 3
    assert len(set(as_names(made.persons).tolist())) == 3
    again = make(data, [0, 1, 2, 3, 0], normals, blend=False, large=made.groups.tolist())
    assert again.data.num_rows == 0


def test_a_group_with_some_people_gets_the_rest():
    data = pa.table({"place": ["a"] * 3, "x": [1.5, 2.5, 3.5]})
    made = make(data, [0, 1, 1], [Normal("place")], k=5, blend=False)
    people = as_names(made.persons).tolist()
    assert len(set(people)) == 3
    assert len(set(people) & set(as_names(as_blocks(np.random.default_rng(7).bytes(32))).tolist())) == 0


def test_decoys_recur_as_their_people_do():
    table, who = campaign(80, 2000, seed=5)
    _, ids, owners, is_real = with_decoys(table, who, NORMALS, k=4, blend=True, batches=4, seed=5)
    real = np.bincount(owners[is_real], minlength=80)
    shadows, counts = np.unique(ids[~is_real], return_counts=True)
    assert len(shadows) == 3 * (real > 0).sum()
    assert sorted(counts.tolist()) == sorted(np.repeat(real[real > 0], 3).tolist())


def test_what_stays_with_a_person_stays_with_a_decoy_over_batches():
    table, who = campaign(80, 2000, seed=5)
    data, ids, _, is_real = with_decoys(table, who, NORMALS, k=4, blend=True, batches=4, seed=5)
    devices = defaultdict(set)
    for person, device in zip(
        ids[~is_real].tolist(), data.filter(pa.array(~is_real)).column("device").to_pylist(), strict=True
    ):
        devices[person].add(device)
    assert max(map(len, devices.values())) == 1


def test_no_decoy_equals_a_real_record():
    table, who = campaign(60, 1500, seed=3)
    data, _, _, is_real = with_decoys(table, who, NORMALS, k=5, blend=True, batches=2, seed=3)
    rows = list(zip(*(column.to_pylist() for column in data.columns), strict=True))
    real = {row for row, own in zip(rows, is_real, strict=True) if own}
    assert not any(row in real for row, own in zip(rows, is_real, strict=True) if not own)


def test_twins_are_changed_where_something_can_be_changed():
    same = pa.table({"place": ["a"] * 30, "x": list(range(1000, 4000, 100))})
    assert make(same, list(range(30)), [Normal("place")]).twins == 0
    none = pa.table({"place": ["a"] * 6, "device": ["m"] * 6})
    assert make(none, list(range(6)), [Normal("place")]).twins == 18  # nothing but the ids differs


def test_columns_of_a_decoy_come_from_one_record():
    """Pairs that no real record has would tell."""
    draw = np.random.default_rng(1)
    first = draw.integers(0, 50, 400)
    data = pa.table({"place": [f"p{at % 3}" for at in range(400)], "a": first, "b": [f"b{value}" for value in first]})
    data = data.set_column(1, "a", pa.array([f"a{value}" for value in first]))
    made = make(data, (np.arange(400) % 40).tolist(), [Normal("place")])
    assert all(a[1:] == b[1:] for a, b in zip(made.data["a"].to_pylist(), made.data["b"].to_pylist(), strict=True))


def test_missing_values_and_one_person_alone():
    data = pa.table({
        "time": pa.array([None, 10**9, 5 * 10**9], pa.timestamp("ns", "UTC")), "place": ["a", None, "a"],
        "x": pa.array([1.5, None, 2.5]), "n": pa.array([None, None, None], pa.int64()), "b": [True, None, False],
    })  # fmt: skip
    made = make(data, [0, 0, 0], [Normal("time", grid=3600.0), Normal("place")], k=3)
    assert made.data.num_rows == 6
    assert made.data.schema == data.schema
    assert sorted(map(str, made.data["place"].to_pylist())) == ["None", "None", "a", "a", "a", "a"]
    assert made.data["time"].null_count == 2


def test_numbers_stay_in_their_cell_and_keep_their_decimals():
    kind = pa.float64()
    draw = np.random.default_rng(1)
    values = np.round(draw.uniform(-5, 5, 1000), 2)
    moved = shifted(values, kind, Normal("x", low=-5.0, grid=0.5), draw.uniform(0, 3, 1000))
    assert np.array_equal(np.floor((moved + 5) / 0.5), np.floor((values + 5) / 0.5))
    assert (moved != values).mean() > 0.9
    assert decimals_of(moved) == 2
    assert decimals_of(np.array([1 / 3])) is None


# ---- the attack itself


def test_decoys_are_hard_to_tell_and_bad_ones_are_not():
    people, records = (300, 6000) if IS_EXHAUSTIVE else (120, 2400)
    table, who = campaign(people, records, seed=4)
    data, ids, owners, is_real = with_decoys(table, who, NORMALS, k=3, blend=True, batches=2, seed=4)
    found = attack(data, ids, owners, is_real, NORMALS, drawn=50)
    assert found["interval"][0] < 0.6
    devices = np.array(data["device"].to_pylist())
    drawn = np.where(is_real, devices, np.random.default_rng(1).permutation(devices))
    at = data.schema.get_field_index("device")
    marginal = data.set_column(at, "device", pa.array(drawn.tolist()))  # drawn by itself, as decoys must not be
    assert attack(marginal, ids, owners, is_real, NORMALS, drawn=20)["auc"] > 0.9


# ---- what would tell without any training


def hourly(offset, speed, *, people=40, hours=12):
    """Records of people who come every hour: `offset` gives the second of the hour, `speed` the number."""
    draw = np.random.default_rng(3)
    pairs = [(person, hour) for hour in range(hours) for person in range(people)]
    seconds = [hour * 3600 + offset(draw, person) for person, hour in pairs]
    data = pa.table({
        "time": pa.array(np.array(seconds) * 10**9).cast(pa.timestamp("ns", "UTC")),
        "place": [f"place {person % 4}" for person, _ in pairs],
        "speed": pa.array([speed(draw, person) for person, _ in pairs], pa.float64()),
    })  # fmt: skip
    return data, [person for person, _ in pairs]


HOURLY = [Normal("time", grid=3600.0), Normal("place")]


def within_hour(data):
    return data.column("time").cast(pa.int64()).to_numpy() // 10**9 % 3600


def steadiness(seconds, ids):
    """How near to one minute everybody comes, 0 to 1."""
    _, of = np.unique(ids, return_inverse=True)
    turned = np.exp(2j * np.pi * seconds / 3600)
    return np.abs(np.bincount(of, turned.real) + 1j * np.bincount(of, turned.imag)) / np.bincount(of)


def test_who_comes_at_the_same_minute_of_every_hour_has_shadows_who_do():
    data, who = hourly(lambda draw, person: person * 85 + draw.integers(5), lambda draw, _: draw.normal())
    made = make(data, who, HOURLY)
    assert steadiness(within_hour(made.data), as_names(made.persons)).min() > 0.99


def test_who_comes_at_any_minute_has_shadows_who_do():
    data, who = hourly(lambda draw, _: draw.integers(3600), lambda draw, _: draw.normal())
    made = make(data, who, HOURLY)
    real, decoys = steadiness(within_hour(data), who), steadiness(within_hour(made.data), as_names(made.persons))
    assert abs(np.mean(real) - np.mean(decoys)) < 0.05


def test_no_decoy_comes_when_nobody_does():
    data, who = hourly(lambda draw, _: draw.integers(300), lambda draw, _: draw.normal())
    assert within_hour(make(data, who, HOURLY).data).max() < 300


@pytest.mark.parametrize(
    ("speed", "tell"),
    [
        (lambda draw, _: 5.0 * draw.integers(1, 60), lambda value: value % 5 == 0),
        (lambda draw, _: 5.0 * draw.integers(1, 60) + 2, lambda value: value % 5 == 2),
        (lambda draw, _: 0.0 if draw.random() < 0.4 else draw.lognormal(3), lambda value: value == 0),
        (lambda draw, _: np.inf if draw.random() < 0.3 else draw.lognormal(3), np.isinf),
        (
            lambda draw, person: round(draw.lognormal(3), 6 if person < 10 else 1),
            lambda value: value == round(value, 1),
        ),
        (lambda draw, _: float(round(draw.lognormal(8), -2)), lambda value: value % 100 == 0),
        (lambda draw, _: round(draw.lognormal(3), 2), lambda value: value == round(value, 1)),
    ],
    ids=["steps", "steps from 2", "nothing", "not finite", "decimals", "hundreds", "plain"],
)
def test_digits_tell_nothing(speed, tell):
    data, who = hourly(lambda draw, _: draw.integers(3600), speed)
    made = make(data, who, HOURLY)
    real, decoys = ([tell(value) for value in rows.column("speed").to_pylist()] for rows in (data, made.data))
    assert abs(np.mean(real) - np.mean(decoys)) < 0.06
    assert made.data.column("speed").null_count == 0


def test_missing_numbers_stay_missing_as_often():
    data, who = hourly(lambda draw, _: draw.integers(3600), lambda draw, _: None if draw.random() < 0.2 else 1.5)
    made = make(data, who, HOURLY).data.column("speed")
    assert abs(made.null_count / len(made) - data.column("speed").null_count / len(who)) < 0.05


def test_a_moment_so_fine_that_a_copy_would_show_is_not_copied():
    data, who = hourly(lambda draw, person: person * 85, lambda draw, _: draw.normal())
    noise = pa.array(np.random.default_rng(5).integers(0, 10**9, len(who))).cast(pa.duration("ns"))
    data = data.set_column(0, "time", pc.add(data.column("time"), noise))
    real, decoys = (rows.column("time").cast(pa.int64()).to_numpy() % 3600_000_000_000
                    for rows in (data, make(data, who, HOURLY).data))  # fmt: skip
    assert np.isin(decoys, real).mean() < 0.05
