"""The traceability attack against a search through the published texts, and releases that keep their promise."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from shoal.reproduce.data.measurements import Measurements, synthetic_measurements
from shoal.reproduce.flexible.attack import Target, chain, find, targets, together
from shoal.reproduce.flexible.releases import (
    Release,
    Truth,
    publish,
    publish_ignoring_device,
    publish_without_ontology,
    raw,
)


@pytest.fixture(scope="module")
def data() -> Measurements:
    return synthetic_measurements(120, 1_200, seed=4)


@pytest.fixture(scope="module")
def truth(data: Measurements) -> Truth:
    return Truth.of(data)


@pytest.fixture(scope="module")
def release(data: Measurements, truth: Truth) -> Release:
    return publish(data, truth, 4)


def candidates(data: Measurements, release: Release, target: Target, truth: Truth, *, knows_device: bool) -> set[str]:
    """People of published rows whose labels cover what is known, read from the tables."""
    start = datetime.fromtimestamp(data.start, UTC)
    known = [start + timedelta(hours=int(hour)) for hour in np.flatnonzero(target.at_home)]
    cell, model = truth.cells[target.cell], truth.models[target.model]
    concepts, people = data.ontology.attribute("device"), data.table["maid"].to_pylist()
    found = set()
    for row, one in zip(release.row.tolist(), release.rows.to_pylist(), strict=True):
        low, high = one["time"]["lo"], one["time"]["hi"]
        fits = one["place"] in data.places.path(cell) and any(
            low < hour + timedelta(hours=1) and hour < high for hour in known
        )
        if fits and (not knows_device or concepts.subsumes(one["device"], model)):
            found.add(people[row])
    return found


@pytest.mark.parametrize("knows_device", [False, True])
def test_candidates_are_those_of_the_published_texts(
    data: Measurements, truth: Truth, release: Release, knows_device: bool
) -> None:
    for target in targets(truth, 12, seed=1):
        expected = candidates(data, release, target, truth, knows_device=knows_device)
        found = find(release.shown, [target], knows_device=knows_device)
        if found["least"] is None:
            assert found["nothing published"] == 1
        else:
            assert found["least"] == len(expected)
            assert found["below"] == (len(expected) < (release.k_s if knows_device else release.k))


def test_people_alike_are_those_of_equal_published_rows(data: Measurements, release: Release) -> None:
    people, groups = data.table["maid"].to_pylist(), defaultdict(set)
    for row, one in zip(release.row.tolist(), release.rows.to_pylist(), strict=True):
        groups[one["place"], one["network"], str(one["time"]), one["device"]].add(people[row])
    alike = release.shown.people_alike(with_device=True)
    assert sorted(set(alike.tolist())) == sorted({len(group) for group in groups.values()})
    assert alike.min() >= release.k_s
    assert release.shown.people_alike(with_device=False).min() >= release.k == 4


def test_a_pseudonym_leads_to_all_rows(truth: Truth) -> None:
    known = targets(truth, 20, seed=1)
    shown = raw(truth, has_pseudonyms=True)
    assert chain(shown, known)["chained"] == 1.0
    assert find(shown, known, knows_device=True)["recall"] > 0.9
    assert together(shown, known)["no one else"] == 1.0


def test_releases_without_the_sparse_column_and_without_an_ontology(data: Measurements, truth: Truth) -> None:
    ignored = publish_ignoring_device(data, truth, 4, name="ignored")
    given = data.table["device"].take(pa.array(ignored.row)).to_pylist()
    assert ignored.rows["device"].to_pylist() == given
    assert ignored.shown.people_alike(with_device=False).min() >= 4
    assert ignored.shown.people_alike(with_device=True).min() == 1
    exact = publish_without_ontology(data, truth, 4, name="exact")
    assert exact.pending > ignored.pending
    assert len(exact.row) == 0 or exact.shown.people_alike(with_device=True).min() >= 4


def test_nothing_published_gives_no_answer(data: Measurements) -> None:
    few = data.head(3)
    truth = Truth.of(few)
    release = publish(few, truth, 6)
    assert (len(release.row), release.pending, release.loss) == (0, 3, None)
    target = Target(0, 0, 0, np.ones(truth.hours, np.bool_))
    assert find(release.shown, [target], knows_device=True)["least"] is None
    assert chain(release.shown, [target])["chained"] is None
