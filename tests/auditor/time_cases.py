"""Times in a unit, and the nanoseconds since 1970 that publisher and auditor must both read; None: no usable time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

S, MS, US = 1_000_000_000, 1_000_000, 1_000
LATEST = 2**62 - 1

TIME_CASES: dict[str, tuple[str, Any, list[int | None]]] = {
    "whole milliseconds": ("ms", pa.array([0, 1_700_000_000_123, -1]), [0, 1_700_000_000_123 * MS, -MS]),
    "whole microseconds": ("us", pa.array([1_700_000_000_123_456]), [1_700_000_000_123_456 * US]),
    "whole nanoseconds": ("ns", pa.array([1_700_000_000_123_456_789, LATEST]), [1_700_000_000_123_456_789, LATEST]),
    "beyond 2116": ("ms", pa.array([LATEST // MS, LATEST // MS + 1]), [LATEST // MS * MS, None]),
    "before 1824": ("ns", pa.array([-(2**62), -(2**62) - 1]), [-(2**62), None]),
    "small integers": ("ms", pa.array([5, None], pa.int16()), [5 * MS, None]),
    "unsigned": ("us", pa.array([7, 2**63], pa.uint64()), [7 * US, None]),
    "floats": ("ms", pa.array([1.5, float("nan"), None]), [1_500_000, None, None]),
    "float nanoseconds are rounded": ("ns", pa.array([1.4, 2.6]), [1, 3]),
    "numbers as text": ("ms", pa.array(["1700000000123", "1.5", "-2"]), [1_700_000_000_123 * MS, 1_500_000, -2 * MS]),
    "text that is no number": ("ms", pa.array(["2023-11-14T22:13:20Z", "soon"]), [1_700_000_000 * S, None]),
    "seconds": ("s", pa.array([1_700_000_000]), [1_700_000_000 * S]),
    "a timestamp counts its own unit": ("ns", pa.array([1_700_000_000], pa.timestamp("s")), [1_700_000_000 * S]),
}
