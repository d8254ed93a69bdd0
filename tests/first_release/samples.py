"""Synthetic values: names, dates, numbers with gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import numpy as np


def words(text: str, separator: str | None = None) -> list[str]:
    return text.split(separator)


FIRST = words(
    "Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Karin Leo Maria Nils Olga Paul Rita Sven Tina Viktor "
    "Agnes Bruno Carla Dario Elif Fritz Gina Hans Irma Jana"
)
LAST = words(
    "Adler Brandt Conti Dubois Ekström Fischer Garcia Hansen Ivanova Jansen Kowalski Lopes Moreau Novak Olsen Petrov "
    "Quinn Rossi Schulz Torres Urban Vermeer Weber Yilmaz Zimmer Baker Carter Dixon Ellis Foster"
)
HEX = "0123456789abcdef"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def pick(rng: np.random.Generator, values: Iterable, n: int, weights: Sequence[float] | None = None) -> list:
    values = values.split() if isinstance(values, str) else list(values)
    shares = None if weights is None else np.array(weights) / sum(weights)
    return [values[index] for index in rng.choice(len(values), n, p=shares)]


def whole(rng: np.random.Generator, low: int, high: int, n: int) -> list[int]:
    """Whole numbers from low to high, both included."""
    return rng.integers(low, high + 1, n).tolist()


def distinct(rng: np.random.Generator, low: int, high: int, n: int) -> list[int]:
    return (low + rng.choice(high - low, n, replace=False)).tolist()


def ages(rng: np.random.Generator, n: int, low: int = 18, high: int = 92) -> list[int]:
    return np.clip(rng.normal(46, 16, n), low, high).astype(int).tolist()


def around(rng: np.random.Generator, mean: float, spread: float, n: int, digits: int = 1) -> list[float]:
    return [round(value, digits) for value in rng.normal(mean, spread, n).tolist()]


def skewed(rng: np.random.Generator, median: float, n: int, digits: int = 0, sigma: float = 0.5) -> list:
    """Wages, incomes, prices: positive, with a long tail; whole numbers without digits."""
    values = (median * np.exp(sigma * rng.standard_normal(n))).tolist()
    return [round(value, digits) if digits else round(value) for value in values]


def holes(rng: np.random.Generator, values: Iterable, share: float, word: object = None) -> list:
    """The values with a share of them replaced by a word that means missing."""
    values = list(values)
    return [word if gap else value for value, gap in zip(values, rng.random(len(values)) < share, strict=True)]


def each(values: Iterable, times: int | Sequence[int]) -> list:
    """Every value repeated in consecutive rows."""
    values = list(values)
    times = [times] * len(values) if isinstance(times, int) else times
    return [value for value, count in zip(values, times, strict=True) for _ in range(count)]


def of(owners: Iterable, mapping: dict) -> list:
    """What depends on somebody, for all of their rows."""
    return [mapping[owner] for owner in owners]


def full_names(rng: np.random.Generator, n: int) -> list[str]:
    numbers = distinct(rng, 0, len(FIRST) * len(LAST), n)
    return [f"{FIRST[number % len(FIRST)]} {LAST[number // len(FIRST)]}" for number in numbers]


def emails(names: Iterable[str]) -> list[str]:
    return [f"{name.lower().replace(' ', '.')}@mail.example" for name in names]


def words_of(rng: np.random.Generator, alphabet: str, length: int, n: int) -> list[str]:
    """Hashes and other random identifiers."""
    numbers = rng.integers(0, len(alphabet), (n, length))
    return ["".join(alphabet[number] for number in row) for row in numbers.tolist()]


def uuids(rng: np.random.Generator, n: int) -> list[str]:
    return [f"{w[:8]}-{w[8:12]}-4{w[13:16]}-a{w[17:20]}-{w[20:]}" for w in words_of(rng, HEX, 32, n)]


def dates(rng: np.random.Generator, first: str, days: int, n: int, form: str = "%Y-%m-%d") -> list[str]:
    start = datetime.fromisoformat(first)
    return [(start + timedelta(days=day)).strftime(form) for day in whole(rng, 0, days, n)]


def moments(rng: np.random.Generator, first: str, seconds: int, n: int) -> list[datetime]:
    """Times in ascending order."""
    start = datetime.fromisoformat(first)
    return [start + timedelta(seconds=second) for second in sorted(whole(rng, 0, seconds, n))]


def written(times: Iterable[datetime], form: str = "%Y-%m-%dT%H:%M:%SZ") -> list[str]:
    return [time.strftime(form) for time in times]


def sets_of(rng: np.random.Generator, items: Sequence, n: int, mean: float = 4) -> list[list]:
    """Sets whose first items are frequent and whose last ones are rare."""
    weights = 1 / np.arange(1, len(items) + 1)
    sizes = np.clip(rng.poisson(mean, n), 1, len(items)).tolist()
    picks = [rng.choice(len(items), size, replace=False, p=weights / weights.sum()) for size in sizes]
    return [[items[index] for index in sorted(pick.tolist())] for pick in picks]
