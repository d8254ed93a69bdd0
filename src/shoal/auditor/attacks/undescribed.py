"""Describe a table of another tool that has no policy: ranges, values, values cut off with asterisks, and "*"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.hierarchies.hierarchy import ROOT
from shoal.auditor.reading.files import Format, read
from shoal.auditor.reading.numbers import read_numbers, read_ranges
from shoal.auditor.reading.rows import Rows
from shoal.errors import InputError, PolicyError

_MASK: Final = "*"


def describe(
    release: Any, truth: Any, quasi: Sequence[str], sensitive: Sequence[str], person: str | None
) -> dict[str, Any]:
    """Return a policy that says how the columns were published, as far as that can be seen."""
    if not quasi:
        raise PolicyError("knows: without a policy, name the quasi-identifiers that attackers know")
    shown = read(release, name="release", expected=Format())
    known = read(truth, name="truth", expected=Format(trims=True))
    shown.require(*quasi, *sensitive)
    known.require(*quasi, *sensitive, *([person] if person else []))
    rules = {name: _rule(name, shown, known) for name in quasi}
    return {
        "stream": {"person": person or "row"},
        "anonymize": {"method": "least-loss", "k": 1, "sensitive": list(sensitive), "quasi": rules},
    }


def _rule(name: str, shown: Rows, known: Rows) -> dict[str, Any]:
    ranges = read_ranges(shown.pieces(name))
    numbers = read_numbers(known.pieces(name))
    has_ranges = not ranges.unreadable.any() and np.isfinite(ranges.low.value).any()
    if has_ranges and not numbers.unreadable.any():
        ends = np.concatenate([ranges.low.value, ranges.high.value, numbers.value])
        ends = ends[np.isfinite(ends)]
        low, high = float(ends.min()), float(ends.max())
        return {"kind": "numeric", "low": low, "high": high if high > low else low + 1}
    return {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": {ROOT: _tree(name, shown, known)}}}


def _tree(name: str, shown: Rows, known: Rows) -> dict[str, Any]:
    """Arrange the labels of a column: a label with asterisks at the end is above what begins like it."""
    texts, (true, published) = shared_codes(known.text(name), shown.text(name))
    values = {texts[code] for code in np.unique(true).tolist() if code >= 0 and texts[code] != ROOT}
    labels = {texts[code] for code in np.unique(published).tolist() if code >= 0} - values - {ROOT}
    strange = [label for label in labels if not _stem(label) or not label.endswith(_MASK)]
    if strange:
        raise InputError(
            f"release: {len(strange)} labels of column {name} are neither values of the truth, nor ranges, nor values "
            "that end in asterisks; write a policy with the hierarchy of the column"
        )
    return _nested("", sorted(labels, key=lambda label: len(_stem(label))), values)


def _nested(stem: str, labels: list[str], values: set[str]) -> dict[str, Any]:
    own = [label for label in labels if _stem(label).startswith(stem) and _stem(label) != stem]
    tops = [one for one in own if not any(_covers(other, one) for other in own if other != one)]
    below = {top: {value for value in values if value.startswith(_stem(top))} for top in tops}
    rest = values - set().union(*below.values()) if below else values
    found: dict[str, Any] = {
        top: _nested(_stem(top), [one for one in own if _covers(top, one)], below[top]) for top in tops
    }
    return found | {value: {} for value in sorted(rest)}


def _covers(label: str, other: str) -> bool:
    return _stem(other).startswith(_stem(label)) and len(_stem(other)) > len(_stem(label))


def _stem(label: str) -> str:
    return label.rstrip(_MASK)
