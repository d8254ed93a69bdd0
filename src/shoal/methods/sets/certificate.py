"""The certificate of a release of sets: the guarantee for each size, and the counts or samples it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shoal.errors import RunError
from shoal.methods.sets.search import Search
from shoal.methods.sets.settings import Adversary, KmSettings, Recoding, Sampler
from shoal.models.sample_size import Bound


class NotCertified(RunError):
    """The records do not meet the guarantee, and merging more blocks was not allowed."""


@dataclass(frozen=True, slots=True)
class SizeCertificate:
    """The guarantee for the itemsets of one size."""

    size: int
    k: int
    how: Literal["counted", "sampled", "empty"]
    """Counted, sampled, or empty: no record has that many items."""
    adversary: str
    """Whose itemsets: "itemset" or "person" where sampled, "everyone" where counted."""
    sigma: float
    """1 where counted."""
    bound: Bound | None = None
    epsilon: float = 0.0
    delta: float = 0.0
    """Shared by all attempts of this size; 0 where counted."""
    enough: int = 0
    """Samples needed if there were only one attempt."""
    attempts: int = 0
    drawn: int = 0
    """Samples drawn in all attempts."""
    passed: int = 0
    """Samples drawn in the last attempt; all of them passed."""

    @property
    def statement(self) -> str:
        """The guarantee in words."""
        if self.how == "empty":
            return f"size {self.size}: no record has {self.size} items."
        if self.how == "counted":
            return (
                f"size {self.size}, counted: every itemset that anyone has matches at least {self.k} published records."
            )
        whose = "all itemsets" if self.adversary == "itemset" else "the itemsets of a randomly picked person"
        return (
            f"size {self.size}, sampled: with confidence {1 - self.delta:.6g} over the random draws, at most "
            f"{self.epsilon:.4%} of {whose} match fewer than {self.k} published records."
        )


@dataclass(frozen=True, slots=True)
class Certificate:
    """The guarantee of a release: one entry per size, two where both adversaries are asked for."""

    sizes: tuple[SizeCertificate, ...]
    m: int
    seed: int
    sampler: Sampler
    adversary: Adversary
    joint: bool
    """Whether the confidences hold for all sizes at once (δ is split between them) or for each size separately."""
    records: int
    fingerprint: str
    """Digest of the data it was made for."""
    recoding: Recoding = "global"
    """Whether an item is published alike in all records, or in each record as precisely as possible."""

    def __iter__(self) -> Iterator[SizeCertificate]:
        return iter(self.sizes)

    @property
    def statement(self) -> str:
        """The whole guarantee in words."""
        together = "for all sizes at once" if self.joint else "for each size separately"
        lines = [one.statement for one in self.sizes]
        sampled = any(one.how == "sampled" for one in self.sizes)
        lines.append(f"The confidence holds {together}." if sampled else "No size was sampled.")
        if self.recoding == "local":
            lines.append(
                "Each record has labels of its own precision: the records that match are those with the very labels "
                "under which the known items are published in the person's record."
            )
        lines.append("The guarantee covers this release only, not comparisons with other releases of the same people.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and texts to publish, without the fingerprint, which would confirm a guess of the data."""
        omitted = {"fingerprint"} if self.recoding == "local" else {"fingerprint", "recoding"}
        return {name: value for name, value in asdict(self).items() if name not in omitted}


class Certifier:
    """Certifies the partition of a search with fresh samples; where one fails, it merges blocks and starts again.

    Samples are always exact: how far a Markov chain is from uniform is unknown, and a convergence test proves nothing.
    Sizes are certified in ascending order. Merging blocks for a later size only adds people to the itemsets of an
    earlier one, so earlier results stay valid.
    """

    def __init__(self, search: Search, settings: KmSettings, *, counted: frozenset[int], may_join: bool) -> None:
        self._search = search
        self._settings = settings
        self._counted = counted
        self._may_join = may_join

    def certify(self) -> Certificate:
        """The certificate; raises NotCertified where the guarantee does not hold."""
        settings, data = self._settings, self._search.data
        sizes: list[SizeCertificate] = []
        for size in range(1, settings.m + 1):
            self._search.report("certifying", size)
            if size > data.longest:
                sizes.append(SizeCertificate(size, settings.crowds[size - 1], "empty", settings.adversary, 1.0))
            elif size in self._counted:
                sizes.append(self._count(size))
            else:
                sizes += [self._sample(size, by_person=by_person) for by_person in settings.by_person]
        return Certificate(
            tuple(sizes), settings.m, settings.seed, settings.sampler, settings.adversary, settings.joint, len(data),
            data.fingerprint.hex(),
        )  # fmt: skip

    def _count(self, size: int) -> SizeCertificate:
        k = self._settings.crowds[size - 1]
        if not self._search.count_again(size):
            if not self._may_join:
                raise NotCertified(f"size {size}: itemsets were found that fit fewer than {k} records")
            self._search.enforce_counted(size, "certify")
        return SizeCertificate(size, k, "counted", "everyone", 1.0)

    def _sample(self, size: int, *, by_person: bool) -> SizeCertificate:
        promise, share, drawn, attempt = self._settings.promise(size), self._share, 0, 0
        while True:
            attempt += 1
            draws = self._search.draws(size, "certify", attempt, by_person=by_person, samples_only=True)
            assert draws is not None  # some set is large enough
            result = self._search.draw(draws, wanted=promise.samples_in(attempt, share=share))
            drawn += result.passed + (result.violation is not None)
            if result.violation is None:
                return SizeCertificate(
                    size, draws.k, "sampled", "person" if by_person else "itemset", promise.sigma, promise.bound,
                    promise.epsilon, promise.delta / share, promise.samples_of(share), attempt, drawn, result.passed,
                )  # fmt: skip
            if not self._may_join:
                raise NotCertified(f"size {size}: a sample was found that fits fewer than {draws.k} records")
            self._search.repair(result.violation, draws.k)

    @property
    def _share(self) -> int:
        """Number of guarantees that share δ."""
        if not self._settings.joint:
            return 1
        sampled = [size for size in range(1, self._settings.m + 1) if size not in self._counted]
        return max(len(sampled) * len(self._settings.by_person), 1)
