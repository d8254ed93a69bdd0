"""All tests: no property test fails because the machine is busy; the collector searches only what tests make."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("patient")
gc.disable()


def pytest_collection_finish() -> None:
    """Leave out what was made while tests were collected, which stays to the end."""
    gc.freeze()
    gc.enable()
