"""Labels that are computed from a value: cells, bins, networks, and parts of host names."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from shoal.errors import PolicyError, missing_extra

KINDS: Final = ("geo", "bins", "ip", "hosts")
_CELLS: Final = (0.01, 0.1, 1, 10)
_V4, _V6 = (24, 16, 8), (64, 48, 32)
_DECIMAL: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?\s*", re.ASCII)
_LONGEST: Final = 100


class Cells:
    """One or two numbers with a comma between them, each in ranges of ever larger widths."""

    def __init__(self, widths: Sequence[Any], limits: Sequence[int | None], root: str, name: str) -> None:
        try:
            self._widths = [Fraction(str(width)) for width in widths]
        except (ValueError, ZeroDivisionError):
            raise PolicyError(f"{name}: widths of cells must be numbers") from None
        self._limits, self._root = limits, root

    def path(self, value: str) -> tuple[str, ...]:
        """Return the value, its cells, then the root; nothing for other texts."""
        texts = value.split(",") if len(self._limits) > 1 else [value]
        if len(value) > _LONGEST or len(texts) != len(self._limits) or not all(map(_DECIMAL.fullmatch, texts)):
            return ()
        numbers = [Fraction(text.strip()) for text in texts]
        if any(limit is not None and abs(one) > limit for one, limit in zip(numbers, self._limits, strict=True)):
            return ()
        cells = [",".join(_range(one, width) for one in numbers) for width in self._widths]
        return (value, *cells, self._root)


def _range(number: Fraction, width: Fraction) -> str:
    low = math.floor(number / width) * width
    return f"{_digits(low)}…{_digits(low + width)}"


def _digits(number: Fraction) -> str:
    """Write a number with as many decimals as it needs."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    whole = abs(int(number * 10**places))
    text = str(whole) if not places else f"{whole // 10**places}.{whole % 10**places:0{places}d}"
    return f"-{text}" if number < 0 else text


class Networks:
    """Addresses under networks, the longest prefix first."""

    def __init__(self, v4: Sequence[int], v6: Sequence[int], root: str) -> None:
        self._lengths, self._root = {4: v4, 6: v6}, root

    def path(self, value: str) -> tuple[str, ...]:
        """Return the value, its networks, then the root; nothing for other texts."""
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return ()
        if "%" in value:
            return ()
        bits, number = address.max_prefixlen, int(address)
        kind = ipaddress.IPv4Address if bits == 32 else ipaddress.IPv6Address
        lengths = self._lengths[address.version]
        networks = [f"{kind(number >> (bits - one) << (bits - one))}/{one}" for one in lengths]
        return (value, *networks, self._root)


class Hosts:
    """Host names; what is above them ends at their public suffix."""

    def __init__(self, root: str) -> None:
        try:
            from publicsuffixlist import PublicSuffixList  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise missing_extra('hierarchy "hosts"', package="publicsuffixlist", extra="hosts") from None
        self._list, self._root = PublicSuffixList(), root

    def path(self, value: str) -> tuple[str, ...]:
        """Return the name, shorter ones down to the public suffix, then the root; nothing for other texts."""
        if not value or len(value) > 253 or "" in value.split("."):
            return ()
        ending = self._list.publicsuffix(value.lower()) or value.rpartition(".")[2]
        names = [value]
        while len(names[-1]) > len(ending):
            names.append(names[-1].partition(".")[2])
        return (*names, self._root)


def read_computed(spec: Mapping[str, Any], root: str, name: str) -> Cells | Networks | Hosts:
    """Build what ``{kind = "geo"}`` and the like describe."""
    kind = spec["kind"]
    if kind == "geo":
        return Cells(spec.get("cells", _CELLS), (90, 180), root, name)
    if kind == "bins":
        if not isinstance(spec.get("widths"), Sequence):
            raise PolicyError(f"{name}: widths is missing")
        return Cells(spec["widths"], (None,), root, name)
    return Networks(spec.get("v4", _V4), spec.get("v6", _V6), root) if kind == "ip" else Hosts(root)
