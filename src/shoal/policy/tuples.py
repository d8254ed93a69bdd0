"""The [anonymize] tables of tuple methods: k people share every published row, within a deadline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, field_validator

from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Duration, Names, is_duration_text, is_whole
from shoal.methods.tuples.settings import TupleSettings, reference_problems
from shoal.policy.method_base import KeyPath, Table
from shoal.policy.quasi import CategoricalSection, NumericSection, QuasiMethodSection, require_tables
from shoal.policy.tables import StreamSection

_MOST_OFF: Final = 0.001
"""How far the sum of declared shares may be from 1: people round them."""


Quasi = Annotated[NumericSection | CategoricalSection, Field(discriminator="kind")]


class TupleSection(QuasiMethodSection, TupleSettings):
    """What a policy file adds to the settings of a tuple method: the quasi-identifiers, and stricter checks."""

    ADVICE: ClassVar[str] = "choose a smaller k, a longer deadline, or fewer quasi-identifiers"

    quasi: Annotated[dict[str, Quasi], BeforeValidator(require_tables)] = Field(
        description="add a table [anonymize.quasi.<column>] for each quasi-identifier"
    )
    sensitive: Names = Field(
        (),
        description="Columns that `l`, `entropy_l` and `t` protect; published unchanged, unless they are "
        "quasi-identifiers too.",
    )

    @field_validator("reference")
    @classmethod
    def _adds_up(cls, reference: Any) -> Any:
        for column, shares in reference.items() if isinstance(reference, Mapping) else ():
            if abs(math.fsum(shares.values()) - 1) > _MOST_OFF:
                raise ValueError(f'the shares of the column "{column}" must add up to 1')
        return reference

    @property
    def advice(self) -> str:
        if not self.is_diverse:
            return super().advice
        return "choose a smaller k, a longer deadline, fewer quasi-identifiers, or less diversity (l, entropy_l, t)"

    @property
    def withheld(self) -> str:
        diverse = ", or their sensitive values are not diverse enough" if self.is_diverse else ""
        return super().withheld + diverse

    @property
    def runs_on_time(self) -> bool:
        return self.is_timed

    @property
    def counts_arrivals(self) -> bool:
        return not self.is_timed

    @classmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        if "time" in stream:
            return []
        timed = [key for key in ("deadline", "reuse") if is_duration_text(table.get(key))]
        return [
            ("anonymize", (key,), "a duration needs times; name the column in [stream] time, or count arrivals")
            for key in timed[:1]
        ]

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from super().cross_check(given)
        yield from _unused_problems(given)
        yield from reference_problems(given.get("reference"), given.get("sensitive"))
        if cls.KEEPS_DEADLINE:
            yield from _hopeless_problems(given)

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Any]) -> dict[str, Any]:
        values = super().parameters(stream, hierarchies)
        given = {name: value.given if isinstance(value, Duration) else value for name, value in values.items()}
        return {name: value for name, value in given.items() if value is not None}

    def plain_fields(self) -> dict[str, Any]:
        # A policy without a cap is the one it was before there was any: its checkpoints go on.
        return {name: value for name, value in super().plain_fields().items() if name != "max_share" or value}


def _unused_problems(table: Table) -> Iterator[Problem]:
    """Keys that have no effect without another."""
    if table.get("sensitive") in (None, []):
        for key in ("l", "entropy_l", "t"):
            if key in table:
                yield (key,), 'needs a sensitive column; name it: sensitive = ["..."]'
    if "reference" in table and "t" not in table:
        yield ("reference",), "is used only with t; give t, or leave it out"


def _hopeless_problems(table: Table) -> Iterator[Problem]:
    k, deadline = table.get("k", 50), table.get("deadline", 2000)
    if is_whole(k) and is_whole(deadline) and 1 <= deadline < k - 1:
        yield (
            ("deadline" if "deadline" in table else "k",),
            f"nothing would ever be published: within a deadline of {deadline:,} arrivals at most {deadline + 1:,} "
            f"rows are pending together, fewer than k = {k:,}; raise deadline, or lower k",
        )
