"""The codes of a trace, the private record of what was decided; every family writes its own further columns."""

from __future__ import annotations

from typing import Final

NO_REASON: Final = -1
"""The reason of a record that is not dead."""
IS_RELEASED, IS_SUPPRESSED, IS_DEAD = range(3)
"""Indices of base.VERDICTS."""
