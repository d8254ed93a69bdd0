"""The domain of a number or moment: rounded outward to round numbers that are not the extremes of few people."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.inspection.columns.facts import Facts
from shoal.schema import Numeric

_FIRST, _LAST = datetime(1824, 1, 1), datetime(2116, 1, 1)
"""Between these are the times that a run can read."""
_FEW: Final = 10


def domain_of(facts: Facts) -> dict[str, Any] | None:
    """low, high and grid for a policy; None if all values are equal, there are none, or no policy can write them."""
    if facts.kind == "moment":
        return _moments(facts)
    bounds = pc.min_max(facts.values).as_py()
    low, high = bounds["min"], bounds["max"]
    if low is None or low == high or not math.isfinite(float(high) - float(low)):
        return None
    step = round_step((float(high) - float(low)) / 20)
    grid = round_step((float(high) - float(low)) / 40)
    if facts.kind == "whole":
        step, grid = max(1.0, step), max(1.0, grid)
    first, last = math.floor(low / step), math.ceil(high / step)
    if first * step == low != 0 and _rows_with(facts, low) < _FEW:
        first -= 1
    if last * step == high and _rows_with(facts, high) < _FEW:
        last += 1
    found = {"low": tidy(first * step), "high": tidy(last * step), "grid": tidy(grid)}
    return {"kind": "numeric", **found, "outside": "clamp"} if _is_writable(found) else None


def _is_writable(found: dict[str, Any]) -> bool:
    """Whether a policy accepts these numbers: p-values of 1e-16 and counts of 1e20 have too many digits for a grid."""
    try:
        Numeric("column", **found)
    except PolicyError:
        return False
    return True


def _rows_with(facts: Facts, value: Any) -> int:
    """How many rows have a value; the end of a domain that few have is somebody's."""
    return int(pc.sum(pc.equal(facts.values, value)).as_py() or 0)


def round_step(wanted: float) -> float:
    """The largest of 1, 2, 5, 10, 20, … and 0.5, 0.2, 0.1, … that is not above what is wanted.

    >>> [round_step(number) for number in (73 / 20, 0.04, 10, 2500)]
    [2.0, 0.02, 10.0, 2000.0]
    """
    scale = 10.0 ** math.floor(math.log10(wanted) + 1e-9)
    digit = next(digit for digit in (5, 2, 1) if digit * scale <= wanted * (1 + 1e-9))
    return float(f"{digit * scale:.12g}")


def tidy(number: float) -> float | int:
    """A number without the error of its last digits, as a whole one if it is.

    >>> [tidy(3 * 0.1), tidy(20 * 5.0)]
    [0.3, 100]
    """
    number = float(f"{number:.12g}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _moments(facts: Facts) -> dict[str, Any] | None:
    moments = facts.values.cast(pa.timestamp("us"), safe=False)
    usable = pc.and_(pc.greater_equal(moments, _naive(moments, _FIRST)), pc.less(moments, _naive(moments, _LAST)))
    bounds = pc.min_max(moments.filter(usable)).as_py()  # 9999-12-31 means that there is no end
    if bounds["min"] is None:
        return None
    first, last = (_plain(bounds[key]) for key in ("min", "max"))
    days = (last - first) / timedelta(days=1)
    if days > 300:
        low, high, grid = date(first.year, 1, 1), date(last.year + 1, 1, 1), "1d"
    else:
        low, high = date(first.year, first.month, 1), _next_month(last)
        grid = "10min" if days <= 3 else "1h" if days <= 60 else "1d"
    return {"kind": "numeric", "low": low.isoformat(), "high": high.isoformat(), "grid": grid, "outside": "clamp"}


def _naive(moments: Any, moment: datetime) -> pa.Scalar:
    return pa.scalar(moment, pa.timestamp("us")).cast(moments.type)


def _plain(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def _next_month(moment: datetime) -> date:
    return date(moment.year + moment.month // 12, moment.month % 12 + 1, 1)
