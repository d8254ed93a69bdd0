"""Columns that repeat another one: its logarithm, square or cube."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from shoal.inspection.columns.arrays import Flags, Floats, floats
from shoal.inspection.columns.facts import Facts

_SAMPLE: Final = 2_000
_FEWEST: Final = 8
"""Different values below which a column may agree with another by accident."""
_MOST: Final = 60
"""Columns of numbers that are compared."""
_TOLERANCE: Final = 2e-3
_FORMS: Final[dict[str, Callable[[Floats], Any]]] = {
    "logarithm": np.log, "decimal logarithm": np.log10, "logarithm of one more": np.log1p, "square": np.square,
    "square in hundreds": lambda value: np.square(value) / 100, "cube": lambda value: value**3,
}  # fmt: skip


def find_derived(facts: Mapping[str, Facts]) -> dict[str, str]:
    """By column, what it is of which other column; a column that repeats none is left out."""
    named = [one for one in facts.values() if one.is_number and one.distinct >= _FEWEST][:_MOST]
    numbers = {one.name: _numbers(one) for one in named}
    found: dict[str, str] = {}
    for name, values in numbers.items():
        for other, given in numbers.items():
            if other != name and other not in found and (form := _form(values, given)) is not None:
                found[name] = f"the {form} of {other!r}"
                break
    return found


def _numbers(one: Facts) -> Floats:
    return floats(one.values)[:: max(1, len(one.values) // _SAMPLE)]


def _form(values: Floats, given: Floats) -> str | None:
    """How values are computed from others, if they are."""
    known = np.isfinite(values)
    if not np.array_equal(known, np.isfinite(given)) and not _misses_only_zeros(known, given):
        return None
    wanted = values[known]
    scale = float(np.std(wanted))
    with np.errstate(all="ignore"):
        for form, compute in _FORMS.items():
            made = compute(given[known])
            if scale > 0 and np.isfinite(made).all() and bool((np.abs(made - wanted) <= _TOLERANCE * scale).all()):
                return form
    return None


def _misses_only_zeros(known: Flags, given: Floats) -> bool:
    """Whether values are missing only where a logarithm is: of 0 and less."""
    return bool(known.any() and (given[~known & np.isfinite(given)] <= 0).all() and np.isfinite(given[known]).all())
