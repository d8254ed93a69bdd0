"""Two releases of the same people, each safe alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal import attack
from shoal.errors import InputError, PolicyError
from tests.auditor.attacks.scenes import POLICY, TREE, as_it_is, at_the_root, people, ranges

SIDE = 12


def crossed() -> pa.Table:
    """A square of people: age and height are their coordinates, illnesses differ along both."""
    place = np.arange(SIDE * SIDE)
    column, row = place % SIDE, place // SIDE
    return pa.table(
        {
            "id": [f"p{one}" for one in place],
            "age": column,
            "height": row,
            "zone": ["n1"] * len(place),
            "ill": [f"ill {one}" for one in (column + row) % SIDE],
        }
    )


def by(truth: pa.Table, name: str) -> pa.Table:
    """People with the same value in one column are a class; the other column is suppressed."""
    rows, own = len(truth), truth.column(name).to_pylist()
    limits = {"age": 100, "height": 1000}
    columns = {other: ranges([0] * rows, [limit] * rows) for other, limit in limits.items()}
    columns[name] = ranges(own, own)
    return pa.table({**columns, "zone": ["*"] * rows, "ill": truth.column("ill")})


def test_the_intersection_of_a_row_and_a_column_is_one_person():
    truth = crossed()
    # In each release a class has every illness once, and so have both together: nothing is learnt.
    even = attack(by(truth, "age"), truth, POLICY, other=by(truth, "height"))["two releases"]
    assert even.success.value == pytest.approx(1 / SIDE)
    assert not even.gains
    # With few illnesses per column and per row the intersection leaves one of them.
    own = np.arange(SIDE * SIDE)
    ill = [f"ill {(one % SIDE) // 3 * 4 + (one // SIDE) // 3}" for one in own]
    truth = truth.set_column(4, "ill", pa.array(ill))
    found = attack(by(truth, "age"), truth, POLICY, other=by(truth, "height"))["two releases"]
    assert found.success.value == 1
    assert found.control == pytest.approx(1 / 4)
    assert found.gains


def test_two_releases_that_show_nothing_give_nothing_away():
    truth = people()
    found = attack(at_the_root(truth), truth, POLICY, other=at_the_root(truth))["two releases"]
    assert found.success.value == pytest.approx(found.guess)
    assert not found.gains


def test_a_second_release_with_other_values():
    truth = people()
    fewer = as_it_is(truth).slice(0, 20)
    found = attack(at_the_root(truth), truth, POLICY, other=fewer)["two releases"]
    assert found.success.value >= found.guess


def test_a_release_without_the_column():
    truth = people()
    found = attack(as_it_is(truth), truth, POLICY, other=as_it_is(truth).drop_columns("ill"))["two releases"]
    assert "not in both" in found.why_not
    plain = {**POLICY, "anonymize": {**POLICY["anonymize"], "sensitive": []}}
    assert "no sensitive" in attack(as_it_is(truth), truth, plain, other=as_it_is(truth))["two releases"].why_not


def test_a_second_release_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"^other: no file"):
        attack(as_it_is(people()), people(), POLICY, other=tmp_path / "again.csv")


def test_without_quasi_identifiers_it_is_refused():
    policy = {
        "stream": {"person": "id", "items": "x"},
        "anonymize": {"method": "k^m", "k": 2, "m": 1, "hierarchy": {"kind": "nested", "tree": TREE}},
    }
    with pytest.raises(PolicyError, match="other"):
        attack([{"n1"}], [{"n1"}], policy, other=[{"n1"}])
