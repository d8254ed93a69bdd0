"""The result of local recoding: records whose labels differ in precision."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.methods.sets.certificate import Certificate
from shoal.methods.sets.data import SetData, gathered
from shoal.methods.sets.local_recoding import LocalRecoding
from shoal.methods.sets.partition import Partition
from shoal.methods.sets.result import KmResult
from shoal.methods.sets.settings import KmSettings


class LocalKmResult(KmResult):
    """Sets generalized record by record, with the certificate of their guarantee.

    The labels were chosen for exactly these records, so they cannot be applied to others: anonymize those anew.
    """

    def __init__(
        self, settings: KmSettings, data: SetData, partition: Partition, certificate: Certificate, local: LocalRecoding
    ) -> None:
        super().__init__(settings, data, partition, certificate)
        self._local = local

    @property
    def error(self) -> float:
        """The information lost: NCP."""
        return self._local.error

    @property
    def global_error(self) -> float:
        """What one cut of the tree for all records loses, from which local recoding starts."""
        return float(self._partition.error)

    @cached_property
    def blocks(self) -> dict[str, tuple[str, ...]]:
        """The items under every label in use; a label may be above another one."""
        layout, names = self._local.layout, self._data.names
        used = np.unique(self._local.levels.nodes).tolist()
        below = {node: np.sort(layout.item_at[layout.first[node] : layout.last[node]]) for node in used}
        return {layout.labels[node]: tuple(names[item] for item in items) for node, items in below.items()}

    @property
    def entries_generalized(self) -> float:
        """Share of what people have that is not published as the item itself."""
        return float((self._local.levels.nodes != self._local.levels.leaves).mean())

    @property
    def items_generalized(self) -> int:
        """Number of items that are published under another label in some record."""
        levels = self._local.levels
        return len(np.unique(levels.leaves[levels.nodes != levels.leaves]))

    def __repr__(self) -> str:
        return f"<LocalKmResult of {len(self):,} records with {len(self.blocks):,} labels, certified>"

    def _ranked(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], tuple[str, ...]]:
        shown = self._local.shown()
        back = np.empty(len(self), np.int64)
        back[shown.order] = np.arange(len(self))
        return *gathered(*shown.sets, back), shown.names

    def apply(self, records: Any) -> KmResult:
        """Not possible: each record has levels of its own."""
        raise PolicyError("apply: local recoding chose labels for these records only; anonymize the others anew")

    def without(self, rows: Iterable[int]) -> KmResult:
        """Not possible: other records may need the ones that go."""
        raise PolicyError("without: local recoding chose labels for these records only; anonymize the others anew")

    def certify(self, *, join: bool = True) -> KmResult:
        """This result: it was certified when it was made."""
        return self
