"""People per value, against plain loops; every type a column may have."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.pipeline.checks.identifying import LEAST_PEOPLE, measure, refuse_identifying
from shoal.pipeline.doctor.carried_columns import share_remarks
from shoal.policy.loading import parse_policy
from tests.reference.effort import tries

K = 3
ROWS = st.lists(st.tuples(st.sampled_from([*"pqrst", None]), st.sampled_from([*"abc", None])), max_size=30)


def policy(**stream):
    return parse_policy(
        {
            "stream": {"person": "id", "carry": ["speed"], **stream},
            "source": {"kind": "csv", "path": "in.csv"},
            "anonymize": {"method": "fads", "k": K, "quasi": {"age": {"kind": "numeric", "low": 0, "high": 9}}},
            "sink": {"kind": "csv", "path": "out.csv"},
        }
    )


def batch(people, values):
    return pa.table({"id": pa.array(people, pa.string()), "speed": pa.array(values)})


@tries(100)
@given(drawn=ROWS)
def test_a_plain_count_finds_the_same(drawn):
    known = [(person, value) for person, value in drawn if person is not None]
    people, values = [person for person, _ in drawn], [value for _, value in drawn]
    found = measure("v", [pa.array(values, pa.string())], [pa.array(people, pa.string())], ("k", K))
    if not known:
        assert found is None
        return
    behind = {value: {person for person, other in known if other == value} for _, value in known}
    assert (found.rows, found.people) == (len(known), len({person for person, _ in known}))
    assert found.rare_rows == sum(len(behind[value]) < K for _, value in known)
    assert (found.values, found.lone_values) == (len(behind), sum(len(one) == 1 for one in behind.values()))
    assert found.is_identifying == (found.rare_rows > 0.05 * len(known))


@pytest.mark.parametrize(
    "values",
    [
        [1.5, 1.5, None],
        [1, 1, None],
        [True, True, None],
        [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1), None],
        [b"x", b"x", None],
        [[1, 2], [1, 2], None],
        [{"lo": 1, "hi": 2}, {"lo": 1, "hi": 2}, None],
        [{"lo": [1]}, {"lo": [1]}, {"lo": [2]}],
    ],
)
def test_values_of_any_type(values):
    found = measure("v", [pa.array(values)], [pa.array(["p", "q", "r"])], ("k", 2))
    assert (found.values, found.lone_values, found.rare_rows) == (2, 1, 1)


def test_a_person_may_be_made_of_several_columns():
    persons = [pa.array(["a", "a", None, None]), pa.array(["x", "y", "y", None])]
    found = measure("v", [pa.array([1, 1, 1, 1])], persons, ("k", K))
    assert (found.people, found.rows, found.rare_rows) == (3, 3, 0)


def test_a_twentieth_may_be_rare_and_twenty_k_people_are_needed():
    people = [f"p{number}" for number in range(LEAST_PEOPLE * K)]
    rare = len(people) // 20
    common = ["common"] * len(people)
    assert refuse_identifying(policy(), batch(people, [*map(str, range(rare)), *common[rare:]])) == []
    more = [*map(str, range(rare + 1)), *common[rare + 1 :]]
    with pytest.raises(PolicyError, match=r"column 'speed': 6\.7% of 60 rows") as caught:
        refuse_identifying(policy(), batch(people, more))
    assert "common" not in str(caught.value)
    (warning,) = refuse_identifying(policy(), batch(people[:-1], more[:-1]))
    assert "59 people are too few to judge by" in warning


def test_the_key_is_part_of_the_fingerprint_only_when_set():
    """A policy without it keeps its checkpoints."""
    plain = policy()
    assert policy(carry_identifying=False).fingerprint() == plain.fingerprint()
    assert policy(carry_identifying=True).fingerprint() != plain.fingerprint()


def test_the_doctor_reports_a_class_of_one_person():
    of_class = np.repeat([0, 1, 2], [12, 9, 12])
    person = np.concatenate([[0] * 9, [1, 2, 3], [0] * 8, [1], np.arange(12)])
    (remark,) = share_remarks(of_class, person, can_cap=True)
    assert remark.level == "look"
    assert remark.sentence.startswith("in 1 of 3 classes one person has more than half of the rows, up to 75%")
    assert "max_share" in remark.sentence
    assert list(share_remarks(of_class[21:], person[21:], can_cap=True)) == []
