"""The parameters of the tuple methods, checked all at once before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.schema import Categorical, Numeric, Schema, duration_ns

Nulls = Literal["strict", "common", "paper"]
Suppressed = Literal["drop", "root"]
Reference = int | Mapping[str, Mapping[Any, float]]

_MODES: Final = {"strict": t.SHOW_ALL, "common": t.SHOW_COMMON, "paper": t.SHOW_OWN}
_MOST: Final = 2**31
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class TupleSettings:
    """Checked parameters. A deadline and a reuse age are counts of arrivals, or nanoseconds when timed."""

    schema: Schema
    k: int
    is_timed: bool
    deadline: int
    reuse: int
    nulls: Nulls
    min_carriers: int
    distinct_l: int
    entropy_l: float
    closeness: float | None
    reference: int
    declared: Mapping[str, Mapping[Any, float]] | None
    groups: bool
    suppressed: Suppressed
    alpha: float
    max_gap_ns: int
    max_share: float | None = None
    """How large a part of a cluster's rows may be one person's."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What only one method knows."""

    @property
    def is_diverse(self) -> bool:
        """Whether anything is asked of sensitive values."""
        return self.distinct_l > 1 or self.entropy_l > 1.0 or self.closeness is not None

    @property
    def remembers(self) -> int:
        """How many arrivals' sensitive values are remembered, to hold clusters against."""
        return self.reference if self.closeness is not None and self.declared is None else 0

    def plan(self) -> npt.NDArray[np.int64]:
        """The whole numbers for the kernels; a method adds its own."""
        plan = np.zeros(t.PLAN, dtype=np.int64)
        plan[t.K], plan[t.TIMED] = self.k, self.is_timed
        plan[t.DEADLINE], plan[t.REUSE] = self.deadline, self.reuse
        plan[t.NULLS], plan[t.MIN_CARRIERS] = _MODES[self.nulls], self.min_carriers
        plan[t.IN_GROUPS], plan[t.DISTINCT] = self.groups, self.distinct_l
        plan[t.REFERENCE], plan[t.IS_DIVERSE] = self.remembers, self.is_diverse
        return plan

    def ratios(self) -> npt.NDArray[np.float64]:
        """The other numbers for the kernels."""
        ratios = np.zeros(t.RATIOS)
        ratios[t.ENTROPY] = math.log(self.entropy_l)
        ratios[t.CLOSENESS] = -1.0 if self.closeness is None else self.closeness
        ratios[t.ALPHA] = self.alpha
        ratios[t.MAX_SHARE] = self.max_share or 0.0
        return ratios

    def describe(self) -> dict[str, Any]:
        """Everything that shapes the output, as plain values."""
        declared = {
            name: sorted(([value, share] for value, share in shares.items()), key=str)
            for name, shares in (self.declared or {}).items()
        }
        return {
            "schema": self.schema.describe(), "k": self.k, "is_timed": self.is_timed, "deadline": self.deadline,
            "reuse": self.reuse, "nulls": self.nulls, "min_carriers": self.min_carriers,
            "distinct_l": self.distinct_l, "entropy_l": self.entropy_l, "closeness": self.closeness,
            "reference": self.reference, "declared": declared or None, "groups": self.groups,
            "suppressed": self.suppressed, "alpha": self.alpha, "max_gap_ns": self.max_gap_ns,
            **({} if self.max_share is None else {"max_share": self.max_share}),
            "options": dict(self.options),
        }  # fmt: skip


def settings_from(described: Mapping[str, Any]) -> TupleSettings:
    """The settings that describe() described."""
    declared = described["declared"] and {name: dict(shares) for name, shares in described["declared"].items()}
    return TupleSettings(**{**described, "schema": _schema_from(described["schema"]), "declared": declared})


def _schema_from(described: Mapping[str, Any]) -> Schema:
    return Schema(**{**described, "quasi": [_quasi_from(role) for role in described["quasi"]]})


def _quasi_from(role: Mapping[str, Any]) -> Numeric | Categorical:
    given = {name: value for name, value in role.items() if name != "kind"}
    if role["kind"] == "numeric":
        return Numeric(**given)
    return Categorical(**{**given, "hierarchy": Hierarchy.from_dict(given["hierarchy"])})


class TupleChecker:
    """Collects every problem of a set of parameters instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def whole(self, name: str, value: object, low: int, high: int = _MOST) -> int:
        """Read a whole number, or note what is wrong with it."""
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.problems.append(f"{name}: must be a whole number from {low} to {high}")
            return low
        return value

    def ratio(self, name: str, value: object, low: float, high: float, *, above: bool = False) -> float:
        """Read a number, or note what is wrong with it."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (above and value == low):  # type: ignore[operator]
            until = "" if high == math.inf else f" and at most {high:g}"
            self.problems.append(f"{name}: must be a number {'above' if above else 'of at least'} {low:g}{until}")
            return high if above else low
        return float(value)  # type: ignore[arg-type]

    def choice(self, name: str, value: object, known: tuple[str, ...]) -> Any:
        """Read one of some words, or note what is wrong with it."""
        if value not in known:
            self.problems.append(f"{name}: must be one of {', '.join(known)}")
            return known[0]
        return value

    def has_about(self, *names: str) -> bool:
        """Whether something is wrong already with one of these parameters."""
        return any(problem.split(":")[0] in names for problem in self.problems)

    def span(self, name: str, value: object, low: int) -> tuple[bool, int]:
        """Read a count of arrivals or a duration: whether it is timed, and how long it is."""
        if not isinstance(value, str):
            return False, self.whole(name, value, low)
        try:
            nanoseconds = duration_ns(value, name=name)
        except PolicyError as error:
            self.problems.extend(error.problems)
            return True, low
        if nanoseconds < low:
            self.problems.append(f"{name}: must be longer than 0")
        return True, nanoseconds

    def duration(self, name: str, value: object) -> int:
        """Read a duration longer than 0."""
        try:
            nanoseconds = duration_ns(value, name=name)
        except PolicyError as error:
            self.problems.extend(error.problems)
            return 1
        if nanoseconds == 0:
            self.problems.append(f"{name}: must be longer than 0")
        return max(nanoseconds, 1)


def check_tuple_settings(
    checker: TupleChecker, schema: object, options: Mapping[str, Any], given: Mapping[str, Any]
) -> TupleSettings:
    """Check everything; raise one PolicyError that lists all problems."""
    if not isinstance(schema, Schema):
        raise PolicyError(["schema: must be a shoal.Schema", *checker.problems])
    checker.problems += [
        f"column {role.name!r}: has no hierarchy; give it one"
        for role in schema.quasi
        if isinstance(role, Categorical) and role.hierarchy is None
    ]
    k = checker.whole("k", given["k"], 2)
    is_timed, deadline = checker.span("deadline", given["deadline"], 1)
    is_reuse_timed, reuse = checker.span("reuse", given["reuse"], 0)
    if is_timed != is_reuse_timed and not checker.has_about("deadline", "reuse"):
        checker.problems.append("deadline and reuse: give both as counts of arrivals or both as durations")
    if is_timed and schema.time is None and not checker.has_about("deadline"):
        checker.problems.append("deadline: a duration needs a time column; name it in the schema, or count arrivals")
    nulls = checker.choice("nulls", given["nulls"], get_args(Nulls))
    carriers = given["min_carriers"]
    reference, declared = _reference(checker, schema, given["reference"])
    settings = TupleSettings(
        schema=schema, k=k, is_timed=is_timed, deadline=deadline, reuse=reuse, nulls=nulls,
        min_carriers=(k + 1) // 2 if carriers is None else checker.whole("min_carriers", carriers, 1, k),
        distinct_l=1 if given["l"] is None else checker.whole("l", given["l"], 1),
        entropy_l=1.0 if given["entropy_l"] is None else checker.ratio("entropy_l", given["entropy_l"], 1, math.inf),
        closeness=None if given["t"] is None else checker.ratio("t", given["t"], 0, 1, above=True),
        reference=reference, declared=declared, groups=bool(given["groups"]),
        suppressed=checker.choice("suppressed", given["suppressed"], get_args(Suppressed)),
        alpha=checker.ratio("alpha", given["alpha"], 0, math.inf),
        max_gap_ns=checker.duration("max_gap", given["max_gap"]), options=dict(options),
        max_share=_max_share(checker, given["max_share"]),
    )  # fmt: skip
    if settings.max_share is not None and not checker.has_about("max_share"):
        if settings.max_share * k < 1 - _ROUNDING and not checker.has_about("k"):
            checker.problems.append("max_share: must be at least 1/k; nobody has less of a cluster of k people")
        if nulls == "paper":
            checker.problems.append('max_share: does not go with nulls = "paper", where rows of one cluster differ')
    if not isinstance(given["groups"], bool):
        checker.problems.append("groups: must be true or false")
    if settings.is_diverse and not schema.sensitive:
        checker.problems.append("l, entropy_l and t are about sensitive columns; name them in the schema")
    if checker.problems:
        raise PolicyError(checker.problems)
    return settings


def _max_share(checker: TupleChecker, given: object) -> float | None:
    return None if given is None else checker.ratio("max_share", given, 0, 1, above=True)


def _reference(
    checker: TupleChecker, schema: Schema, given: object
) -> tuple[int, Mapping[str, Mapping[Any, float]] | None]:
    """How many arrivals to hold clusters against, or the declared distributions."""
    if not isinstance(given, Mapping):
        return checker.whole("reference", given, 1), None
    declared: dict[str, dict[Any, float]] = {}
    for name in schema.sensitive:
        shares = given.get(name)
        if not isinstance(shares, Mapping) or not shares:
            checker.problems.append(f"reference: column {name!r} needs a table of values and their shares")
            continue
        where = f"reference: column {name!r}"
        if not all(isinstance(value, str | int | float | bool) for value in shares):
            checker.problems.append(f"{where}: values must be text, numbers or truth values; write others as text")
            continue
        checked = {value: checker.ratio(where, share, 0, math.inf) for value, share in shares.items()}
        if sum(checked.values()) <= 0:
            checker.problems.append(f"reference: column {name!r}: shares must not all be 0")
        declared[name] = checked
    unknown = [str(name) for name in given if name not in schema.sensitive]
    checker.problems += [f"reference: column {name!r} is not among the sensitive ones" for name in unknown]
    return 1, declared
