"""What the user states about a table; everything else is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from shoal.errors import PolicyError
from shoal.inspection.columns.facts import Facts
from shoal.schema import ROWS


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is given; everything else is guessed."""

    person: str | None = None
    """A column, or `ROWS`: that rows are counted is confirmed."""
    time: str | None = None
    quasi: Sequence[str] | None = None
    sensitive: Sequence[str] | None = None
    carry: Sequence[str] | None = None
    drop: Sequence[str] = ()
    also_quasi: Sequence[str] = ()
    """Quasi-identifiers besides those that are guessed."""
    attribute: str | None = None
    items: str | None = None
    method: str | None = None
    k: int | None = None
    z: int | None = None
    m: int | None = None
    window: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sees_all: bool = True
    """Whether all rows are looked at; otherwise there may be items that are not known."""
    reads_moments: bool = True
    """Whether texts that are moments are read as such; in Parquet and Arrow files they stay texts."""
    is_live: bool = False
    """Whether rows are messages of a system in which more may always come."""
    index: Sequence[str] = ()
    """Columns that are in the index of a frame: they may say who or when; published only if they are named."""
    arrival: str | None = None
    """The column of the broker's times, if no other column has times."""

    def names(self) -> list[str]:
        """Names of what is stated."""
        nothing = Wishes()
        stated = [one.name for one in fields(self)
                  if one.name != "index" and getattr(self, one.name) != getattr(nothing, one.name)]  # fmt: skip
        further = [name for name, value in self.settings.items() if value is not None]
        return [*(name for name in stated if name != "settings"), *further]

    def with_known(self, known: Mapping[str, Any]) -> Wishes:
        """With what the format of the data suggests for events, unless another method is stated."""
        stated = set(self.names())
        if not known or stated & {"quasi", "also_quasi", "sensitive", "items", "method", "k", "m"}:
            return self
        named = {self.person, self.time, self.attribute, *(self.carry or ())}
        drop = [*self.drop, *(name for name in known["drop"] if name not in named and name not in self.drop)]
        return replace(self, **{name: one for name, one in known.items() if name not in stated} | {"drop": drop})

    def counts_rows(self, facts: Mapping[str, Facts]) -> bool:
        """Whether it is confirmed that rows are counted; a column that has this name is a column."""
        return self.person == ROWS and ROWS not in facts

    def open_columns(self, facts: Mapping[str, Facts]) -> dict[str, Facts]:
        """Columns without a stated role."""
        taken = {self.time, self.attribute, self.items, *self.drop}
        taken |= {*self.also_quasi, *(self.quasi or ()), *(self.sensitive or ()), *(self.carry or ())}
        return {name: one for name, one in facts.items() if name not in taken}

    def hidden(self, facts: Mapping[str, Facts]) -> set[str]:
        """Columns of the index without a stated role."""
        return {*self.index} & {*self.open_columns(facts)}

    def check(self, facts: Mapping[str, Facts]) -> None:
        """Raise PolicyError if a column does not exist or has two roles, or if roles are for different methods."""
        person = None if self.counts_rows(facts) else self.person
        named = [person, self.time, self.attribute, self.items]
        lists = (self.quasi, self.also_quasi, self.sensitive, self.carry, self.drop)
        wanted = [name for name in named if name is not None] + [name for names in lists for name in names or ()]
        missing = [f"column {name!r}: does not exist; check the name" for name in wanted if name not in facts]
        twice = [f"column {name!r}: is given two roles; give one" for name in {*wanted} if wanted.count(name) > 1]
        if missing or twice:
            raise PolicyError(missing or sorted(twice))
        if self.k is not None and self.k < 2:
            raise PolicyError("k: must be at least 2")
        families = {"z or attribute": self.z is not None or self.attribute is not None,
                    "m or items": self.m is not None or self.items is not None,
                    "quasi": self.quasi is not None}  # fmt: skip
        chosen = [name for name, is_given in families.items() if is_given]
        if len(chosen) > 1:
            raise PolicyError(f"{'; '.join(chosen)}: belong to different families of methods; give one of them")
