"""What the tuple methods share as seen from outside: their common parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict, Unpack

from shoal.crypto.keys import Secret, as_secret
from shoal.methods.tuples.settings import Nulls, Reference, Suppressed, TupleChecker, check_tuple_settings
from shoal.methods.tuples.singles import TupleSingles
from shoal.schema import Schema


class Common(TypedDict, total=False):
    """Parameters every tuple method takes, all by name.

    k
        In how large a crowd a person hides: different people, never tuples. At least 2; by default 50.
    deadline
        How long a tuple may wait: a count of arrivals, or a duration such as ``"30s"`` (which needs a time column).
    reuse
        How long a published cluster may take in further tuples: a count or a duration, as the deadline is.
    nulls
        ``"strict"`` (default), ``"common"`` or ``"paper"``; see docs/guarantees/tuples.md.
    min_carriers
        In strict mode an attribute is shown only where so many different people of the cluster carried it; by
        default half of k, rounded up.
    l, entropy_l, t
        What is asked of the sensitive columns of a cluster: different values, entropy, closeness to a reference.
    reference
        What ``t`` is held against: the last so many arrivals, or a table of shares for each sensitive column.
    groups
        Let rows leave only in groups of at least k people; then nothing is reused. Set it if an attacker may know when
        tuples arrived.
    max_share
        How large a part of a cluster's rows may be one person's, from 1/k to 1; by default there is no cap.
    suppressed
        What becomes of rows without a crowd: ``"drop"`` (default), or ``"root"``: every attribute at its root.
    alpha
        How much an arrival (or second) of delay adds to the reported cost.
    max_gap
        An event further ahead than this does not move time before a second person's event confirms it.
    key
        At least 16 secret bytes for snapshots, table keys and the order of rows; see :class:`shoal.ZAnonymity`.
    """

    k: int
    deadline: int | str
    reuse: int | str
    nulls: Nulls
    min_carriers: int | None
    l: int | None  # noqa: E741 - its name everywhere
    entropy_l: float | None
    t: float | None
    reference: Reference
    groups: bool
    max_share: float | None
    suppressed: Suppressed
    alpha: float
    max_gap: str | float
    key: Secret | bytes | None


DEFAULTS: Final[Mapping[str, Any]] = {
    "k": 50, "deadline": 2000, "reuse": 200, "nulls": "strict", "min_carriers": None, "l": None, "entropy_l": None,
    "t": None, "reference": 1000, "groups": False, "max_share": None, "suppressed": "drop", "alpha": 0.02,
    "max_gap": "24h", "key": None,
}  # fmt: skip


class TupleMethod(TupleSingles):
    """A tuple anonymizer with checked parameters."""

    def __init__(self, schema: Schema, **given: Unpack[Common]) -> None:
        self._start_checked(schema, given)

    def _start_checked(self, schema: Schema, given: Mapping[str, Any], **own: Any) -> None:
        unknown = sorted(set(given) - set(DEFAULTS))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {', '.join(unknown)}")
        filled = {**DEFAULTS, **given}
        checker = TupleChecker()
        options = self._check_own(checker, own)
        settings = check_tuple_settings(checker, schema, options, filled)
        self._begin(settings, as_secret(filled["key"]))

    def _check_own(self, checker: TupleChecker, own: Mapping[str, Any]) -> dict[str, Any]:
        """Check what only this method knows."""
        return dict(own)
