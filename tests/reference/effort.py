"""How much a test run tries: little by default, everything in `make test-all`, least where kernels run as Python.

`make test-ci` tries what the default run tries, and a part of the rest that is drawn anew each time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "1"
IS_EXHAUSTIVE = os.environ.get("SHOAL_TESTS") == "all"
IS_SAMPLED = os.environ.get("SHOAL_TESTS") == "ci"
SEED = os.environ.setdefault("SHOAL_SEED", str(random.randrange(10**9))) if IS_SAMPLED else "0"
"""Draws the part that `make test-ci` tries; in the environment, so that pytest's workers draw alike."""
KILLS = 5
"""Kills of a test in `make test-ci`."""
ONE_IN = 10
"""One exhaustive test in so many is tried by `make test-ci`."""
PHASES = (Phase.explicit, Phase.generate) if os.environ.get("SHOAL_TESTS") == "mutants" else tuple(Phase)
"""A planted defect need only be found: to look for the smallest example of it takes minutes."""
Item = TypeVar("Item")


def tries(examples: int) -> settings:
    """Settings for a property test: all of the examples in the exhaustive run, at least 5 in any.

    The default run tries as many as the planted defects of tests/mutants are found with.
    """
    share = 1 if IS_EXHAUSTIVE and IS_COMPILED else 0.25
    return settings(
        deadline=None,  # the first example compiles
        max_examples=max(5, round(share * examples)),
        phases=PHASES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def some_by_default(values: Iterable[Any], is_default: Callable[[Any], bool] | Collection[Any]) -> list[Any]:
    """Parameters of a test; those that are not default run in `make test-all` only."""
    chosen = is_default if callable(is_default) else is_default.__contains__
    return [value if chosen(value) else pytest.param(value, marks=pytest.mark.exhaustive) for value in values]


def drawn(among: Sequence[Item], count: int, *, seed: str = SEED) -> list[Item]:
    """So many of a sequence, or all if there are fewer, in its order; the same ones if a test runs again."""
    draw = random.Random(f"{seed} {os.environ.get('PYTEST_CURRENT_TEST')}")
    places = draw.sample(range(len(among)), min(count, len(among)))
    return [among[place] for place in sorted(places)]


def kill_points(among: Sequence[Item], *, default: Sequence[Item]) -> Sequence[Item]:
    """Where a test kills runs: at all points of `default`, or in `make test-ci` at a few that are drawn among all."""
    return drawn(among, KILLS) if IS_SAMPLED else default
