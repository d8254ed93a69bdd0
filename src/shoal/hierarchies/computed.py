"""Paths computed from a value: cells on the globe, bins of numbers, prefixes of addresses, parts of host names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Final, Protocol

from shoal.errors import PolicyError, missing_extra
from shoal.hierarchies.separated import Separated

BETWEEN: Final = "…"
_LONGEST: Final = 100
"""Longer texts are no coordinates, numbers or addresses."""
_LONGEST_HOST: Final = 253
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_MOST_LEVELS: Final = 16


class PathRule(Protocol):
    """Computes the labels above a value."""

    kind: ClassVar[str]

    def labels(self, value: str) -> list[str] | None:
        """Labels above the value and below the root, finest first; None for a text that is not such a value."""

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain values."""


class GeoCells:
    """``latitude,longitude`` in degrees, in cells of ever larger sizes."""

    kind: ClassVar[str] = "geo"

    def __init__(self, cells: Iterable[float | str] = ("0.01", "0.1", "1", "10")) -> None:
        self._sizes = _sizes("cells", cells)
        if self._sizes[-1] > 180:
            raise PolicyError("hierarchy: cells must not be larger than 180 degrees")

    def labels(self, value: str) -> list[str] | None:
        parts = value.split(",") if len(value) <= _LONGEST else []
        numbers = [_number(part) for part in parts]
        if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
            return None
        latitude, longitude = numbers[0], numbers[1]
        if abs(latitude) > 90 or abs(longitude) > 180:
            return None
        return [f"{_bin(latitude, size)},{_bin(longitude, size)}" for size in self._sizes]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "cells": [str(size) for size in self._sizes]}


class NumberBins:
    """Numbers, in bins of ever larger widths that begin at multiples of their width."""

    kind: ClassVar[str] = "bins"

    def __init__(self, widths: Iterable[float | str]) -> None:
        self._widths = _sizes("widths", widths)

    def labels(self, value: str) -> list[str] | None:
        number = _number(value) if len(value) <= _LONGEST else None
        return None if number is None else [_bin(number, width) for width in self._widths]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "widths": [str(width) for width in self._widths]}


class IpPrefixes:
    """IPv4 and IPv6 addresses, in networks of ever shorter prefixes."""

    kind: ClassVar[str] = "ip"

    def __init__(self, v4: Iterable[int] = (24, 16, 8), v6: Iterable[int] = (64, 48, 32)) -> None:
        self._prefixes = {4: _prefixes("v4", v4, 32), 6: _prefixes("v6", v6, 128)}

    def labels(self, value: str) -> list[str] | None:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return None
        if getattr(address, "scope_id", None) is not None:
            return None
        network: Any = ipaddress.IPv4Network if address.version == 4 else ipaddress.IPv6Network
        return [str(network((int(address), length), strict=False)) for length in self._prefixes[address.version]]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "v4": list(self._prefixes[4]), "v6": list(self._prefixes[6])}


class HostNames:
    """Host names up to their public suffix: ``a.example.co.uk``, ``example.co.uk``, ``co.uk``."""

    kind: ClassVar[str] = "hosts"

    def __init__(self) -> None:
        self._suffixes = _public_suffixes()

    def labels(self, value: str) -> list[str] | None:
        parts = value.split(".")
        if not value or len(value) > _LONGEST_HOST or not all(parts):
            return None
        suffix = self._suffixes.publicsuffix(value.lower()) or parts[-1]
        kept = len(parts) - suffix.count(".") - 1
        return [".".join(parts[at:]) for at in range(1, kept + 1)]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


_RULES: Final[dict[str, type[PathRule]]] = {
    rule.kind: rule for rule in (Separated, GeoCells, NumberBins, IpPrefixes, HostNames)
}


def rule_from_dict(content: Mapping[str, Any]) -> PathRule | None:
    """The rule that to_dict wrote; None if no rule is of this kind."""
    rule = _RULES.get(content["kind"])
    parameters = {name: value for name, value in content.items() if name not in ("kind", "root")}
    return None if rule is None else rule(**parameters)


@lru_cache(maxsize=1)
def _public_suffixes() -> Any:
    try:
        from publicsuffixlist import PublicSuffixList  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise missing_extra("a hierarchy of host names", package="publicsuffixlist", extra="hosts") from None
    return PublicSuffixList()


def _number(text: str) -> Decimal | None:
    plain = text.strip(" \t\n\r\f\v")
    return Decimal(plain) if _NUMBER.fullmatch(plain) else None


def _sizes(name: str, given: Iterable[float | str]) -> tuple[Decimal, ...]:
    """Sizes in ascending order, each a multiple of the one before, so that cells are nested."""
    listed = [] if isinstance(given, str) else [_number(str(one)) for one in given]
    sizes = [Decimal(_plain(one)) for one in listed if one is not None and one > 0]
    if not sizes or len(sizes) < len(listed) or len(sizes) > _MOST_LEVELS:
        raise PolicyError(f"hierarchy: {name} must be numbers above 0, at least one and at most {_MOST_LEVELS}")
    for smaller, larger in pairwise(sizes):
        if larger <= smaller or larger % smaller:
            raise PolicyError(
                f"hierarchy: {name} must grow, each a multiple of the one before, so that cells are nested"
            )
    return tuple(sizes)


def _prefixes(name: str, given: Iterable[int], longest: int) -> tuple[int, ...]:
    lengths = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    is_sound = all(isinstance(one, int) and not isinstance(one, bool) and 0 < one < longest for one in lengths)
    if not lengths or not is_sound or list(lengths) != sorted(set(lengths), reverse=True):
        raise PolicyError(
            f"hierarchy: {name} must be prefix lengths below {longest}, longest first, such as [24, 16, 8]"
        )
    return lengths


def _bin(number: Decimal, width: Decimal) -> str:
    with localcontext() as context:
        context.prec = 3 * _LONGEST
        low = (number / width).to_integral_value(rounding=ROUND_FLOOR) * width
        return f"{_plain(low)}{BETWEEN}{_plain(low + width)}"


def _plain(number: Decimal) -> str:
    """Without an exponent or trailing zeros."""
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
