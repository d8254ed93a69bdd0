"""All tests: no property test fails because the machine is busy; the collector searches only what tests make.

`make test-ci` runs some of the exhaustive tests only.
"""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

from tests.reference.effort import IS_SAMPLED, ONE_IN, SEED, drawn

settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("patient")
gc.disable()


@pytest.hookimpl(trylast=True)  # after -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not IS_SAMPLED:
        return
    exhaustive = [item for item in items if item.get_closest_marker("exhaustive")]
    left_out = {*exhaustive} - {*drawn(exhaustive, -(-len(exhaustive) // ONE_IN))}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if IS_SAMPLED:
        terminalreporter.write_line(
            f"one in {ONE_IN} exhaustive tests and some of the kills were tried; "
            f"SHOAL_TESTS=ci SHOAL_SEED={SEED} tries the same ones, make test-all tries all"
        )


def pytest_collection_finish() -> None:
    """Leave out what was made while tests were collected, which stays to the end."""
    gc.freeze()
    gc.enable()
