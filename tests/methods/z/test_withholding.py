"""What is published in an epoch, value by value: equal to the twin, in pieces of any size, and after a snapshot."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.methods.z.epochs.shown_sets import EpochRows, ShownSets
from shoal.models.z.target.target import KTarget
from tests.reference.effort import tries
from tests.reference.withholding import ShownSets as Twin

END, WINDOWS = 1000, [800, 1000]


def rows_of(random, count, columns, *, people=12, values=4, most=30):
    """Random rows; values of the second column differ from those of the first."""
    popular = np.minimum(random.geometric(0.5, size=(columns, count)), values)
    return EpochRows(
        random.integers(people, size=(count, 2)),
        popular + 100 * np.arange(columns)[:, None],
        random.integers(0, most, size=(columns, count)),
        np.sort(random.integers(0, END, count)),
        random.random(count) < 0.95,
    )


def by_twin(rows, z, k, p, *, keeps_blank):
    twin, levels = Twin(k, p), np.full(rows.sizes.shape, -1)
    for at in np.flatnonzero(rows.usable).tolist():
        person = int(rows.persons[at, 0])
        if keeps_blank:
            twin.of.setdefault(person, frozenset())
        for column, (value, size) in enumerate(
            zip(rows.values[:, at].tolist(), rows.sizes[:, at].tolist(), strict=True)
        ):
            left = (END - int(rows.times[at])) / WINDOWS[column]
            if size and twin.admits(person, value, size=size, z=z, left=left):
                twin.show(person, value)
                levels[column, at] = 0
    return levels, len(twin.of), len(twin.of) - twin.alone


def part(rows, start, stop):
    return EpochRows(
        rows.persons[start:stop], np.ascontiguousarray(rows.values[:, start:stop]),
        np.ascontiguousarray(rows.sizes[:, start:stop]), rows.times[start:stop], rows.usable[start:stop],
    )  # fmt: skip


@tries(120)
@given(
    seed=st.integers(0, 10**6), k=st.integers(2, 5), p=st.sampled_from([0.5, 0.8, 0.95, 1.0]),
    z=st.integers(2, 12), columns=st.integers(1, 2), keeps_blank=st.booleans(), cut=st.integers(0, 80),
)  # fmt: skip
def test_values_are_published_as_by_the_twin(seed, k, p, z, columns, keeps_blank, cut):
    rows, target = rows_of(np.random.default_rng(seed), 80, columns), KTarget(k=k, p=p)
    first, second = (ShownSets(target, WINDOWS[:columns], keeps_blank=keeps_blank) for _ in range(2))
    begun = first.publish(part(rows, 0, cut), z, END)
    second.load(first.dump())
    levels = np.concatenate((begun, second.publish(part(rows, cut, 80), z, END)), axis=1)
    expected, shown, anonymous = by_twin(rows, z, k, p, keeps_blank=keeps_blank)
    assert (np.where(levels == 0, 0, -1) == expected).all()
    assert (second.shown, second.anonymous) == (shown, anonymous)


def test_tables_grow_with_the_epoch():
    random = np.random.default_rng(1)
    rows, target = rows_of(random, 4000, 2, people=1500, values=40), KTarget(k=2, p=0.6)
    whole, pieces = (ShownSets(target, WINDOWS, keeps_blank=False) for _ in range(2))
    levels = whole.publish(rows, 5, END)
    parts = [pieces.publish(part(rows, at, at + 50), 5, END) for at in range(0, 4000, 50)]
    assert (np.concatenate(parts, axis=1) == levels).all()
    assert (levels == 0).any()
    assert len(whole.pairs()) > 2048
    for name, array in whole.dump().items():
        assert (array == pieces.dump()[name]).all()


def test_the_target_holds_after_every_further_value():
    target, rows = KTarget(k=2, p=0.9), rows_of(np.random.default_rng(3), 400, 1, people=60, values=8)
    sets, shown = ShownSets(target, WINDOWS[:1], keeps_blank=False), {}
    for at in range(400):
        released = (sets.publish(part(rows, at, at + 1), 2, END) == 0).any()
        person, value, before = rows.persons[at, 0], rows.values[0, at], sets.anonymous
        if released and shown.get(person, {value}) != {value} and value not in shown[person]:
            assert sets.anonymous >= 0.9 * sets.shown or sets.anonymous >= before
        if released:
            shown.setdefault(person, set()).add(value)
    assert max(map(len, shown.values())) > 1


def one_by_one(k, p, z, *cells):
    """Which of some (person, value, size) are published at the start of an epoch."""
    sets = ShownSets(KTarget(k=k, p=p), WINDOWS[:1], keeps_blank=False)
    found = []
    for person, value, size in cells:
        columns = np.array([[person, 0]]), np.array([[value]]), np.array([[size]])
        row = EpochRows(*columns, np.zeros(1, np.int64), np.ones(1, np.bool_))
        found.append(bool((sets.publish(row, z, END) == 0).all()))
    return found


def test_a_set_that_no_one_shows_yet_counts_double_above_2():
    same = [(person, 1, 100) for person in range(4)]
    assert one_by_one(3, 0.6, 2, *same, (0, 2, 100)) == [True] * 4 + [False]
    assert one_by_one(2, 0.6, 2, *same, (0, 2, 100)) == [True] * 5
    assert one_by_one(3, 0.5, 2, *same, (0, 2, 100)) == [True] * 5


def test_a_first_value_needs_half_as_many_people_again():
    assert one_by_one(2, 0.9, 8, (1, 1, 12), (2, 2, 11), (3, 1, 8)) == [True, False, True]
    assert one_by_one(2, 0.9, 9, (1, 1, 13)) == [False]
    assert one_by_one(2, 0.9, 2, (1, 1, 11)) == [False]  # fewer than twelve are expected
