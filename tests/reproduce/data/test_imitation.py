"""The imitations: marginals near the published ones, the main dependencies there, nothing outside its domain."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shoal.hierarchies import Hierarchy
from shoal.reproduce.data.adult_imitation import COUNTRIES, draw, draw_between, draw_given, imitate_adult
from shoal.reproduce.data.pm25_imitation import imitate_pm25
from shoal.reproduce.data.streams import Stream

ROWS = 20_000
ADULT, PM25 = imitate_adult(ROWS, seed=1), imitate_pm25(ROWS * 2, seed=1)

# Shares of the published data, rounded.
SHARES = {
    "sex": {"Male": 0.676, "Female": 0.324},
    "race": {"White": 0.860, "Black": 0.093, "Asian-Pac-Islander": 0.030, "Amer-Indian-Eskimo": 0.009, "Other": 0.008},
    "marital-status": {"Married-civ-spouse": 0.466, "Never-married": 0.322, "Divorced": 0.140, "Widowed": 0.027},
    "relationship": {"Husband": 0.413, "Not-in-family": 0.256, "Own-child": 0.148, "Unmarried": 0.106, "Wife": 0.047},
    "workclass": {"Private": 0.739, "Self-emp-not-inc": 0.083, "Local-gov": 0.069, "Federal-gov": 0.031},
    "education": {"HS-grad": 0.326, "Some-college": 0.221, "Bachelors": 0.167, "Masters": 0.054, "Doctorate": 0.012},
    "occupation": {"Prof-specialty": 0.134, "Craft-repair": 0.134, "Adm-clerical": 0.123, "Sales": 0.119},
    "hours-per-week": {40: 0.472, 50: 0.090, 45: 0.058, 60: 0.047, 20: 0.035},
}
QUANTILES = {  # 5%, 25%, 50%, 75%, 95%, with what they may be off by
    "age": ((20, 28, 37, 47, 62), 1.5),
    "fnlwgt": ((39_500, 117_600, 178_400, 237_600, 379_700), 8_000),
}
PM25_QUANTILES = {
    "first-post": ((11, 28, 51, 89, 193), 25),
    "dew-point": ((-16, 2, 12, 19, 24), 5),
    "temperature": ((-4, 9, 18, 24, 31), 4),
    "humidity": ((24, 51, 70, 84, 94), 8),
    "pressure": ((998, 1006, 1013, 1021, 1030), 3),
}


@pytest.mark.parametrize(("column", "shares"), SHARES.items())
def test_shares_of_adult(column: str, shares: dict[object, float]) -> None:
    counts = Counter(ADULT.table[column].to_pylist())
    for value, share in shares.items():
        assert counts[value] / ROWS == pytest.approx(share, abs=0.02), value


@pytest.mark.parametrize(("column", "expected"), QUANTILES.items())
def test_quantiles_of_adult(column: str, expected: tuple[tuple[float, ...], float]) -> None:
    quantiles, tolerance = expected
    found = np.quantile(ADULT.table[column].to_numpy(), (0.05, 0.25, 0.5, 0.75, 0.95))
    assert np.abs(found - quantiles).max() <= tolerance


def test_capital_is_rare_and_never_both() -> None:
    gain, loss = (ADULT.table[name].to_numpy() for name in ("capital-gain", "capital-loss"))
    assert (gain > 0).mean() == pytest.approx(0.084, abs=0.01)
    assert (loss > 0).mean() == pytest.approx(0.047, abs=0.01)
    assert not ((gain > 0) & (loss > 0)).any()


def test_what_hangs_together_in_adult() -> None:
    table = ADULT.table.to_pylist()
    husbands = [row for row in table if row["relationship"] == "Husband"]
    assert all(row["marital-status"].startswith("Married") for row in husbands)
    assert sum(row["sex"] == "Male" for row in husbands) / len(husbands) > 0.99
    young = [row["marital-status"] == "Never-married" for row in table if row["age"] < 25]
    assert np.mean(young) > 0.8
    graduates = [row["occupation"] == "Prof-specialty" for row in table if row["education-num"] > 13]
    assert np.mean(graduates) > 0.5
    jamaicans = [row["race"] == "Black" for row in table if row["native-country"] == "Jamaica"]
    assert np.mean(jamaicans) > 0.7
    ranks = {(row["education"], row["education-num"]) for row in table}
    assert len(ranks) == len({name for name, _ in ranks}), "one number an education"


@pytest.mark.parametrize(("column", "expected"), PM25_QUANTILES.items())
def test_quantiles_of_pm25(column: str, expected: tuple[tuple[float, ...], float]) -> None:
    quantiles, tolerance = expected
    whole = imitate_pm25(100_000, seed=2).table[column].to_numpy()
    found = np.quantile(whole, (0.05, 0.25, 0.5, 0.75, 0.95))
    assert np.abs(found - quantiles).max() <= tolerance


def test_what_hangs_together_in_pm25() -> None:
    columns = {name: PM25.table[name].to_numpy() for name in PM25.domains}
    posts = np.log(np.stack([columns[name] for name in ("first-post", "second-post", "third-post")]))
    assert np.corrcoef(posts).min() > 0.85
    assert np.corrcoef(columns["temperature"], columns["pressure"])[0, 1] < -0.5
    assert (columns["h-precipitation"] > 0).mean() == pytest.approx(0.074, abs=0.02)
    assert (columns["c-precipitation"] >= columns["h-precipitation"] - 1e-9).all()
    assert (columns["dew-point"] <= columns["temperature"]).all()
    winds = Counter(PM25.table["wind-direction"].to_pylist())
    assert winds["cv"] / len(PM25) == pytest.approx(0.168, abs=0.03)


@pytest.mark.parametrize("stream", [ADULT, PM25], ids=lambda stream: stream.name)
def test_nothing_is_outside_its_domain(stream: Stream) -> None:
    for name, (low, high) in stream.domains.items():
        values = stream.table[name].to_numpy()
        assert low <= values.min()
        assert values.max() <= high
    for name, tree in stream.trees.items():
        hierarchy = Hierarchy.from_nested(tree)
        leaves = {label for label, count in zip(hierarchy.labels, hierarchy.leaf_counts, strict=True) if count == 1}
        assert set(stream.table[name].to_pylist()) <= leaves
    assert stream.table["person"].to_pylist() == list(range(len(stream)))
    assert stream.schema.columns == ("person", *stream.quasi)


def test_the_seed_decides() -> None:
    for imitate in (imitate_adult, imitate_pm25):
        assert imitate(300, seed=1).table.equals(imitate(300, seed=1).table)
        assert not imitate(300, seed=1).table.equals(imitate(300, seed=2).table)
        assert len(imitate(300, seed=1)) == 300


def test_every_country_has_a_group() -> None:
    assert sum(COUNTRIES.values()) == pytest.approx(10_000, abs=30)
    assert len(COUNTRIES) == 41


def test_draws_follow_their_tables() -> None:
    random = np.random.default_rng(1)
    assert np.bincount(draw(random, 10_000, (1, 0, 3)), minlength=3) / 10_000 == pytest.approx(
        (0.25, 0, 0.75), abs=0.02
    )
    given = np.array([0, 1] * 500)
    chosen = draw_given(random, given, ((1, 0), (0, 1)))
    assert (chosen == given).all()
    numbers = draw_between(random, 10_000, ((0, 10), (0.5, 20), (1, 100)))
    assert np.median(numbers) == pytest.approx(20, abs=1)
    assert 10 <= numbers.min() <= numbers.max() <= 100
