"""Find the sparse quasi-identifiers, and how many people must share them (K_s)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import people_of
from shoal.auditor.findings import Notes
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.flexible.values import true_codes
from shoal.auditor.policy import is_number
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.rows.attributes import Attribute, Labels

_LEAST: Final = 2
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Records:
    """The truth's records: person, whether it is usable, and the k it needs."""

    person: Ints
    usable: Bools
    k: Ints


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


def calibrate(
    promise: FlexiblePromise,
    attributes: Sequence[Attribute],
    records: Records | None,
    claims: Sequence[Mapping[str, Any]],
    notes: Notes,
    came: int | None = None,
) -> Calibration:
    """Compute what was promised; without the truth (no records) use what the trace claims, and report that.

    The sparse columns are fixed before the first release, by the first window or the part of it that had come.
    """
    shares = None if records is None else _shares(promise, attributes, records, came)
    sparse = _sparse(promise, attributes, shares, claims, notes)
    used: tuple[float, ...] | None = None
    given = promise.k_s
    if promise.p_sparse is not None:
        used = (promise.p_sparse,) * len(sparse)
    elif shares is not None:
        used = tuple(shares[name] for name in sparse)
    elif given is None and sparse:
        used, given = _claimed_share(claims, len(sparse)), _claimed_k_s(claims)
        source = "taken from the trace" if used or given else f"taken to be {_LEAST}, the least there is"
        notes.skip(f"K_s was not computed but {source}: no truth.")
    found = Calibration(sparse, used, given, promise.floor)
    notes.metrics["sparse"] = ", ".join(sparse) or None
    notes.metrics["p_sparse"] = None if used is None or not used else max(used)
    notes.metrics["k"] = promise.k
    notes.metrics["k_s"] = int(found.k_s(np.array([promise.k]))[0])
    return found


def _shares(
    promise: FlexiblePromise, attributes: Sequence[Attribute], records: Records, came: int | None
) -> dict[str, float]:
    """Return, by column, the share of the first records whose value fewer than k people have."""
    first = np.flatnonzero(records.usable)[: promise.window if came is None else min(promise.window, max(came, 0))]
    person, k = records.person[first], records.k[first]
    return {attribute.name: _share(true_codes(attribute)[first], person, k) for attribute in attributes}


def _share(value: Ints, person: Ints, k: Ints) -> float:
    if not len(value):
        return 0.0
    value = np.unique(value, return_inverse=True)[1]
    return float((people_of(value, person)[value] < k).mean())


def _sparse(
    promise: FlexiblePromise,
    attributes: Sequence[Attribute],
    shares: Mapping[str, float] | None,
    claims: Sequence[Mapping[str, Any]],
    notes: Notes,
) -> tuple[str, ...]:
    if promise.sparse is not None:
        return promise.sparse
    found = []
    claimed = claimed_sparse(claims)
    for attribute in attributes:
        tag = promise.tag(attribute.name)
        if tag is not None or not isinstance(attribute, Labels):
            is_sparse = tag == "sparse"
        elif shares is not None:
            is_sparse = shares[attribute.name] >= promise.threshold
        else:
            # Benefit of the doubt: a column that may be sparse needs the lower number only.
            is_sparse = claimed is None or attribute.name in claimed
            notes.skip("Which quasi-identifiers are sparse was not computed: no truth.")
        if is_sparse:
            found.append(attribute.name)
    # Groups need a normal column: if all were sparse, the first is not.
    return tuple(found if len(found) < len(attributes) else found[1:])


def read_claims(texts: Sequence[bytes]) -> list[Mapping[str, Any]]:
    """Read the promise recorded in the trace; ignore anything that is not a table."""
    claims: list[Mapping[str, Any]] = []
    for text in texts:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, Mapping):
            claims.append(found)
    return claims


def claimed_sparse(claims: Sequence[Mapping[str, Any]]) -> set[str] | None:
    """Return the columns that are sparse according to the trace; None: not recorded."""
    named = [claim["sparse"] for claim in claims if isinstance(claim.get("sparse"), list)]
    return {str(name) for names in named for name in names} if named else None


def _claimed_share(claims: Sequence[Mapping[str, Any]], columns: int) -> tuple[float, ...] | None:
    claimed = [claim["p_sparse"] for claim in claims if is_number(claim.get("p_sparse"))]
    return (float(min(claimed)),) * columns if claimed else None


def _claimed_k_s(claims: Sequence[Mapping[str, Any]]) -> int | None:
    """Return K_s according to the trace, if it records no share to compute it from."""
    if _claimed_share(claims, 1) is not None:
        return None
    claimed = [claim["k_s"] for claim in claims if is_number(claim.get("k_s"))]
    return int(min(claimed)) if claimed else None


def check_claims(
    claims: Sequence[Mapping[str, Any]], promise: FlexiblePromise, found: Calibration, notes: Notes
) -> None:
    """Check that the run did not apply less than was promised."""
    k = _least(claims, "k", promise.k)
    notes.violation("k-lowered", "The trace says that a lower k was in force than promised.", count=int(k < promise.k))
    promised = int(found.k_s(np.array([promise.k]))[0])
    notes.violation(
        "k-s-lowered",
        "The trace says that a lower K_s was in force than follows from the policy and the truth.",
        count=int(bool(found.sparse) and _least(claims, "k_s", promised) < promised),
    )
    more = (claimed_sparse(claims) or set()) - set(found.sparse)
    notes.violation("sparse-differs", "The trace calls a quasi-identifier sparse that is not sparse.", count=len(more))


def _least(claims: Sequence[Mapping[str, Any]], key: str, otherwise: int) -> float:
    return min((claim[key] for claim in claims if is_number(claim.get(key))), default=otherwise)
