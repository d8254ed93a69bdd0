"""A probability with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probability:
    """A probability and numbers it lies between.

    With `confidence` 1 the bounds are proven of the model's formula; below it they are a confidence interval over what
    was drawn.
    """

    value: float
    lower: float
    upper: float
    method: str
    confidence: float = 1.0
    coverage: float = 1.0
    """How much of all combinations was looked at, by probability."""
    by_class: tuple[Probability, ...] = ()
    """The same for a person of each class, where there are several."""

    def __float__(self) -> float:
        return self.value
