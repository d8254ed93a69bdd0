"""Which columns make the groups of the internal store, and by which cells."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from shoal.policy import Policy
from shoal.sanitize.decoys.cells import Normal, is_number
from shoal.schema import Numeric

_HOUR: Final = 3600.0


def normals_of(policy: Policy, schema: pa.Schema) -> list[Normal]:
    """Quasi-identifiers but the sparse ones; a time that only orders records stays in its hour, too."""
    sparse = sparse_columns(policy)
    found = [_normal(role, schema) for role in policy.parameters()["schema"].quasi if role.name not in sparse]
    time = policy.stream.time
    has_role = time in sparse or any(own.name == time for own in found)
    if time is not None and not has_role and is_number(schema.field(time).type):
        found.append(Normal(time, grid=_HOUR, is_grouped=False))
    return found


def sparse_columns(policy: Policy) -> set[str]:
    """What the method counts as sparse: named by the policy, else the columns an ontology describes."""
    named = getattr(policy.anonymize, "sparse", ())
    if isinstance(named, tuple | list):
        return set(named)
    quasi: dict[str, Any] = getattr(policy.anonymize, "quasi", {})
    return {name for name, own in quasi.items() if getattr(own, "kind", "") == "ontology"}


def _normal(role: Any, schema: pa.Schema) -> Normal:
    if not isinstance(role, Numeric):
        return Normal(role.name)
    is_moment = pa.types.is_timestamp(schema.field(role.name).type)
    grid = role.grid if role.grid is not None else (_HOUR if is_moment else None)
    return Normal(role.name, low=float(role.low), grid=None if grid is None else float(grid))
