"""The k^m study: one search per k and σ gives the same as one run of the method for every m."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

import shoal
from shoal.reproduce.data.city import make_city
from shoal.reproduce.sets.study import KmPlan, run_km_study


@pytest.mark.compiled
def test_every_row_is_what_the_method_gives_alone() -> None:
    city, steps = make_city(500, seed=3), []
    plan = KmPlan(crowds=(5,), sigmas=(0.9,), sizes=(5, 7), unique_sizes=(2,), mixing_sizes=(5,), trials=2, seed=4)
    found = run_km_study(city, plan, lambda done, total, _step: steps.append((done, total)))
    area = dict(zip(city.places.names, city.places.areas[city.places.site_of].tolist(), strict=True))
    for row in found.tables["km_runs"].records:
        alone = shoal.KmAnonymity(
            row["k"], row["m"], row["sigma"], generalize=city.places, counted=4, trials=2, seed=4
        ).anonymize(city.records)  # fmt: skip
        assert (row["blocks"], row["error_m"]) == (len(alone.blocks), alone.error)
        published = alone.published().column(0)
        assert row["longest_record"] == pc.max(pc.list_value_length(published)).as_py()
        people = {one["values"]: one["counts"] for one in pc.value_counts(pc.list_flatten(published)).to_pylist()}
        areas = {label: sum(area[item] for item in items) for label, items in alone.blocks.items()}
        expected = sum(areas[label] * count for label, count in people.items()) / sum(people.values())
        assert row["block_km2"] == pytest.approx(expected)
        assert row["attempts"] == max((one.attempts for one in alone.certificate if one.how == "sampled"), default=0)
    (mixing,) = found.tables["km_mixing"].records
    assert mixing["bound_steps"] > 500
    assert mixing["papers_geweke_steps"] <= mixing["our_geweke_steps"]
    assert steps == sorted(steps)
    assert steps[-1][0] < steps[-1][1] == plan.steps
