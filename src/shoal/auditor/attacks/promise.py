"""What attackers of rows know: the quasi-identifiers that a policy promises something about."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.auditor.flexible.promise import FlexiblePromise, read_flexible_promise
from shoal.auditor.policy import METHODS, Policy
from shoal.auditor.tuples.promise import TuplePromise, read_tuple_promise
from shoal.errors import PolicyError


def has_quasi_identifiers(method: str) -> bool:
    """Whether a method publishes rows with quasi-identifiers, rather than values or sets."""
    return METHODS.get(method) not in ("z", "sets")


def read_row_promise(policy: Policy) -> TuplePromise | FlexiblePromise:
    """Read the promise of a policy for rows with quasi-identifiers."""
    is_flexible = policy.section("anonymize").get("method") == "flexible-k"
    return read_flexible_promise(policy) if is_flexible else read_tuple_promise(policy)


def check_knows(knows: Sequence[str] | None, promise: TuplePromise | FlexiblePromise) -> None:
    """Refuse names of columns that are no quasi-identifiers."""
    quasi = [rule.name for rule in promise.quasi]
    unknown = [name for name in knows or () if name not in quasi]
    if unknown:
        raise PolicyError(
            f"knows: {', '.join(unknown)} is not a quasi-identifier of the policy; choose from {', '.join(quasi)}"
        )
    if knows is not None and not knows:
        raise PolicyError("knows: name at least one quasi-identifier")
