"""How much a test run tries: little by default, everything in `make test-all`, least where kernels run as Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "1"
IS_EXHAUSTIVE = os.environ.get("SHOAL_TESTS") == "all"
PHASES = (Phase.explicit, Phase.generate) if os.environ.get("SHOAL_TESTS") == "mutants" else tuple(Phase)
"""A planted defect need only be found: to look for the smallest example of it takes minutes."""


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
