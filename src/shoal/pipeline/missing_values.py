"""What a run of a tuple method warns of because of missing values: rows suppressed for them, and values filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.policy.method_base import MethodSection
from shoal.policy.tuples import TupleSection

MUCH: Final = 0.1
"""The share of decided rows, suppressed because too few people lack the same columns, that is worth a warning."""


def missing_value_words(metrics: Mapping[str, Any], method: MethodSection, *, decided: int) -> list[str]:
    """The warnings, from the metrics of a run that decided this many rows; a policy may ask for values to be filled."""
    if not isinstance(method, TupleSection):
        return []
    found, rare, filled = [], metrics.get("rare_patterns", 0), metrics.get("filled", 0)
    if rare > MUCH * decided:
        found.append(
            f"{rare:,} of {decided:,} rows ({rare / decided:.1%}) were suppressed because fewer than k = {method.k:,} "
            'people lack the same columns; set [anonymize] missing = "hidden" or "covered", or method = "k-varp"'
        )
    if filled and "missing" not in method.model_fields_set:
        found.append(
            f"{filled:,} published values stand where the record has none, so means and shares of the release are "
            f'wrong; set [anonymize] missing = "hidden", or "{method.missing}" if that is meant'
        )
    return found
