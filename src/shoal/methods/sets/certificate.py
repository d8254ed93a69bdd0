"""What a release of sets promises, size by size, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shoal.methods.sets.settings import Adversary, Sampler
from shoal.models.sample_size import Bound

How = Literal["counted", "sampled", "empty"]


@dataclass(frozen=True, slots=True)
class SizeCertificate:
    """What is known of the itemsets of one size."""

    size: int
    k: int
    how: How
    """Counted, sampled, or empty: nobody has so many items."""
    adversary: str
    """Whose itemsets: of "itemset" or "person" where sampled, of everyone where counted."""
    sigma: float
    """1 where counted."""
    bound: Bound | None = None
    epsilon: float = 0.0
    delta: float = 0.0
    """What all attempts of this size may use; nothing where counted."""
    enough: int = 0
    """Samples that would do if there were but one attempt."""
    attempts: int = 0
    drawn: int = 0
    """Samples drawn in all attempts."""
    passed: int = 0
    """Samples drawn in the last attempt, of which every one passed."""

    @property
    def statement(self) -> str:
        """The promise in words."""
        if self.how == "empty":
            return f"size {self.size}: nobody has so many items."
        if self.how == "counted":
            return (
                f"size {self.size}: counted: every itemset that anybody has fits at least {self.k} published records."
            )
        whose = "of all itemsets of this size" if self.adversary == "itemset" else "of the itemsets of a person picked"
        return (
            f"size {self.size}: sampled: with confidence {1 - self.delta:.6g} over the sampler's coins at most "
            f"{self.epsilon:.6g} {whose} fit fewer than {self.k} published records."
        )


@dataclass(frozen=True, slots=True)
class Certificate:
    """The promise of a release: one entry a size, two where both adversaries are asked for."""

    sizes: tuple[SizeCertificate, ...]
    m: int
    seed: int
    sampler: Sampler
    adversary: Adversary
    joint: bool
    """Whether the confidences hold for all sizes at once (δ is shared out) or for each by itself."""
    records: int
    fingerprint: str
    """Of the data it was made for."""

    def __iter__(self) -> Iterator[SizeCertificate]:
        return iter(self.sizes)

    @property
    def statement(self) -> str:
        """The whole promise in words."""
        together = "jointly for all sizes" if self.joint else "for each size by itself"
        lines = [one.statement for one in self.sizes]
        sampled = any(one.how == "sampled" for one in self.sizes)
        lines.append(f"The confidence holds {together}." if sampled else "Nothing rests on chance.")
        lines.append("It holds for this release alone, not for several compared with one another.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts to publish: without the fingerprint, which would confirm a guess of the data."""
        return {name: value for name, value in asdict(self).items() if name != "fingerprint"}
