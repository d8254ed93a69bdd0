"""What is fixed before the first release: the sparse quasi-identifiers, and how many people must share them (K_s)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import dense, people_of
from shoal.auditor.findings import Notes
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.policy import is_number
from shoal.auditor.reading.columns import Ints

_LEAST: Final = 2
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class FirstRecords:
    """The usable records of the first window, or of the part of it that came before the first release."""

    person: Ints
    k: Ints
    """The k that each needs."""
    values: Mapping[str, Ints]
    """By quasi-identifier: a number for every different true value, and for null."""

    def rare_shares(self) -> dict[str, float]:
        """Return, by column, the share of the records whose value fewer than k people have: P(s)."""
        return {name: self._rare_share(dense(value)) for name, value in self.values.items()}

    def _rare_share(self, value: Ints) -> float:
        return float((people_of(value, self.person)[value] < self.k).mean()) if len(value) else 0.0


@dataclass(frozen=True, slots=True)
class Claims:
    """What the trace says that the run applied; of several parts the least."""

    k: float | None
    k_s: float | None
    p_sparse: float | None
    sparse: frozenset[str] | None
    """None: the trace does not say."""
    are_there: bool

    @classmethod
    def read(cls, texts: Sequence[bytes]) -> Claims:
        """Read what is recorded in the trace; ignore anything that is not a table."""
        found = [claim for text in texts if isinstance(claim := _parsed(text), Mapping)]
        numbers = {
            key: min((claim[key] for claim in found if is_number(claim.get(key))), default=None)
            for key in ("k", "k_s", "p_sparse")
        }
        named = [claim["sparse"] for claim in found if isinstance(claim.get("sparse"), list)]
        sparse = frozenset(str(name) for names in named for name in names) if named else None
        return cls(**numbers, sparse=sparse, are_there=bool(found))


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The sparse columns and K_s, from the policy and the first records."""

    sparse: tuple[str, ...]
    shares: tuple[float, ...] | None
    """P(s) of the sparse columns; None: unknown."""
    given: int | None
    """K_s, if the policy sets it."""
    floor: float

    def k_s(self, k: Ints) -> Ints:
        """Return K_s for every K: the largest of all sparse columns; the lowest possible if P(s) is unknown."""
        if not self.sparse:
            return k
        if self.given is not None:
            return np.minimum(self.given, k)
        if self.shares is None:
            return np.minimum(_LEAST, k)
        largest: Ints = np.maximum.reduce([self._k_s(share, k) for share in self.shares])
        return largest

    def _k_s(self, share: float, k: Ints) -> Ints:
        """If few records are rare, all of them can have K people."""
        if share < self.floor:
            return k
        needed: Ints = np.ceil(share * k - _ROUNDING).astype(np.int64)
        return np.minimum(np.maximum(needed, _LEAST), k)

    def k_s_of(self, k: int) -> int:
        """Return K_s for one K."""
        return int(self.k_s(np.array([k]))[0])


def calibrate(promise: FlexiblePromise, first: FirstRecords | None, claims: Claims, notes: Notes) -> Calibration:
    """Compute what was promised; without the truth (no records) use what the trace claims, and report that."""
    shares = None if first is None else first.rare_shares()
    sparse = _sparse(promise, shares, claims, notes)
    used: tuple[float, ...] | None = None
    given = promise.k_s
    if promise.p_sparse is not None:
        used = (promise.p_sparse,) * len(sparse)
    elif shares is not None:
        used = tuple(shares[name] for name in sparse)
    elif given is None and sparse:
        if claims.p_sparse is not None:
            used = (float(claims.p_sparse),) * len(sparse)
        elif claims.k_s is not None:
            given = int(claims.k_s)
        source = "taken from the trace" if used or given else f"taken to be {_LEAST}, the least there is"
        notes.skip(f"K_s was not computed but {source}: no truth.")
    found = Calibration(sparse, used, given, promise.floor)
    notes.metrics["sparse"] = ", ".join(sparse) or None
    notes.metrics["p_sparse"] = max(used) if used else None
    notes.metrics["k"] = promise.k
    notes.metrics["k_s"] = found.k_s_of(promise.k)
    return found


def _sparse(
    promise: FlexiblePromise, shares: Mapping[str, float] | None, claims: Claims, notes: Notes
) -> tuple[str, ...]:
    if promise.sparse is not None:
        return promise.sparse
    found = []
    for rule in promise.quasi:
        tag = promise.tag(rule.name)
        if tag is not None:
            is_sparse = tag == "sparse"
        elif shares is not None:
            is_sparse = shares[rule.name] >= promise.threshold
        else:
            # Benefit of the doubt: a column that may be sparse needs the lower number only.
            is_sparse = claims.sparse is None or rule.name in claims.sparse
            notes.skip("Which quasi-identifiers are sparse was not computed: no truth.")
        if is_sparse:
            found.append(rule.name)
    # Groups need a normal column: if all were sparse, the first is not.
    return tuple(found if len(found) < len(promise.quasi) else found[1:])
