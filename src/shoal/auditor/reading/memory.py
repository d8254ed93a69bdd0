"""The memory budget of an audit, and the expected cost of reading an input."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from shoal.errors import InputError, PolicyError

_SHARE: Final = 0.5
"""The share of the machine's memory used by default."""
_FALLBACK: Final = 8 * 2**30
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]i?)?b?", re.ASCII)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
CODED: Final = 6
"""Bytes of memory for each byte of a dictionary-encoded column: its 64-bit codes, and those of the checks."""
ARROW: Final = 4
AS_OBJECTS: Final = 14
"""For each byte of text parsed in Python: JSON lines, and CSV with quotes over several lines."""


@dataclass(slots=True)
class Budget:
    """The remaining memory; inputs that exceed it are refused before they are read."""

    limit: int
    taken: int = 0

    @property
    def left(self) -> int:
        """How many bytes remain."""
        return max(self.limit - self.taken, 0)

    def take(self, where: str, size: int) -> None:
        """Reserve memory; raise InputError if there is not enough."""
        if size > self.left:
            raise InputError(
                f"{where}: auditing it would take more memory than the {spelt(self.limit)} allowed; raise max_memory "
                "(--max-memory) if the machine has more, or audit a shorter stretch of release, truth and trace"
            )
        self.taken += size


_CURRENT: ContextVar[Budget | None] = ContextVar("memory of the audit", default=None)


@contextmanager
def limited(max_memory: Any) -> Iterator[Budget]:
    """Share one budget among everything read inside."""
    budget = Budget(size_of(max_memory))
    before = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(before)


def current() -> Budget:
    """Return the budget of the audit, or a new one outside an audit."""
    return _CURRENT.get() or Budget(size_of(None))


def size_of(size: Any) -> int:
    """Read a size: bytes, text such as "8 GB" (1 GB is 1024³ bytes), or None for half of the machine's memory."""
    if size is None:
        return _machine()
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = _SIZE.fullmatch(size.strip().lower()) if isinstance(size, str) else None
    if found is None or not float(found[1]):
        raise PolicyError('max_memory: give a number of bytes, or text such as "8 GB"')
    return int(float(found[1]) * 1024 ** _POWERS[(found[2] or "").removesuffix("i")])


def _machine() -> int:
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE)
    except (ValueError, OSError, AttributeError):
        return _FALLBACK


def spelt(size: int) -> str:
    """Format a size."""
    for unit, power in (("GB", 3), ("MB", 2), ("kB", 1)):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} bytes"
