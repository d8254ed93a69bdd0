"""The points of a grid, exactly: multiples of the step as the policy writes it, counted from ``low``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_LARGEST: Final = 2**51
_SIMPLE: Final = 2**31
_MOST: Final = 2**50


def written(number: float) -> Fraction:
    """Return a number as it is printed: 0.1 is one tenth."""
    return Fraction(repr(float(number)))


def simplest(number: float) -> Fraction:
    """Return the simple fraction closest to a number, such as 1/3; the number as printed if there is none."""
    near = Fraction(number).limit_denominator(_SIMPLE)
    return near if float(near) == number else written(number)


@dataclass(frozen=True, slots=True)
class Points:
    """The points ``low + n * step``; a float is a point if it is the nearest one to the exact multiple."""

    first: int
    step: int
    parts: int
    """``first`` and ``step`` are multiples of 1 / ``parts``."""

    @classmethod
    def between(cls, low: Fraction, step: Fraction) -> Points:
        """Make the points of a grid."""
        parts = math.lcm(low.denominator, step.denominator)
        return cls(int(low * parts), int(step * parts), parts)

    @classmethod
    def of(cls, low: float, high: float, step: float, scale: int = 1) -> Points:
        """Make the points of a policy's grid, multiplied by ``scale``.

        Raise ValueError if they have too many digits to be distinguished.
        """
        reach = max(abs(written(low)), abs(written(high)))
        for read in (written, simplest):
            found = cls.between(read(low), read(step))
            fits = found.parts < _LARGEST and reach * found.parts + found.step < _LARGEST
            if fits and (high - low) / step <= _MOST:
                return cls.between(
                    Fraction(found.first, found.parts) * scale, Fraction(found.step, found.parts) * scale
                )
        raise ValueError("too many digits")

    def point(self, number: int) -> float:
        """Return the float nearest to a point; Python divides whole numbers with one rounding."""
        return (self.first + number * self.step) / self.parts

    def below(self, value: float) -> int:
        """Return the number of the last point that is not above a value."""
        top, bottom = value.as_integer_ratio()
        number = (top * self.parts - self.first * bottom) // (self.step * bottom)
        return number + 1 if self.point(number + 1) <= value else number - 1 if self.point(number) > value else number

    def number(self, value: float) -> int | None:
        """Return the number of the point at a value; None if the value is not a point."""
        number = self.below(value)
        return number if self.point(number) == value else None


def each(values: Floats, answer: Callable[[float], Any], kind: Any) -> Any:
    """Call ``answer`` once for every different value; NaN and infinity give 0."""
    finite = np.isfinite(values)
    different, turn = np.unique(values[finite], return_inverse=True)
    found = np.zeros(len(values), kind)
    found[finite] = np.array([answer(value) for value in different.tolist()], kind)[turn]
    return found


def on_points(values: Floats, points: Points) -> Bools:
    """Return which values are points."""
    found: Bools = each(values, lambda value: points.number(value) is not None, np.bool_)
    return found


def cells_of(values: Floats, points: Points) -> Ints:
    """Return the number of the last point not above each value."""
    found: Ints = each(values, points.below, np.int64)
    return found
