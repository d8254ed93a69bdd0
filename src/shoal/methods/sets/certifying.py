"""Certifying: fresh samples on the partition as it stands; where one fails, blocks are joined and it begins again."""

from __future__ import annotations

from shoal.errors import RunError
from shoal.methods.sets.certificate import Certificate, SizeCertificate
from shoal.methods.sets.search import Search
from shoal.methods.sets.settings import KmSettings


class NotCertified(RunError):
    """The records do not hold what is asked for, and blocks were not to be joined any further."""


class Certifier:
    """Makes the certificate of a search's partition.

    Samples are always exact ones: how far a Markov chain is from uniform nobody knows, and a test that finds it at rest
    proves nothing.

    Sizes come one after another. Joining blocks for a later size only adds people to the itemsets of an earlier one,
    so what was certified stays so.
    """

    def __init__(self, search: Search, settings: KmSettings, *, counted: frozenset[int], may_join: bool) -> None:
        self._search = search
        self._settings = settings
        self._counted = counted
        self._may_join = may_join

    def certify(self) -> Certificate:
        """The certificate; raises NotCertified where it could not be made."""
        settings, data = self._settings, self._search.data
        sizes: list[SizeCertificate] = []
        for size in range(1, settings.m + 1):
            self._search.tell("certifying", size)
            if size > data.longest:
                sizes.append(SizeCertificate(size, settings.k[size - 1], "empty", settings.adversary, 1.0))
            elif size in self._counted:
                sizes.append(self._count(size))
            else:
                sizes += [self._sample(size, by_person=by_person) for by_person in settings.by_person]
        return Certificate(
            tuple(sizes), settings.m, settings.seed, settings.sampler, settings.adversary, settings.joint, len(data),
            data.fingerprint.hex(),
        )  # fmt: skip

    def _count(self, size: int) -> SizeCertificate:
        k = self._settings.k[size - 1]
        if not self._search.count_again(size):
            if not self._may_join:
                raise NotCertified(f"size {size}: itemsets were found that fit fewer than {k} records")
            self._search.settle_counted(size, "certify")
        return SizeCertificate(size, k, "counted", "everyone", 1.0)

    def _sample(self, size: int, *, by_person: bool) -> SizeCertificate:
        settings, drawn, attempt = self._settings, 0, 0
        promise, share = settings.promise(size), self._share
        while True:
            attempt += 1
            draw = self._search.drawing(size, "certify", attempt, by_person=by_person, samples_only=True)
            assert draw is not None  # somebody has so many items
            wanted = promise.samples_in(attempt, share=share)
            result = self._search.draw(draw, wanted=wanted)
            drawn += result.passed + (result.violation is not None)
            if result.violation is None:
                return SizeCertificate(
                    size, draw.k, "sampled", "person" if by_person else "itemset", promise.sigma, promise.bound,
                    promise.epsilon, promise.delta / share, promise.samples_of(share), attempt, drawn, result.passed,
                )  # fmt: skip
            if not self._may_join:
                raise NotCertified(f"size {size}: a sample was found that fits fewer than {draw.k} records")
            self._search.mend(result.violation, draw.k)

    @property
    def _share(self) -> int:
        """How many promises share δ."""
        if not self._settings.joint:
            return 1
        sampled = [size for size in range(1, self._settings.m + 1) if size not in self._counted]
        return max(len(sampled) * len(self._settings.by_person), 1)
