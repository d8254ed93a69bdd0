"""The internal store: k people in every group, decoys that recur, and nothing that reveals them."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from shoal.policy import load_policy
from shoal.sanitize.decoys.cells import group, normals_of, sparse_columns
from shoal.sanitize.stores.columns import column_blocks
from shoal.sanitize.workspace import ID, PERSON, PII, Workspace
from tests.sanitize.scene import lines

ALL = lines(25, 400, 1)
PARTS = (ALL[:150], ALL[150:300], ALL[300:])


def filled(scene):
    """The store after three runs."""
    for number, rows in enumerate(PARTS):
        scene.write(f"in-{number}.csv", rows)
        scene.run(audit=False)
    return scene.internal()


@pytest.mark.parametrize("blend", [True, False])
@pytest.mark.parametrize("flexible", [True, False])
def test_every_group_has_k_people(make_scene, blend, flexible):
    scene = make_scene(more=f"blend = {str(blend).lower()}", flexible=flexible)
    inside = filled(scene)
    normals = normals_of(load_policy(scene.policy), inside.data.schema)
    assert [own.name for own in normals] == ["time", "place", "network"]
    people = defaultdict(set)
    groups = group(b"any", inside.data, normals).of
    for number, person in zip(groups.tolist(), inside.ids.column(PERSON).to_pylist(), strict=True):
        people[number].add(person)
    assert min(map(len, people.values())) >= 3
    assert inside.is_real.sum() == 400
    assert (len(inside.is_real) == 1200) == blend


def test_decoys_keep_their_device_and_come_back_over_runs(make_scene):
    inside = filled(make_scene())
    decoys = inside.data.filter(~inside.is_real)
    ids = inside.ids.filter(~inside.is_real).column(PERSON).to_pylist()
    devices = defaultdict(set)
    for person, device in zip(ids, decoys.column("device").to_pylist(), strict=True):
        devices[person].add(device)
    assert Counter(map(len, devices.values())).keys() == {1}
    real = Counter(inside.ids.filter(inside.is_real).column(PERSON).to_pylist())
    assert sorted(Counter(ids).values()) == sorted([*real.values(), *real.values()])


def test_no_decoy_equals_a_real_record(scene):
    inside = filled(scene)
    rows = list(zip(*(column.to_pylist() for column in inside.data.columns), strict=True))
    real = {row for row, is_real in zip(rows, inside.is_real, strict=True) if is_real}
    assert len(real) == 400
    assert not any(row in real for row, is_real in zip(rows, inside.is_real, strict=True) if not is_real)


def test_ids_tell_nothing(scene):
    inside = filled(scene)
    for name in (ID, PERSON, PII):
        blocks = column_blocks(inside.ids.column(name))
        for chosen in (inside.is_real, ~inside.is_real):
            share = np.unpackbits(np.unique(blocks[chosen], axis=0)).mean()
            assert 0.45 < share < 0.55
    ids = column_blocks(inside.ids.column(ID)).view("S16").reshape(-1)
    assert len(set(ids.tolist())) == 1200
    order = np.argsort(ids)
    run = np.flatnonzero(np.diff(inside.is_real[order].astype(int)))
    assert len(run) > 300  # real ones and decoys alternate in the order they lie in


def test_the_length_of_what_is_remembered_tells_nothing(scene):
    scene.write("in-1.csv", [row.replace("model ", "m" * (number % 30) + " ") for number, row in enumerate(ALL)])
    scene.run()
    with Workspace(load_policy(scene.policy)) as workspace:
        lengths = {len(value) for (value,) in workspace.internal.execute("SELECT value FROM shoal_internal_memory")}
    assert {(length - 28) % 512 for length in lengths} == {0}


def test_the_same_decoys_are_nobodys_real_ids(scene):
    inside = filled(scene)
    for name in (PERSON, PII):
        column = inside.ids.column(name)
        real, made = (set(column.filter(chosen).to_pylist()) for chosen in (inside.is_real, ~inside.is_real))
        assert not real & made
        assert len(made) == 2 * len(real)


def test_sparse_columns(make_scene):
    scene = make_scene(flexible=True)
    assert sparse_columns(load_policy(scene.policy)) == {"device"}
    text = scene.policy.read_text().replace('method = "flexible-k"', 'method = "flexible-k"\nsparse = []')
    scene.policy.write_text(text)
    assert sparse_columns(load_policy(scene.policy)) == set()
