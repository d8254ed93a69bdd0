"""The parameters of the k^m methods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PlainValidator

from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Given, Settings, is_whole
from shoal.models.sample_size import Bound, Promise, promise

Adversary = Literal["itemset", "person", "both"]
Sampler = Literal["exact", "chain", "paper-chain"]
Recoding = Literal["global", "local"]
MOST_ITEMS: Final = 64
"""The largest m."""


def _crowds(value: Any) -> int | list[int]:
    if not all(is_whole(one) and 2 <= one < 2**31 for one in _listed(value)):
        raise ValueError("must be a whole number of at least 2: with 1 no one is hidden")
    return list(value) if isinstance(value, tuple) else value


def _sigma(value: Any) -> float | list[float]:
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) and 0.5 <= one <= 1
               for one in _listed(value)):  # fmt: skip
        raise ValueError("must be a number from 0.5 to 1; 1 means that all are counted")
    return list(value) if isinstance(value, tuple) else value


def _counted(value: Any) -> Any:
    if value not in ("auto", "all") and not (is_whole(value) and value >= 0):
        raise ValueError(_COUNTED)
    return value


_COUNTED: Final = 'must be "auto", "all" or the size up to which itemsets are counted, 0 to m'


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


Crowds = Annotated[Any, PlainValidator(_crowds)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Items = Annotated[int, Field(ge=1, le=MOST_ITEMS)]


class KmAprioriSettings(Settings):
    """What every k^m method is asked for."""

    k: Crowds = Field(10, description="People who share what is known; or a list, one for every size from 1 to `m`.")
    m: Items = Field(2, description="Items of a person that the adversary knows at most.")
    recoding: Recoding = Field(
        "global",
        description='`"global"` publishes an item alike in all records, `"local"` in each record as precisely as '
        "possible: only with `hierarchy` or `balanced`, and where everything is counted.",
    )

    @classmethod
    def cross_check(cls, given: Given) -> Iterator[Problem]:
        if given.get("recoding") == "local" and not cls.counts_all(given):
            yield ("recoding",), '"local" needs every size counted; set sigma = 1, or use k^m-apriori'
        m = given.get("m", cls.model_fields["m"].default)
        if not is_whole(m) or not 1 <= m <= MOST_ITEMS:
            return
        for name in ("k", "sigma"):
            if isinstance(given.get(name), list | tuple) and len(given[name]) != m:
                yield (name,), f"must be one number, or a list of m = {m}, one for every size"
        if is_whole(given.get("counted")) and given["counted"] > m:
            yield ("counted",), _COUNTED

    @classmethod
    def counts_all(cls, given: Given) -> bool:
        """Whether every size is counted, by these settings."""
        counted, m = given.get("counted"), given.get("m", cls.model_fields["m"].default)
        if "sigma" not in cls.model_fields or counted == "all" or (is_whole(counted) and is_whole(m) and counted >= m):
            return True
        return all(one == 1 for one in _listed(given.get("sigma", cls.model_fields["sigma"].default)))


class KmSettings(KmAprioriSettings):
    """What k^m-anonymity by counting and sampling is asked for."""

    m: Items = Field(5, description="Items of a person that the adversary knows at most.")
    sigma: Annotated[Any, PlainValidator(_sigma)] = Field(
        0.99,
        description="Probability that a known itemset has `k` people; 1 counts all. Or a list by size.",
    )
    adversary: Adversary = Field(
        "itemset",
        description='`"itemset"` knows any itemset equally likely, `"person"` picks a person first, or `"both"`.',
    )
    bound: Bound = Field("exact", description="Number of samples that must pass: exact, or the papers' two bounds.")
    trials: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10, description="Independent searches; the result with the smallest error is used."
    )
    seed: Seed = Field(0, description="Seed of the random draws, used together with the data.")
    counted: Annotated[Any, PlainValidator(_counted)] = Field(
        "auto", description='`"auto"` counts what is affordable, `"all"` everything, a number the sizes up to it.'
    )
    sampler: Sampler = Field(
        "exact",
        description='How the search draws: independent samples, the paper\'s Markov `"chain"`, or the `"paper-chain"` '
        "with its literal test of convergence. Certificates always use exact samples.",
    )
    joint: bool = Field(default=False, description="Whether the confidences hold for all sizes at once.")

    @property
    def crowds(self) -> tuple[int, ...]:
        """The k of every size from 1 to m."""
        return tuple(self.k) if isinstance(self.k, list) else (self.k,) * self.m

    @property
    def confidences(self) -> tuple[float, ...]:
        """The sigma of every size from 1 to m."""
        return tuple(map(float, self.sigma if isinstance(self.sigma, list) else [self.sigma] * self.m))

    @property
    def by_person(self) -> tuple[bool, ...]:
        """The adversaries to protect against: whether each first picks a person."""
        return {"itemset": (False,), "person": (True,), "both": (False, True)}[self.adversary]

    def must_count(self, size: int) -> bool:
        """Whether this size has to be counted, whatever it costs."""
        return self.confidences[size - 1] == 1 or self.counted == "all" or (
            type(self.counted) is int and size <= self.counted
        )  # fmt: skip

    def may_count(self, size: int) -> bool:
        """Whether this size may be counted instead of sampled."""
        return self.must_count(size) or self.counted == "auto"

    def promise(self, size: int) -> Promise:
        """What sampling promises of a size."""
        return promise(self.confidences[size - 1], self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for the certificate."""
        # A key left at its default does not count, so that certificates made before it existed stay valid.
        recoding = {} if self.recoding == "global" else {"recoding": self.recoding}
        return {
            "k": list(self.crowds), "m": self.m, "sigma": list(self.confidences), "adversary": self.adversary,
            "bound": self.bound, "sampler": self.sampler, "counted": self.counted, "joint": self.joint,
            "trials": self.trials, "seed": self.seed, **recoding,
        }  # fmt: skip
