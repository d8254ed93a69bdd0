"""What a policy for a stream of tuples promises, read from the raw TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.auditor.policy import Policy, column_of, is_number, names_of, share_of, whole_of
from shoal.auditor.rows.rules import NumberRule, Rule, choice, quasi_tables, read_rule
from shoal.errors import PolicyError
from shoal.schema import duration_ns

_MISSING: Final = ("own", "hidden", "covered", "paper")
_COVERED: Final = frozenset({"k-varp", "fads-varied", "iot-anonymization"})
"""Methods that show an attribute if enough people of the cluster carry it, unless the policy says otherwise."""


@dataclass(frozen=True, slots=True)
class Diversity:
    """The promise about the sensitive values of every class; None: not promised."""

    l: float | None  # noqa: E741
    entropy_l: float | None
    t: float | None
    declared: Mapping[str, Mapping[str, float]]
    """The distributions that t is measured against, by column, if the policy declares them."""
    reference: int
    """Otherwise the number of last arrivals before a cluster was formed."""

    @property
    def needs_reference(self) -> bool:
        """Whether t is measured against references recorded in the trace."""
        return self.t is not None and not self.declared


@dataclass(frozen=True, slots=True)
class TuplePromise:
    """The promise of a method for streams of tuples."""

    method: str
    person: str
    time: str | None
    carry: tuple[str, ...]
    sensitive: tuple[str, ...]
    """Sensitive columns published unchanged."""
    generalized: tuple[str, ...]
    """Sensitive columns that are quasi-identifiers too: their values are in the truth only."""
    quasi: tuple[Rule, ...]
    k: int
    deadline: int
    """In arrivals, or in nanoseconds if ``is_timed``; so is ``reuse``."""
    reuse: int
    is_timed: bool
    max_gap_ns: int
    missing: str
    """Which quasi-identifiers a row shows: ``own``, those its record has; ``hidden``, those all records of its cluster
    have; ``covered``, those that at least ``min_carriers`` people of it have; ``paper``, as the method's paper does."""
    asks_for_filled: bool
    """Whether the policy itself says that rows may show what their records do not have."""
    min_carriers: int
    diversity: Diversity
    groups: bool
    max_share: float | None
    """The largest share of a class's rows that one person may have; None: no limit."""
    shows_suppressed: bool
    """Whether suppressed rows are published, with every attribute at its root."""
    declared_types: Mapping[str, str]
    """The types that the policy declares for columns of text files, and those as which a run reads numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""
        return (*(rule.name for rule in self.quasi), *self.sensitive, *self.carry)

    @property
    def may_be_late(self) -> bool:
        """Whether the method has no deadline."""
        return self.method == "fads-varied"

    @property
    def keeps_record_nulls(self) -> bool:
        """Whether every row keeps its record's nulls, so that rows of one cluster differ in them."""
        return self.missing == "paper" and self.method != "iot-anonymization"

    @property
    def rule_of_nulls(self) -> str:
        """Which nulls a row may have, as `check_cover` calls it."""
        return "exact" if self.missing == "own" or self.keeps_record_nulls else self.missing


def read_tuple_promise(policy: Policy) -> TuplePromise:
    """Read what a method for streams of tuples promises."""
    stream, rules = policy.section("stream"), policy.section("anonymize")
    if "nulls" in rules:
        raise PolicyError("[anonymize] nulls: is called missing now; use this key")
    deadline, reuse, is_timed = _waits(rules)
    k = whole_of(rules, "k", 50)
    time = stream.get("time")
    if is_timed and not isinstance(time, str):
        raise PolicyError("[stream] time: name the column; a deadline that is a duration needs it")
    sensitive = names_of(rules.get("sensitive", ()))
    quasi = {name: read_rule(name, table, policy.folder) for name, table in quasi_tables(rules).items()}
    return TuplePromise(
        method=str(rules.get("method")),
        person=column_of(stream, "person"),
        time=time if isinstance(time, str) else None,
        carry=names_of(stream.get("carry", ())),
        sensitive=tuple(name for name in sensitive if name not in quasi),
        generalized=tuple(name for name in sensitive if name in quasi),
        quasi=tuple(quasi.values()),
        k=k,
        deadline=deadline,
        reuse=reuse,
        is_timed=is_timed,
        max_gap_ns=duration_ns(rules.get("max_gap", "24h"), name="max_gap"),
        missing=_missing(rules),
        asks_for_filled=rules.get("missing") in ("covered", "paper"),
        min_carriers=whole_of(rules, "min_carriers", -(-k // 2)),
        diversity=_diversity(rules, sensitive),
        groups=bool(rules.get("groups", False)),
        max_share=share_of(rules, "max_share") if rules.get("max_share") is not None else None,
        shows_suppressed=choice(rules, "suppressed", ("drop", "root")) == "root",
        declared_types=_numbers(quasi) | _declared_types(policy.section("source")),
    )


def _missing(rules: Mapping[str, Any]) -> str:
    usual = "covered" if rules.get("method") in _COVERED else "own"
    return choice({"missing": usual, **rules}, "missing", _MISSING)


def _waits(rules: Mapping[str, Any]) -> tuple[int, int, bool]:
    """Return deadline, reuse and whether they are durations."""
    deadline, reuse = rules.get("deadline", 2000), rules.get("reuse", 200)
    if isinstance(deadline, str) and isinstance(reuse, str):
        return duration_ns(deadline, name="deadline"), duration_ns(reuse, name="reuse"), True
    for key, value in (("deadline", deadline), ("reuse", reuse)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise PolicyError(f'{key}: give both deadline and reuse as counts of arrivals, or both as text ("30min")')
    return int(deadline), int(reuse), False


def _diversity(rules: Mapping[str, Any], sensitive: tuple[str, ...]) -> Diversity:
    reference = rules.get("reference", 1000)
    declared = _distributions(reference) if isinstance(reference, Mapping) else {}
    promised = {key: _level(rules, key) for key in ("l", "entropy_l", "t")}
    if not sensitive and any(level is not None for level in promised.values()):
        raise PolicyError("l, entropy_l and t need sensitive columns; name them")
    if promised["t"] is not None and declared and set(sensitive) - set(declared):
        raise PolicyError("reference: declare a distribution for every sensitive column")
    size = whole_of(rules, "reference", 1000) if not declared else 0
    return Diversity(promised["l"], promised["entropy_l"], promised["t"], declared, size)


def _level(rules: Mapping[str, Any], key: str) -> float | None:
    level = rules.get(key)
    if level is not None and (not is_number(level) or level < 0):
        raise PolicyError(f"{key}: must be a number from 0")
    return None if level is None else float(level)


def _distributions(given: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the declared shares by column, each column's adding up to 1."""
    found = {}
    for column, shares in given.items():
        usable = isinstance(shares, Mapping) and all(is_number(share) and share >= 0 for share in shares.values())
        total = sum(shares.values()) if usable else 0
        if not total:
            raise PolicyError(f"reference of {column}: give every value a share, not all of them 0")
        found[str(column)] = {str(value): float(share) / total for value, share in shares.items()}
    return found


def _numbers(quasi: Mapping[str, Rule]) -> dict[str, str]:
    """Return the type as which a run reads numeric quasi-identifiers of text files if none is declared."""
    return {name: "float64" for name, rule in quasi.items() if isinstance(rule, NumberRule) and not rule.is_moment}


def _declared_types(source: Mapping[str, Any]) -> dict[str, str]:
    types = source.get("types", {})
    return {str(name): str(kind) for name, kind in types.items()} if isinstance(types, Mapping) else {}
