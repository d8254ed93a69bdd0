"""What a decider of tuples is, and the decisions it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions in order, and the generalizations they refer to."""

    rows: Ints
    verdicts: Ints
    groups: Ints
    """Index of the generalization in the arrays below; NO_GROUP where the row is suppressed."""
    delays: Ints
    at: Ints
    """The arrival during which each row was decided."""
    masks: Ints
    numbers: Ints
    reused: Ints
    low: Floats
    high: Floats
    node: Ints
    shown: Ints
    carriers: Ints
    reference: Floats

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, stream: t.Stream) -> Self:
        """Move the decisions out of the kernels' output arrays."""
        rows, groups = int(stream.tally[t.OUT_ROWS]), int(stream.tally[t.OUT_GROUPS])
        stream.tally[t.OUT_ROWS] = stream.tally[t.OUT_GROUPS] = 0
        out, wide = stream.out_i[:rows].copy(), stream.attr_f.shape[1]
        shown = [stream.group_i[:groups, t.G_FIELDS + n * wide : t.G_FIELDS + (n + 1) * wide].copy() for n in range(3)]
        return cls(
            out[:, t.O_ROW], out[:, t.O_VERDICT], out[:, t.O_GROUP], out[:, t.O_DELAY], out[:, t.O_AT],
            out[:, t.OUT_MASKS :],
            stream.group_i[:groups, t.G_NUMBER].copy(), stream.group_i[:groups, t.G_REUSED].copy(),
            stream.group_f[:groups, :wide].copy(), stream.group_f[:groups, wide:].copy(),
            shown[t.C_NODE], shown[t.C_SHOWN],
            shown[t.C_CARRIERS],
            stream.group_r[:groups].copy(),
        )  # fmt: skip

    def in_order(self, order: Ints) -> Self:
        """The same decisions in another order."""
        own = ("rows", "verdicts", "groups", "delays", "at", "masks")
        return replace(self, **{name: getattr(self, name)[order] for name in own})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The decisions of all parts, one part after another."""
        if len(parts) == 1:
            return parts[0]
        widest = max(part.reference.shape[2] for part in parts)
        moved, groups = [], 0
        for part in parts:
            more = widest - part.reference.shape[2]  # sensitive values first seen after this part was decided
            moved.append(
                replace(
                    part,
                    groups=np.where(part.groups >= 0, part.groups + groups, part.groups),
                    reference=np.pad(part.reference, ((0, 0), (0, 0), (0, more))) if more else part.reference,
                )
            )
            groups += len(part.numbers)
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in moved]) for name in names))


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

    def take(self, arrivals: t.Arrivals) -> Decided:
        """Accept arrivals; return what is decided during them."""

    def pass_time(self, now: int) -> Decided:
        """Decide what is due by now."""

    def finish(self) -> Decided:
        """Decide everything pending; the clock does not move."""

    def dump(self) -> Arrays:
        """The state, in an order that does not depend on how it came about."""

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump() returned."""
