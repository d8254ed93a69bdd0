"""What a tuple method promises of every published row."""

from __future__ import annotations

from typing import Final

from shoal.methods.base import Guarantee
from shoal.methods.tuples.settings import TupleSettings

_PROMISES: Final = {
    "strict": (
        "every published combination of quasi-identifiers, missing values included, is shared by at least {k} "
        "different people, and each attribute shown was carried by at least {carriers} of them"
    ),
    "common": (
        "every published combination of quasi-identifiers, missing values included, is shared by at least {k} "
        "different people, all of whom carried what is shown"
    ),
    "paper": (
        "every row was generalized together with rows of at least {k} different people; which attributes are missing "
        "still tells rows apart, so this is not k-anonymity"
    ),
}


def guarantee_of(method: str, settings: TupleSettings) -> Guarantee:
    """The guarantee of a method with these settings."""
    deadline = int(settings.deadline) if settings.KEEPS_DEADLINE else None
    in_arrivals = None if settings.is_timed else deadline
    return Guarantee(
        method=method,
        statement=_statement(settings),
        parameters=settings.describe(),
        max_delay_ns=deadline if settings.is_timed else None,
        max_pending=in_arrivals,
        max_delay_arrivals=in_arrivals,
    )


def _statement(settings: TupleSettings) -> str:
    each = "each cluster, but not each class of equal rows," if settings.nulls == "paper" else "each"
    parts = [_PROMISES[settings.nulls].format(k=settings.k, carriers=settings.carriers)]
    if settings.distinct_l > 1:
        parts.append(f"{each} with at least {settings.distinct_l} different sensitive values")
    if settings.entropy > 1.0:
        parts.append(f"{each} with an entropy of sensitive values of at least log {settings.entropy:g}")
    if settings.t is not None:
        parts.append(f"{each} with sensitive values within {settings.t:g} of the reference")
    if settings.max_share is not None:
        parts.append(f"no person has more than {settings.max_share:g} of the rows of one")
    return "; ".join(parts)
