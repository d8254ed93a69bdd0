"""How many examples a property test tries: fewer where the kernels run as plain Python."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "1"


def tries(examples: int) -> settings:
    return settings(
        deadline=None,  # the first example compiles
        max_examples=examples if IS_COMPILED else max(5, examples // 4),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
