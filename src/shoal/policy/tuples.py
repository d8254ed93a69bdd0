"""The [anonymize] tables of methods that publish whole tuples: k people alike within a deadline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, PlainValidator

from shoal.hierarchies import Hierarchy
from shoal.policy.fields import Duration, Names, PositiveDuration, PositiveSpan, Span, is_duration_text
from shoal.policy.method_base import ColumnType, KeyPath, MethodSection, Table
from shoal.policy.quasi import QuasiSections, quasi_columns, quasi_problems, quasi_tables
from shoal.policy.stream import StreamSection
from shoal.schema import Schema

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
_DIVERSITY: Final = ("l", "entropy_l", "t")
_ROUNDING: Final = 1e-9
_MOST_OFF: Final = 0.001
"""How far declared shares may add up from 1: people round them."""


def _reference(value: object) -> int | dict[str, dict[str, float]]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value < 2**31:
            raise ValueError("must be at least 1 arrival, and at most 2147483647")
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            "must be a whole number of arrivals, or a table of shares such as {illness = {flu = 0.9, gout = 0.1}}"
        )
    return {column: _shares(column, shares) for column, shares in value.items()}


def _shares(column: str, shares: object) -> dict[str, float]:
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(f'the column "{column}" must have a table of shares such as {{flu = 0.9, gout = 0.1}}')
    if any(isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1
           for share in shares.values()):  # fmt: skip
        raise ValueError(f'the shares of the column "{column}" must be numbers from 0 to 1')
    if not abs(math.fsum(shares.values()) - 1) <= _MOST_OFF:
        raise ValueError(f'the shares of the column "{column}" must add up to 1')
    return {value: float(share) for value, share in shares.items()}


class TupleSection(MethodSection):
    """What all methods on tuples have in common."""

    ADVICE: ClassVar[str] = "choose a smaller k, a longer deadline, or fewer quasi-identifiers"
    KEEPS_DEADLINE: ClassVar[bool] = True

    method: str
    quasi: QuasiSections = Field(description="add a table [anonymize.quasi.<column>] for each quasi-identifier")
    sensitive: Names = ()
    k: Annotated[int, Field(ge=2, le=2**31 - 1)] = 50
    deadline: PositiveSpan = 2000
    reuse: Span = 200
    nulls: Literal["strict", "common", "paper"] = "strict"
    min_carriers: Count | None = None
    l: Count | None = None  # noqa: E741 - its name everywhere
    entropy_l: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    t: Annotated[float, Field(gt=0, le=1)] | None = None
    reference: Annotated[int | dict[str, dict[str, float]], PlainValidator(_reference)] = 1000
    groups: bool = False
    max_share: Annotated[float, Field(gt=0, le=1)] | None = None
    suppressed: Literal["drop", "root"] = "drop"
    alpha: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.02
    max_gap: PositiveDuration = Duration("24h", 86_400_000_000_000)

    @property
    def runs_on_time(self) -> bool:
        return isinstance(self.deadline, Duration)

    @classmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        return quasi_columns(table)

    @classmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        return {
            ("quasi", name, "hierarchy"): own["hierarchy"]
            for name, own in quasi_tables(table).items()
            if own.get("kind") == "categorical" and "hierarchy" in own
        }

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        return {name: ("quasi", name, "hierarchy") for name, own in self.quasi.items() if own.kind == "categorical"}

    @classmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        if "time" in stream:
            return []
        timed = [key for key in ("deadline", "reuse") if is_duration_text(table.get(key))]
        return [
            ("anonymize", (key,), "a duration needs to know when; name the column in [stream] time, or count arrivals")
            for key in timed[:1]
        ]

    @classmethod
    def cross_check(cls, table: Table) -> list[tuple[KeyPath, str]]:
        checks = (
            quasi_problems, _span_problems, _carrier_problems, _share_problems, _diversity_problems,
            _reference_problems,
        )  # fmt: skip
        hopeless = _hopeless_problems(table) if cls.KEEPS_DEADLINE else ()
        return [*(problem for check in checks for problem in check(table)), *hopeless]

    def column_types(self) -> dict[str, ColumnType]:
        kinds = {name: own.column_type() for name, own in self.quasi.items()}
        return {name: kind for name, kind in kinds.items() if kind is not None}

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        assert stream.person is not None, "every tuple method needs it"
        schema = Schema(
            person=stream.person, time=stream.time, carry=stream.carry, sensitive=self.sensitive,
            quasi=[own.role(name, hierarchies.get(name)) for name, own in self.quasi.items()],
        )  # fmt: skip
        apart = ("method", "quasi", "sensitive")
        values = {name: getattr(self, name) for name in type(self).model_fields if name not in apart}
        given = {name: value.given if isinstance(value, Duration) else value for name, value in values.items()}
        return {"schema": schema, **{name: value for name, value in given.items() if value is not None}}

    def plain_fields(self) -> dict[str, Any]:
        # The order of quasi-identifiers is that of the published columns: it counts, so they are a list.
        listed = [{"name": name, **own.plain_fields()} for name, own in self.quasi.items()]
        # A policy without a cap is the one it was before there was any: its checkpoints go on.
        said = {name: value for name, value in super().plain_fields().items() if name != "max_share" or value}
        return {**said, "quasi": listed}

    def warnings(self) -> list[str]:
        return list(_weak_promises(self))


def _weak_promises(section: TupleSection) -> Iterator[str]:
    if section.nulls == "paper":
        yield (
            'nulls = "paper" is not k-anonymous: rows are told apart by which values are missing; it is there for '
            'comparison, use "strict" to publish'
        )
    elif section.min_carriers == 1:
        yield "min_carriers = 1: one person's value may become what leaves for a whole class; choose at least 2"
    for key in ("l", "entropy_l"):
        if getattr(section, key) == 1:
            yield f"{key} = 1 asks for nothing; choose at least 2, or leave it out"


def _span_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    given = {key: table.get(key) for key in ("deadline", "reuse")}
    kinds = {key: type(value) for key, value in given.items() if is_duration_text(value) or _is_whole(value)}
    if len(set(kinds.values())) == 2:
        yield ("reuse",), "must be a duration if deadline is one, and a number of arrivals if deadline is one"
    for key, other in (("deadline", "reuse"), ("reuse", "deadline")):
        if kinds.get(key) is str and other not in table:
            yield (other,), f'is missing; {key} is a duration, so give this as one too, such as "2min"'


def _hopeless_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    k, deadline = table.get("k", 50), table.get("deadline", 2000)
    if _is_whole(k) and _is_whole(deadline) and 1 <= deadline < k - 1:
        yield (
            ("deadline" if "deadline" in table else "k",),
            f"nothing would ever leave: within a deadline of {deadline:,} arrivals at most {deadline + 1:,} rows wait "
            f"for one another, fewer than k = {k:,}; raise deadline, or lower k",
        )


def _carrier_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    k, least = table.get("k", 50), table.get("min_carriers")
    if _is_whole(k) and _is_whole(least) and least > k:
        yield ("min_carriers",), "must be at most k"
    if least is not None and table.get("nulls", "strict") in ("common", "paper"):
        yield ("min_carriers",), 'is used only with nulls = "strict"; set that, or leave it out'


def _share_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    k, share = table.get("k", 50), table.get("max_share")
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
        return  # reported as such
    if _is_whole(k) and k > 0 and share * k < 1 - _ROUNDING:
        yield ("max_share",), f"must be at least 1/k = {1 / k:.4g}: nobody has less of a cluster of k people"
    if table.get("nulls") == "paper":
        yield (
            ("max_share",),
            'does not go with nulls = "paper", where rows of one cluster differ; leave one of them out',
        )


def _diversity_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    if table.get("sensitive") in (None, []):
        for key in _DIVERSITY:
            if key in table:
                yield (key,), 'needs a sensitive column; name it: sensitive = ["..."]'


def _reference_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    reference = table.get("reference")
    if reference is not None and "t" not in table:
        yield ("reference",), "is used only with t; give t, or leave it out"
    sensitive = table.get("sensitive")
    if isinstance(reference, Mapping) and isinstance(sensitive, list):
        for column in reference:
            if column not in sensitive:
                yield ("reference",), f'the column "{column}" is not among sensitive; add it there'
        for column in sensitive:
            if isinstance(column, str) and column not in reference:
                yield ("reference",), f'has no shares for the sensitive column "{column}"; add them'


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class LeastLossSection(TupleSection):
    """Clusters grown by least loss: the method to take unless there is a reason not to."""

    METHOD: ClassVar[str] = "least-loss"
    method: Literal["least-loss"]
    candidates: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class FadsSection(TupleSection):
    """FADS: a row and its k - 1 nearest."""

    METHOD: ClassVar[str] = "fads"
    method: Literal["fads"]


class FadsVariedSection(TupleSection):
    """FADS where values may be missing, as the paper on K-VARP compares itself with."""

    METHOD: ClassVar[str] = "fads-varied"
    KEEPS_DEADLINE: ClassVar[bool] = False
    method: Literal["fads-varied"]
    late_penalty: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.001

    def warnings(self) -> list[str]:
        late = (
            "fads-varied holds rows beyond their deadline until enough others lack the same values; "
            "it is there for comparison"
        )
        return [*super().warnings(), late]


class FastSection(TupleSection):
    """FAST: FADS in several lanes at once."""

    METHOD: ClassVar[str] = "fast"
    method: Literal["fast"]
    threads: Annotated[int, Field(ge=1, le=64)] = 2
    round: Count | None = None

    def warnings(self) -> list[str]:
        return [*super().warnings(), *self._hopeless()]

    def _hopeless(self) -> Iterator[str]:
        most = self.deadline // self.threads + 1 if isinstance(self.deadline, int) else self.k
        if most < self.k:
            yield (
                f"at most {most:,} rows of a lane can wait for one another within the deadline, fewer than k, so "
                "nothing will ever leave; raise the deadline, or lower k or threads"
            )


class KVarpSection(TupleSection):
    """K-VARP: rows with the same values missing first, then the most similar ones."""

    METHOD: ClassVar[str] = "k-varp"
    method: Literal["k-varp"]
    likeness: Annotated[float, Field(ge=0, le=1)] = 0.2


class IotAnonymizationSection(TupleSection):
    """IoT Anonymization: as K-VARP, with clusters of one kind of row reused only."""

    METHOD: ClassVar[str] = "iot-anonymization"
    method: Literal["iot-anonymization"]


class CastleSection(TupleSection):
    """CASTLE: clusters that form as rows come."""

    METHOD: ClassVar[str] = "castle"
    method: Literal["castle"]
    beta: Count = 50
    mu: Annotated[int, Field(ge=1, le=1_000_000)] = 100


TUPLE_SECTIONS: Final[tuple[type[TupleSection], ...]] = (
    LeastLossSection, FadsSection, FastSection, KVarpSection, IotAnonymizationSection, FadsVariedSection, CastleSection,
)  # fmt: skip
