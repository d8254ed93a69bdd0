"""The parameters that all tuple methods share; a method adds its own in its file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypedDict

import numpy as np
import numpy.typing as npt
from pydantic import Field, PlainValidator

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import (
    MOST,
    Amount,
    Count,
    Crowd,
    Duration,
    Given,
    PositiveDuration,
    PositiveShare,
    PositiveSpan,
    SchemaSettings,
    Span,
    is_duration_text,
    is_whole,
)
from shoal.schema import Categorical, Schema

Missing = Literal["own", "hidden", "covered", "paper"]
Suppressed = Literal["drop", "root"]
Shares = Mapping[str, Mapping[Any, float]]
Reference = int | Shares

_MODES: Final = {"own": t.OWN, "hidden": t.HIDDEN, "covered": t.COVERED, "paper": t.PAPER}
_ROUNDING: Final = 1e-9


class TupleParameters(TypedDict, total=False):
    """The keyword arguments of every tuple method, for type checkers; :class:`TupleSettings` describes them."""

    k: int
    deadline: int | str
    reuse: int | str
    missing: Missing
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


def _reference(value: Any) -> Reference:
    if is_whole(value):
        if not 1 <= value <= MOST:
            raise ValueError(f"must be at least 1 arrival, and at most {MOST}")
        return int(value)
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            "must be a whole number of arrivals, or a table of shares such as {illness = {flu = 0.9, gout = 0.1}}"
        )
    return {column: _shares(column, shares) for column, shares in value.items()}


def _shares(column: str, shares: object) -> dict[Any, float]:
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(f'the column "{column}" must have a table of shares such as {{flu = 0.9, gout = 0.1}}')
    if not all(isinstance(value, str | int | float | bool) for value in shares):
        raise ValueError(
            f'the values of the column "{column}" must be text, numbers or truth values; write others as text'
        )
    if not all(isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share < math.inf
               for share in shares.values()):  # fmt: skip
        raise ValueError(f'the shares of the column "{column}" must be numbers of at least 0')
    if math.fsum(shares.values()) <= 0:
        raise ValueError(f'the shares of the column "{column}" must not all be 0')
    return {value: float(share) for value, share in shares.items()}


class TupleSettings(SchemaSettings):
    """What every tuple method is asked for. Spans are counts of arrivals, or nanoseconds when timed."""

    KEEPS_DEADLINE: ClassVar[bool] = True
    """Whether every row is decided by its deadline."""

    k: Crowd = Field(50, description="People, never rows, among whom each published row hides.")
    deadline: PositiveSpan = Field(
        2000, description='How long a row may wait: a count of arrivals, or a duration such as `"30s"` (needs `time`).'
    )
    reuse: Span = Field(
        200, description="How long a published cluster may accept further rows: a count or a duration, like `deadline`."
    )
    missing: Missing = Field(
        "own",
        description='What rows show of attributes that some of them lack: `"own"` publishes rows with rows that lack '
        'the same, `"hidden"` shows what all of a cluster have, `"covered"` what enough of them have; see '
        "guarantees/tuples.md.",
    )
    min_carriers: Count | None = Field(
        None,
        description='With `missing = "covered"`, an attribute is shown if this many people of the cluster carry it; '
        "by default half of `k`, rounded up.",
    )
    l: Count | None = Field(  # noqa: E741 - its name everywhere
        None, description="Distinct known values that each sensitive column of a cluster must have (l-diversity)."
    )
    entropy_l: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = Field(
        None, description="Entropy l-diversity: the entropy of known sensitive values is at least log of this."
    )
    t: PositiveShare | None = Field(
        None,
        description="Greatest distance of a cluster's sensitive values from the reference (t-closeness).",
    )
    reference: Annotated[Any, PlainValidator(_reference)] = Field(
        1000, description="What `t` compares with: this many recent arrivals, or a table of shares for each column."
    )
    groups: bool = Field(
        default=False,
        description="Publish only in groups of at least `k` people and reuse nothing. Set it if an attacker may know "
        "when rows arrived.",
    )
    max_share: PositiveShare | None = Field(
        None, description="Largest part of a cluster's rows that may be one person's, from 1/k to 1."
    )
    suppressed: Suppressed = Field(
        "drop", description='Rows without enough others: `"drop"` them, or publish every attribute at its `"root"`.'
    )
    alpha: Amount = Field(0.02, description="What an arrival (or second) of delay adds to the reported cost.")
    max_gap: PositiveDuration = Field(
        Duration("24h"),
        description="A record further ahead than this moves time only once a second person's record confirms it.",
    )

    # ---- checks

    @classmethod
    def cross_check(cls, given: Given) -> Iterator[Problem]:
        yield from _span_problems(given)
        k, least, share = given.get("k", 50), given.get("min_carriers"), given.get("max_share")
        if is_whole(k) and is_whole(least) and least > k:
            yield ("min_carriers",), "must be at most k"
        missing = given.get("missing", cls.model_fields["missing"].default)
        if least is not None and missing in _MODES and missing != "covered":
            yield ("min_carriers",), 'is used only with missing = "covered"; set that, or leave it out'
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
            return  # reported as such
        if is_whole(k) and k > 0 and share * k < 1 - _ROUNDING:
            yield ("max_share",), f"must be at least 1/k = {1 / k:.4g}: no person has less of a cluster of k people"
        if given.get("missing") == "paper":
            text = 'cannot be combined with missing = "paper", where rows of one cluster differ; leave one of them out'
            yield ("max_share",), text

    @classmethod
    def schema_problems(cls, schema: Schema, given: Given) -> Iterator[Problem]:
        for role in schema.quasi:
            if isinstance(role, Categorical) and role.hierarchy is None:
                yield (f"column {role.name!r}",), "has no hierarchy; give it one"
        if schema.time is None and is_duration_text(given.get("deadline")):
            yield ("deadline",), "a duration needs a time column; name it in the schema, or count arrivals"
        for key, least in (("l", 1), ("entropy_l", 1), ("t", 0)):
            value = given.get(key)
            if not schema.sensitive and isinstance(value, int | float) and value > least:
                yield (key,), "needs a sensitive column; name it in the schema"
        yield from reference_problems(given.get("reference"), schema.sensitive)

    def warnings(self) -> list[str]:
        found = []
        if self.missing == "paper":
            found.append(
                'missing = "paper" is not k-anonymous: rows differ in which values are missing; it is there for '
                "comparison, use another to publish"
            )
        elif self.min_carriers == 1:
            found.append("min_carriers = 1: one person's value may be published for a whole class; choose at least 2")
        for key in ("l", "entropy_l"):
            if getattr(self, key) == 1:
                found.append(f"{key} = 1 asks for nothing; choose at least 2, or leave it out")
        return found

    # ---- what the parameters mean

    @property
    def is_timed(self) -> bool:
        """Whether spans are durations."""
        return isinstance(self.deadline, Duration)

    @property
    def carriers(self) -> int:
        """People who must carry an attribute that is shown with `missing = "covered"`."""
        return (self.k + 1) // 2 if self.min_carriers is None else self.min_carriers

    @property
    def distinct_l(self) -> int:
        """Distinct sensitive values of a cluster."""
        return self.l or 1

    @property
    def entropy(self) -> float:
        """Entropy l-diversity; 1 asks for nothing."""
        return self.entropy_l or 1.0

    @property
    def declared(self) -> Shares | None:
        """The reference, where it is given as shares."""
        return self.reference if isinstance(self.reference, Mapping) else None

    @property
    def max_gap_ns(self) -> int:
        """The longest gap that one person's record may open."""
        return int(self.max_gap)

    @property
    def is_diverse(self) -> bool:
        """Whether anything is asked of sensitive values."""
        return self.distinct_l > 1 or self.entropy > 1.0 or self.t is not None

    @property
    def remembers(self) -> int:
        """How many arrivals' sensitive values are remembered as the reference."""
        return self.reference if self.t is not None and self.declared is None else 0

    @property
    def options(self) -> dict[str, Any]:
        """The parameters that only this method has."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in TupleSettings.model_fields}

    # ---- for kernels, snapshots and reports

    def plan(self) -> npt.NDArray[np.int64]:
        """The whole numbers for the kernels; a method adds its own."""
        plan = np.zeros(t.PLAN, dtype=np.int64)
        plan[t.K], plan[t.TIMED] = self.k, self.is_timed
        plan[t.DEADLINE], plan[t.REUSE] = self.deadline, self.reuse
        plan[t.MISSING_MODE], plan[t.MIN_CARRIERS] = _MODES[self.missing], self.carriers
        plan[t.IN_GROUPS], plan[t.DISTINCT] = self.groups, self.distinct_l
        plan[t.REFERENCE], plan[t.IS_DIVERSE] = self.remembers, self.is_diverse
        return plan

    def ratios(self) -> npt.NDArray[np.float64]:
        """The other numbers for the kernels."""
        ratios = np.zeros(t.RATIOS)
        ratios[t.ENTROPY] = math.log(self.entropy)
        ratios[t.CLOSENESS] = -1.0 if self.t is None else self.t
        ratios[t.ALPHA] = self.alpha
        ratios[t.MAX_SHARE] = self.max_share or 0.0
        return ratios

    def to_header(self) -> dict[str, Any]:
        return {**super().to_header(), "reference": self._listed_shares() or self.reference}

    @classmethod
    def from_header(cls, header: Given) -> Self:
        reference = header["reference"]
        shares = {} if is_whole(reference) else {"reference": {name: dict(pairs) for name, pairs in reference.items()}}
        return super().from_header({**header, **shares})

    def describe(self) -> dict[str, Any]:
        """What is promised, in plain values, for the guarantee."""
        return {
            "schema": self.schema.describe(), "k": self.k, "is_timed": self.is_timed, "deadline": int(self.deadline),
            "reuse": int(self.reuse), "missing": self.missing, "min_carriers": self.carriers,
            "distinct_l": self.distinct_l, "entropy_l": self.entropy, "closeness": self.t,
            "reference": 1 if self.declared else self.reference, "declared": self._listed_shares(),
            "groups": self.groups, "suppressed": self.suppressed, "alpha": self.alpha, "max_gap_ns": self.max_gap_ns,
            **({} if self.max_share is None else {"max_share": self.max_share}), "options": self.options,
        }  # fmt: skip

    def _listed_shares(self) -> dict[str, list[Any]] | None:
        """Declared shares as pairs: a value may be a number or a truth value, which cannot be a key in JSON."""
        if self.declared is None:
            return None
        return {name: sorted(map(list, shares.items()), key=str) for name, shares in self.declared.items()}


class VariedSettings(TupleSettings):
    """What methods for streams whose attributes come and go are asked for: rows that lack different ones may merge."""

    missing: Literal["hidden", "covered", "paper"] = Field(
        "covered",
        description='What rows show of attributes that some of them lack: `"hidden"` what all of a cluster have, '
        '`"covered"` what enough of them have, in rows that lack it too; see guarantees/tuples.md.',
    )


def _span_problems(given: Given) -> Iterator[Problem]:
    kinds = {key: type(given[key]) for key in ("deadline", "reuse")
             if key in given and (is_duration_text(given[key]) or is_whole(given[key]))}  # fmt: skip
    if len(set(kinds.values())) == 2:
        yield ("reuse",), "must be a duration if deadline is one, and a number of arrivals if deadline is one"
    for key, other in (("deadline", "reuse"), ("reuse", "deadline")):
        if kinds.get(key) is str and other not in given:
            yield (other,), f'is missing; {key} is a duration, so give this as one too, such as "2min"'


def reference_problems(reference: object, sensitive: object) -> Iterator[Problem]:
    """Declared shares must be those of the sensitive columns."""
    if not isinstance(reference, Mapping) or not isinstance(sensitive, list | tuple):
        return
    for column in reference:
        if column not in sensitive:
            yield ("reference",), f'the column "{column}" is not among the sensitive columns; add it there'
    for column in sensitive:
        if isinstance(column, str) and column not in reference:
            yield ("reference",), f'has no shares for the sensitive column "{column}"; add them'
