"""Columns of the flexible method as codes: leaves, values of an ontology, or numbers for cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.anonymizers.tuple_reading import REFUSED, CategoricalReader, NumericReader, Reader
from shoal.hierarchies.ontology import Concepts
from shoal.kernels.flexible_rounds import MISSING
from shoal.schema import Categorical, Numeric, Quasi

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class ConceptReader(CategoricalReader):
    """Values of an ontology's attribute."""

    def __init__(self, name: str, concepts: Concepts) -> None:
        self.name = name
        self._ranks = {value: rank for rank, value in enumerate(concepts.values)}
        self._ranked = pa.array(concepts.values, type=pa.string())


def flexible_reader(role: Quasi, concepts: Concepts | None) -> Reader:
    """The reader of a quasi-identifier."""
    if isinstance(role, Numeric):
        return NumericReader(role)
    assert isinstance(role, Categorical)
    return ConceptReader(role.name, concepts) if concepts is not None else CategoricalReader(role)


def as_codes(ranks: Floats) -> Ints:
    """Ranks as codes, MISSING for NaN."""
    is_missing = np.isnan(ranks)
    codes = np.where(is_missing, 0.0, ranks).astype(np.int64)
    codes[is_missing] = MISSING
    return codes


def is_refused(number: Any) -> bool:
    """Whether a single value cannot be used."""
    return number is REFUSED
