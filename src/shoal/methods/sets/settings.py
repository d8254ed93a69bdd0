"""What a k^m method was asked for, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from shoal.errors import PolicyError
from shoal.models.sample_size import BOUNDS, Bound, Promise, promise

Adversary = Literal["itemset", "person", "both"]
Sampler = Literal["exact", "chain"]
ADVERSARIES: Final = get_args(Adversary)
SAMPLERS: Final = get_args(Sampler)
MOST_ITEMS: Final = 64
"""The largest m: so many items at once are looked for."""
_MOST_TRIALS: Final = 10_000


@dataclass(frozen=True, slots=True)
class KmSettings:
    """All parameters of a k^m method; ``k`` and ``sigma`` by size."""

    k: tuple[int, ...]
    sigma: tuple[float, ...]
    adversary: Adversary
    bound: Bound
    sampler: Sampler
    counted: str | int
    joint: bool
    trials: int
    seed: int

    @property
    def m(self) -> int:
        """The most items the adversary knows."""
        return len(self.k)

    @property
    def by_person(self) -> tuple[bool, ...]:
        """The adversaries to hold out against: whether each first picks a person."""
        return {"itemset": (False,), "person": (True,), "both": (False, True)}[self.adversary]

    def must_count(self, size: int) -> bool:
        """Whether this size has to be counted, whatever it takes."""
        return (
            self.sigma[size - 1] == 1 or self.counted == "all" or (type(self.counted) is int and size <= self.counted)
        )

    def may_count(self, size: int) -> bool:
        """Whether this size may be counted instead of sampled."""
        return self.must_count(size) or self.counted == "auto"

    def promise(self, size: int) -> Promise:
        """What sampling promises of a size."""
        return promise(self.sigma[size - 1], self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts."""
        return {
            "k": list(self.k), "m": self.m, "sigma": list(self.sigma), "adversary": self.adversary, "bound": self.bound,
            "sampler": self.sampler, "counted": self.counted, "joint": self.joint, "trials": self.trials,
            "seed": self.seed,
        }  # fmt: skip


def check_settings(
    *, k: Any, m: Any, sigma: Any, adversary: Any, bound: Any, sampler: Any, counted: Any, joint: Any, trials: Any,
    seed: Any,
) -> KmSettings:  # fmt: skip
    """Settings, or a PolicyError that names everything that is wrong."""
    problems: list[str] = []
    if not _is_whole(m) or not 1 <= m <= MOST_ITEMS:
        raise PolicyError(f"m: must be a whole number from 1 to {MOST_ITEMS}")
    crowds = _by_size("k", k, m, problems, _is_crowd, "a whole number of at least 2: with 1 nobody hides")
    shares = _by_size("sigma", sigma, m, problems, _is_sigma, "a number from 0.5 to 1; 1 means that all are counted")
    for name, value, known in (
        ("adversary", adversary, ADVERSARIES), ("bound", bound, BOUNDS), ("sampler", sampler, SAMPLERS),
    ):  # fmt: skip
        if value not in known:
            problems.append(f"{name}: must be one of {', '.join(known)}")
    if counted not in ("auto", "all") and not (_is_whole(counted) and 0 <= counted <= m):
        problems.append('counted: must be "auto", "all" or the size up to which itemsets are counted, 0 to m')
    if not isinstance(joint, bool):
        problems.append("joint: must be true or false")
    if not _is_whole(trials) or not 1 <= trials <= _MOST_TRIALS:
        problems.append(f"trials: must be a whole number from 1 to {_MOST_TRIALS}")
    if not _is_whole(seed) or not 0 <= seed < 2**63:
        problems.append("seed: must be a whole number from 0 to 2^63 - 1")
    if problems:
        raise PolicyError(problems)
    return KmSettings(
        tuple(int(one) for one in crowds), tuple(float(one) for one in shares),
        adversary, bound, sampler, counted, joint, trials, seed,
    )  # fmt: skip


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_crowd(value: object) -> bool:
    return _is_whole(value) and 2 <= value < 2**31  # type: ignore[operator]


def _is_sigma(value: object) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and 0.5 <= value <= 1
    )


def _by_size(name: str, given: Any, m: int, problems: list[str], is_right: Any, meaning: str) -> Sequence[Any]:
    values = [given] * m if not isinstance(given, (list, tuple)) else list(given)
    if len(values) != m:
        problems.append(f"{name}: must be one number, or a list of m = {m}, one for every size")
    elif not all(is_right(value) for value in values):
        problems.append(f"{name}: must be {meaning}")
    return values
