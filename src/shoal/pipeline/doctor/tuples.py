"""The doctor's remarks for tuple methods: missing values, domains, people, and loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.hierarchies import Hierarchy
from shoal.pipeline.checks.near_labels import NearLabels
from shoal.pipeline.doctor.diversity import diversity_remarks
from shoal.pipeline.doctor.remarks import MOST_LISTED, Remark, Sample, listed
from shoal.policy import Policy
from shoal.policy.quasi import NumericSection
from shoal.policy.tuples import TupleSection
from shoal.schema import Numeric
from shoal.times import column_ns

Bools = npt.NDArray[np.bool_]
_SECOND: Final = 1_000_000_000
_GRID_STEPS: Final = 50
_MOST_CELLS: Final = 16
"""Whole numbers of a narrower domain have no grid that hides them and still says something."""
_ROUNDING: Final = 1e-9
_USUAL_SPANS: Final = (
    (60, '"1min"'), (300, '"5min"'), (900, '"15min"'), (3600, '"1h"'), (14_400, '"4h"'), (86_400, '"1d"'),
)  # fmt: skip
_USUAL_SPELLINGS: Final = ("?", "NA", "N/A", "n/a", "null", "NULL", "None", "nan", "NaN", "-", "unknown")
"""Common words for a missing value."""
COVERED_REASONS: Final = ("outside", "unknown")
"""Refusals that these remarks count by column."""


def tuple_remarks(policy: Policy, method: TupleSection, sample: Sample) -> Iterator[Remark]:
    """Remarks about a sample of a tuple stream before the method is tried."""
    yield from _people_remarks(policy, method, sample)
    yield from _missing_remarks(method, sample.batch)
    yield from _value_remarks(policy, method, sample.batch)
    yield from _spelling_remarks(policy, method, sample)
    yield from _whole_number_remarks(policy, method, sample.batch)
    yield from _grid_remarks(method, sample.batch)
    yield from diversity_remarks(method, sample.batch)
    yield from _deadline_remarks(policy, method, sample)
    yield from _group_remarks(method)


def _group_remarks(method: TupleSection) -> Iterator[Remark]:
    if method.groups and method.suppressed == "root":
        yield Remark(
            "look",
            "groups",
            'with suppressed = "root" a row that joins no cluster is published alone at its deadline, so anyone who '
            'knows when it arrived finds it and its sensitive values; use suppressed = "drop" with groups = true',
        )


def _people_remarks(policy: Policy, method: TupleSection, sample: Sample) -> Iterator[Remark]:
    people, words = sample.counted(policy.stream.person)
    seen = f"{words}, k = {method.k:,}"
    if people >= method.k:
        yield Remark("good", "people", seen)
    elif sample.is_all:
        yield Remark("look", "people", f"{seen}: nothing can be released; choose a smaller k, or wait for more people")
    else:
        yield Remark(
            "look",
            "people",
            f"{seen}: nothing can be released before there are k; is this the right column of persons?",
        )


def _missing_remarks(method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    if not batch.num_rows:
        return
    shares = {name: float(np.mean(is_missing(batch.column(name)))) for name in method.quasi}
    found = {name: share for name, share in shares.items() if share}
    if not found:
        yield Remark("good", "missing", "every row has a value in every quasi-identifier")
    needed = method.min_carriers or -(-method.k // 2)
    for name, share in found.items():
        is_rare = method.missing == "covered" and 1 - share < needed / method.k
        is_rare |= method.missing == "hidden" and share > 0.5
        remedy = "leave the column out" + (" or lower min_carriers" if method.missing == "covered" else "")
        consequence = f"; too few values for it to be published often: {remedy}"
        yield Remark(
            "look" if is_rare else "good", "missing",
            f"column {name!r}: {share:.1%} of its values are missing{consequence if is_rare else ''}",
        )  # fmt: skip


def is_missing(column: Any) -> Bools:
    """Which rows have no value; NaN counts as missing."""
    return np.asarray(pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False))


def _value_remarks(policy: Policy, method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    for name, own in method.quasi.items():
        column = batch.column(name)
        if isinstance(own, NumericSection):
            role = own.role(name)
            count = _count_outside(column, role)
            fate = "they will be clamped" if role.outside == "clamp" else "their rows will go to the dead letters"
            what = f"outside low and high; {fate}, correct the domain if it is too narrow"
        else:
            count = _count_unknown(column, policy.hierarchies[name])
            what = "not leaves of the hierarchy; their rows will go to the dead letters, add them to the hierarchy"
            what = _near_or(what, column, policy.hierarchies[name])
        if count:
            yield Remark("look", "values", f"column {name!r}: {count:,} values are {what}")


def _near_or(what: str, column: Any, tree: Hierarchy) -> str:
    """Suggest correcting case and spaces, if that is the reason, rather than adding leaves."""
    near = NearLabels.of(tree)
    if near is None:
        return what
    near.count(column)
    words = near.words(of="of them")
    return what if words is None else f"not leaves of the hierarchy; their rows will go to the dead letters; {words}"


def _count_outside(column: Any, role: Numeric) -> int:
    values = _numbers(column)
    with np.errstate(invalid="ignore"):
        return int(np.count_nonzero((values < role.low) | (values > role.high)))


def _numbers(column: Any) -> npt.NDArray[np.float64]:
    """Values as numbers, moments in seconds; NaN if missing."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        times, usable = column_ns(column)
        return np.where(usable, times / _SECOND, np.nan)
    return np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False))


def _count_unknown(column: Any, tree: Hierarchy) -> int:
    inner = set(tree.parents.tolist())
    leaves = [label for node, label in enumerate(tree.labels) if node not in inner]
    known = pc.is_in(column.cast(pa.string()), value_set=pa.array([*leaves, None], pa.string()))
    return int(np.count_nonzero(~known.to_numpy(zero_copy_only=False)))


def _spelling_remarks(policy: Policy, method: TupleSection, sample: Sample) -> Iterator[Remark]:
    """Find words for missing values in a CSV file: unless the policy names them, they count as values."""
    if policy.source.kind != "csv":
        return
    misfits = Counter(one.column for one in sample.decoded.refused)
    for name, own in method.quasi.items():
        if isinstance(own, NumericSection) and misfits[name]:
            yield Remark(
                "look", "missing",
                f"column {name!r}: {misfits[name]:,} values cannot be read as numbers; if they mean that a value is "
                'missing, name them in [source], such as nulls = ["?", "NA"]',
            )  # fmt: skip
    for name in (*(name for name, own in method.quasi.items() if own.kind == "categorical"), *method.sensitive):
        tree = policy.hierarchies.get(name)
        words = _spellings_in(sample.batch.column(name), meant=tree.labels if tree else ())
        if words:
            listed = ", ".join(f'"{word}"' for word in words)
            yield Remark(
                "look", "missing",
                f"column {name!r}: some values look like words for a missing value; if they are, set [source] "
                f"nulls = [{listed}]",
            )  # fmt: skip


def _spellings_in(column: Any, *, meant: Sequence[str]) -> list[str]:
    if not pa.types.is_string(column.type):
        return []
    found = set(pc.unique(pc.utf8_trim_whitespace(column)).to_pylist())
    return [word for word in _USUAL_SPELLINGS if word in found and word not in meant]


def _whole_number_remarks(policy: Policy, method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    """Numbers in text files are read as float64 unless the policy declares int64."""
    if policy.source.kind not in ("csv", "jsonl"):
        return
    assumed = [name for name, kind in method.column_types().items() if kind == "float64"]
    whole = [name for name in assumed if name not in policy.file_source.types and _is_whole(batch.column(name))]
    if whole:
        types = ", ".join(f'{name} = "int64"' for name in whole[:MOST_LISTED])
        yield Remark(
            "good", "types",
            f"{listed(whole)}: only whole numbers so far; with [source] types = {{{types}}} ranges are published as "
            "whole numbers, and a fraction goes to the dead letters",
        )  # fmt: skip


def _is_whole(column: Any) -> bool:
    values = _numbers(column)
    known = values[np.isfinite(values)]
    return bool(len(known)) and bool(np.all(known == np.rint(known)))


def _grid_remarks(method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    bare = {
        name: own for name, own in method.quasi.items()
        if isinstance(own, NumericSection) and own.grid is None and not _is_flag(batch.column(name))
    }  # fmt: skip
    if bare:
        yield Remark(
            "look", "grid",
            f"{listed(list(bare))}: without a grid a range ends at two people's own values; give grid = a "
            f"round step, such as {_proposed_grids(bare, batch)}",
        )  # fmt: skip
    roles = {name: own.role(name) for name, own in method.quasi.items() if isinstance(own, NumericSection)}
    exact = {
        name: own for name, own in method.quasi.items()
        if isinstance(own, NumericSection) and _hides_nothing(roles[name], batch.column(name))
    }  # fmt: skip
    if exact:
        yield Remark(
            "look", "grid",
            f"{listed(list(exact))}: a grid of 1 hides nothing of whole numbers, so a range ends at two people's own "
            f"values; choose a wider step, such as {_proposed_grids(exact, batch)}",
        )  # fmt: skip
    wide = [
        name for name, role in roles.items()
        if role.grid is not None and 2 * role.grid > role.high - role.low and not _is_flag(batch.column(name))
    ]  # fmt: skip
    if wide:
        yield Remark(
            "look", "grid",
            f"{listed(wide)}: the grid is wider than half of the domain, so ranges carry hardly any information; "
            "choose a smaller step (a duration as a grid is for columns of times: it counts seconds)",
        )  # fmt: skip


def _is_flag(column: Any) -> bool:
    """Whether all values are 0 or 1: no grid hides them."""
    if _is_moment(column):
        return False
    found = pc.unique(column.drop_null()).to_pylist()
    return bool(found) and set(found) <= {0, 1}


def _hides_nothing(role: Numeric, column: Any) -> bool:
    is_fine = role.grid is not None and role.grid <= 1 and role.high - role.low >= _MOST_CELLS
    return is_fine and not _is_moment(column) and _is_whole(column) and not _is_flag(column)


def _is_moment(column: Any) -> bool:
    return bool(pa.types.is_timestamp(column.type) or pa.types.is_date(column.type))


def _proposed_grids(given: Mapping[str, NumericSection], batch: pa.RecordBatch) -> str:
    some = list(given.items())[:MOST_LISTED]
    return ", ".join(f"{_proposed_grid(own, batch.column(name))} for {name!r}" for name, own in some)


def _proposed_grid(own: NumericSection, column: Any) -> str:
    """A round step of about a fiftieth of the domain; for whole numbers at least 2: a step of 1 hides nothing."""
    role = own.role("column")
    step = (role.high - role.low) / _GRID_STEPS
    if own.column_type() == "timestamp":
        return next((text for seconds, text in _USUAL_SPANS if seconds >= step), f'"{math.ceil(step / 86_400)}d"')
    step = max(step, 2.0) if _is_whole(column) else step
    power = 10.0 ** math.floor(math.log10(step))
    return f"{next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - _ROUNDING)):g}"


def _deadline_remarks(policy: Policy, method: TupleSection, sample: Sample) -> Iterator[Remark]:
    rows = sample.decoded.rows
    if not method.is_timed:
        if sample.is_all and rows <= method.deadline:
            yield Remark(
                "look", "deadline",
                f"the input ends before the first row is due ({rows:,} rows, deadline {method.deadline:,} arrivals): "
                "everything is decided at the end, at once",
            )  # fmt: skip
        return
    together = _rows_within(policy, method.deadline, sample.batch)
    if together is not None:
        is_short = together < method.k
        advice = ", fewer than k; choose a longer one" if is_short else ""
        sentence = f"about {together:,} rows arrive within the deadline{advice}"
        yield Remark("look" if is_short else "good", "deadline", sentence)


def _rows_within(policy: Policy, deadline_ns: int, batch: pa.RecordBatch) -> int | None:
    assert policy.stream.time is not None, "a duration needs it"
    times, usable = column_ns(batch.column(policy.stream.time))
    known = times[usable]
    length = int(known.max() - known.min()) if len(known) else 0
    return min(len(known), round(len(known) * deadline_ns / length)) if length else None


def loss_words(metrics: Mapping[str, Any], *, unit: str) -> str:
    """Loss, clusters and delay of the trial."""
    return (
        f"average loss {metrics['loss']:.3f} (0 exact, 1 fully generalized), {metrics['formed']:,} clusters formed, "
        f"average delay {metrics['delay']:,.0f} {unit}"
    )
