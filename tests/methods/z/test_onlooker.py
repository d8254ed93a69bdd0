"""What the residual rules promise, proved by trying everything on small hierarchies."""

from __future__ import annotations

import pytest

from tests.reference.onlooker import HIERARCHIES, conclusions, published
from tests.reference.residual import level_of

EVENTS = 5


def people_who_could_repeat(row, *, z, strict):
    """The people who, doing again what they did, would be published at the row's label too."""
    label = row.newest.label
    found = set()
    for one in row.exposures:
        again = type(one)(0, one.person, one.path, None)
        level = level_of(row.exposures, again, z=z, strict=strict)
        if level >= 0 and one.path[level] == label:
            found.add(one.person)
    return found


@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("z", [2, 3])
def test_z_people_could_repeat_what_they_did_and_get_the_same_label(name, z):
    rows = list(published(HIERARCHIES[name], z=z, strict=True, most=EVENTS - 1))
    assert rows
    assert all(len(people_who_could_repeat(row, z=z, strict=True)) >= z for row in rows)


def test_by_the_loose_rule_fewer_could():
    rows = list(published(HIERARCHIES["flat"], z=2, strict=False, most=EVENTS - 1))
    assert any(len(people_who_could_repeat(row, z=2, strict=False)) < 2 for row in rows)


@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("z", [2, 3])
def test_an_onlooker_excludes_a_value_of_the_crowd_only_where_one_more_person_would_have_passed(name, z):
    found = conclusions(HIERARCHIES[name], z=z, strict=True, most=EVENTS)
    assert found
    for one in found:
        assert all(one.row.others_at(value) == z - 1 for value in one.excluded)
    if name == "flat" or z > 2:
        assert not any(one.excluded for one in found)


@pytest.mark.parametrize("name", HIERARCHIES)
def test_by_the_loose_rule_it_excludes_values_that_pass(name):
    found = conclusions(HIERARCHIES[name], z=2, strict=False, most=EVENTS)
    assert any(one.row.others_at(value) >= 2 for one in found for value in one.excluded)
