"""Describe a table of another tool that has no policy: ranges, values, values cut off with asterisks, and "*"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.counting import shared_codes
from shoal.auditor.hierarchies.hierarchy import ROOT
from shoal.auditor.reading.files import read
from shoal.auditor.reading.numbers import Floats, Ranges, read_numbers, read_ranges
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows
from shoal.errors import InputError, PolicyError

_MASK: Final = "*"
_SECOND: Final = 1_000_000
"""Moments are counted in microseconds; a policy gives them in seconds."""


def describe(
    release: Any, truth: Any, quasi: Sequence[str], sensitive: Sequence[str], person: str | None
) -> tuple[dict[str, Any], Any]:
    """Return a policy that says how the columns were published, as far as that can be seen, and the release.

    In the release, columns with ranges consist of ranges only: "*" is the whole domain, a number x is [x, x].
    """
    if not quasi:
        raise PolicyError("knows: without a policy, name the quasi-identifiers that attackers know")
    shown = read(release, name="release", expected=Format())
    known = read(truth, name="truth", expected=Format(trims=True))
    shown.require(*quasi, *sensitive)
    known.require(*quasi, *sensitive, *([person] if person else []))
    rules: dict[str, Any] = {}
    columns: dict[str, Any] = {name: shown.text(name) for name in sensitive}
    for name in quasi:
        found = _read_spans(name, shown, known)
        if found is None:
            tree = {ROOT: _tree(name, shown, known)}
            rules[name] = {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": tree}}
            columns[name] = shown.text(name)
        else:
            rules[name], columns[name] = found
    policy = {
        "stream": {"person": person or "row"},
        "anonymize": {"method": "least-loss", "k": 1, "sensitive": list(sensitive), "quasi": rules},
    }
    return policy, pa.table(columns)


def _read_spans(name: str, shown: Rows, known: Rows) -> tuple[dict[str, Any], Any] | None:
    """Return the rule and the ranges of a column of numbers; None if it has no ranges."""
    ranges, true = read_ranges(shown.pieces(name)), read_numbers(known.pieces(name))
    if not np.isfinite(ranges.low.value).any() or not np.isfinite(true.value).any():
        return None
    numbers = read_numbers(shown.pieces(name))
    are_moments = ranges.are_moments or true.are_moments
    if are_moments:
        ranges = Ranges(ranges.low.in_microseconds(), ranges.high.in_microseconds())
        true, numbers = true.in_microseconds(), numbers.in_microseconds()
    is_number = np.isfinite(numbers.value)
    texts, (code,) = shared_codes(shown.text(name))
    is_root = np.array([*(text.strip() == _MASK for text in texts), False], np.bool_)[code]  # code -1 picks the last
    strange = ranges.unreadable & ~is_number & ~is_root
    _refuse(name, len(np.unique(code[strange])), "numbers, nor ranges, nor *")
    low, high = (np.where(is_number, numbers.value, end.value) for end in (ranges.low, ranges.high))
    ends = np.concatenate([low, high, true.value])
    ends = ends[np.isfinite(ends)]
    unit = _SECOND if are_moments else 1
    first, last = float(ends.min()) / unit, float(ends.max()) / unit
    if are_moments:
        first, last = math.floor(first), math.ceil(last)
    last = last if last > first else first + 1
    low, high = np.where(is_root, first * unit, low), np.where(is_root, last * unit, high)
    rule = {"kind": "numeric", "low": first, "high": last}
    return rule, _structs(low, high, are_moments=are_moments)


def _structs(low: Floats, high: Floats, *, are_moments: bool) -> Any:
    """Return ranges as Arrow structs; null where both ends are missing."""
    missing = np.isnan(low) | np.isnan(high)
    ends = [pa.array(np.where(missing, 0.0, end)) for end in (low, high)]
    if are_moments:
        rounded = (pc.floor(ends[0]), pc.ceil(ends[1]))
        ends = [end.cast(pa.int64()).cast(pa.timestamp("us", "UTC")) for end in rounded]
    return pa.StructArray.from_arrays(ends, ["lo", "hi"], mask=pa.array(missing))


def _tree(name: str, shown: Rows, known: Rows) -> dict[str, Any]:
    """Arrange the labels of a column: a label with asterisks at the end is above what begins like it."""
    texts, (true, published) = shared_codes(known.text(name), shown.text(name))
    values = {texts[code] for code in np.unique(true).tolist() if code >= 0 and texts[code] != ROOT}
    labels = {texts[code] for code in np.unique(published).tolist() if code >= 0} - values - {ROOT}
    strange = [label for label in labels if not _stem(label) or not label.endswith(_MASK)]
    _refuse(name, len(strange), "values of the truth, nor values that end in asterisks")
    return _nested("", sorted(labels, key=lambda label: len(_stem(label))), values)


def _refuse(name: str, count: int, expected: str) -> None:
    if count:
        labels = "1 label is" if count == 1 else f"{count:,} different labels are"
        raise InputError(
            f"release: column {name}: {labels} neither {expected}; a range is written [20, 30]; for other labels write "
            "a policy with the hierarchy of the column"
        )


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
