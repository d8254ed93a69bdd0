"""What a decider of tuples is, and the decisions it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions in order, and the generalizations they refer to, in the layout of the kernels' output."""

    out: Ints
    group_f: Floats
    group_i: Ints
    reference: Floats

    def __len__(self) -> int:
        return len(self.out)

    @property
    def rows(self) -> Ints:
        """Row numbers."""
        return self.out[:, t.O_ROW]

    @property
    def is_released(self) -> npt.NDArray[np.bool_]:
        """Which rows are published; the others are suppressed."""
        released: npt.NDArray[np.bool_] = self.out[:, t.O_VERDICT] == t.IS_RELEASED
        return released

    @property
    def groups(self) -> Ints:
        """Index of each row's generalization; NO_GROUP where the row is suppressed."""
        return self.out[:, t.O_GROUP]

    @property
    def delays(self) -> Ints:
        """How long each row was pending."""
        return self.out[:, t.O_DELAY]

    @property
    def at(self) -> Ints:
        """The arrival during which each row was decided."""
        return self.out[:, t.O_AT]

    @property
    def masks(self) -> Ints:
        """Which attributes each row carries."""
        return self.out[:, t.OUT_MASKS :]

    @property
    def numbers(self) -> Ints:
        """The number of each generalization's cluster."""
        return self.group_i[:, t.G_NUMBER]

    @property
    def reused(self) -> Ints:
        """Whether each generalization is that of a cluster published before."""
        return self.group_i[:, t.G_REUSED]

    @property
    def low(self) -> Floats:
        """Low ends, one column for each attribute."""
        return self.group_f[:, : self.group_f.shape[1] // 2]

    @property
    def high(self) -> Floats:
        """High ends."""
        return self.group_f[:, self.group_f.shape[1] // 2 :]

    @property
    def node(self) -> Ints:
        """Nodes of the hierarchies."""
        return self._block(t.C_NODE)

    @property
    def shown(self) -> Ints:
        """Whether an attribute is shown."""
        return self._block(t.C_SHOWN)

    @property
    def carriers(self) -> Ints:
        """How many members carry an attribute."""
        return self._block(t.C_CARRIERS)

    def _block(self, number: int) -> Ints:
        wide = self.group_f.shape[1] // 2
        return self.group_i[:, t.G_FIELDS + number * wide : t.G_FIELDS + (number + 1) * wide]

    @classmethod
    def of(cls, stream: t.Stream) -> Self:
        """Move the decisions out of the kernels' output arrays."""
        rows, groups = int(stream.tally[t.OUT_ROWS]), int(stream.tally[t.OUT_GROUPS])
        stream.tally[t.OUT_ROWS] = stream.tally[t.OUT_GROUPS] = 0
        parts = stream.group_f, stream.group_i, stream.group_r
        return cls(stream.out_i[:rows].copy(), *(part[:groups].copy() for part in parts))

    def during(self, at: int) -> Self:
        """The same decisions, all made during one arrival."""
        self.out[:, t.O_AT] = at
        return self

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The decisions of all parts, at least one, one part after another."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        widest = max(part.reference.shape[2] for part in parts)
        references, groups = [], 0
        for part in parts:
            np.add(part.groups, groups, out=part.groups, where=part.groups >= 0)
            groups += len(part.numbers)
            more = widest - part.reference.shape[2]  # sensitive values first seen after this part was decided
            references.append(np.pad(part.reference, ((0, 0), (0, 0), (0, more))) if more else part.reference)
        out, group_f, group_i = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("out", "group_f", "group_i")
        )
        return cls(out, group_f, group_i, np.concatenate(references))


class Decider(Protocol):
    """The state of a stream of tuples and the kernels that decide them: the only place where either changes."""

    @property
    def pending(self) -> int:
        """Number of tuples not decided yet."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    @property
    def tally(self) -> Ints:
        """Counts so far."""

    @property
    def sums(self) -> Floats:
        """Losses so far."""

    def pending_rows(self) -> Ints:
        """Row numbers of the pending tuples, ascending."""

    def know_values(self) -> None:
        """Make room for sensitive values seen for the first time, and pass them to the kernels."""

    def take(self, arrivals: t.Arrivals) -> list[Decided]:
        """Accept arrivals; return what is decided during them, in one part or several."""

    def pass_time(self, now: int) -> list[Decided]:
        """Decide what is due by now."""

    def finish(self) -> list[Decided]:
        """Decide everything pending; the clock does not move."""

    def dump(self) -> Arrays:
        """The state, in an order that does not depend on how it came about."""

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump() returned."""
