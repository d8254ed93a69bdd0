"""Is every released set what its record becomes under the labels of its items?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import ROW, Answer, Found, find, look
from shoal.auditor.counting import pair_codes, surplus
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes, Severity
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation, Shape, place_of
from shoal.auditor.sets.partition import Partition
from shoal.auditor.sets.records import Records, Sets, collect, sets_check

_SHOWN: Final[Shape] = {"row": int, "high": int, "low": int}
_EXPECTED: Final[Shape] = {"record": int, **_SHOWN, "is_sure": bool, "is_empty": bool}
_COMPARED: Final[Shape] = {"row": int, "differs": bool, "added": bool, "lost": int}
_UNTRUE: Final = "The release is not what the method makes of this truth. Give the truth of this run, or run it again."


@sets_check("not-the-image", "A released set is not the image of its original.", by="record", needs=("truth",),
            advice=_UNTRUE)  # fmt: skip
def not_the_image(rows: Relation, whose: str) -> Answer:
    """Mark rows that are not the labels of the items of a record: of their own, if the trace names it."""
    return Answer(rows["differs"], sentence=f"A released set is not the image of {whose} original.")


@sets_check("record-added", "Rows were released that the trace has no record for.", by="record",
            needs=("truth", "trace"), advice=_UNTRUE)  # fmt: skip
def of_no_record(rows: Relation) -> Bools:
    """Mark rows that are the row of no record."""
    return np.asarray(rows["added"])


@sets_check("record-missing", "Records of the truth were not released.", by="none", needs=("truth",), advice=_UNTRUE)
def fewer_rows(lost: int, differing: int) -> int:
    """Count the records whose image is missing, without those that a row that is no image may stand for."""
    return lost - min(lost, differing)


@sets_check("record-added", "More records were released than the truth has.", by="none", needs=("truth",),
            advice=_UNTRUE)  # fmt: skip
def more_rows(lost: int, differing: int) -> int:
    """Count the rows that are no image, without those that may stand for a record whose image is missing."""
    return differing - min(lost, differing)


@sets_check(
    "in-input-order", "The released rows are in the order of the input; shuffle them.", by="order", needs=("truth",),
    severity=Severity.WARNING,
    advice="Anyone who knows the order of the input knows whose each row is. Publish what the method wrote.",
)  # fmt: skip
def in_input_order(expected: bytes, shown: bytes, several: bool) -> int:  # noqa: FBT001
    """Compare digests of both sides in order, if not all rows are alike."""
    return int(several and expected == shown)


# ---- digests of sets: equal sets, equal digests


def _digests(sets: Sets, keys: Any) -> dict[str, Ints]:
    """Add up a random number for each label of a set, twice: different sets agree once in 2**128."""
    found = {}
    for name, key in zip(("high", "low"), keys, strict=True):
        upto = np.append(np.zeros(1, np.uint64), np.cumsum(key[sets.items], dtype=np.uint64))
        found[name] = (upto[sets.offsets[1:]] - upto[sets.offsets[:-1]]).view(np.int64)
    return found


def _shown(keys: Any, heads: Relation, sets: Sets) -> Relation:
    return Relation({"row": heads["row"], **_digests(sets, keys)})


def _expected(keys: Any, partition: Partition, heads: Relation, sets: Sets) -> Relation:
    label = partition.label_of[sets.items]
    image = collect(sets.owners, label, len(sets), partition.labels, label >= 0)
    is_sure = np.ones(len(sets), np.bool_)
    if partition.is_unclear is not None:
        is_sure[sets.owners[partition.is_unclear[sets.items]]] = False
    return heads.only("record", "row").having(**_digests(image, keys), is_sure=is_sure, is_empty=sets.sizes == 0)


def check_image(
    truth: Records, release: Records, partition: Partition, notes: Notes, *, has_rows: bool, is_file: bool
) -> None:
    """Check the release against the truth: row by row if the trace names the row of every record, else as multisets."""
    place = truth.place
    keys = np.random.default_rng().integers(0, 2**64, (2, len(partition.labels)), np.uint64)
    expected = truth.regroup(partial(_expected, keys, partition), _EXPECTED)
    shown = release.regroup(partial(_shown, keys), _SHOWN)
    if has_rows:
        _check_rows(place, expected, shown, notes)
    else:
        _check_as_multisets(place, expected, shown, notes)
    if is_file:
        wanted, _ = place.along(expected, ("record",), _sequence)
        there, several = place.along(shown, ("row",), _sequence)
        notes.findings += in_input_order(wanted, there, several)


def _sequence(batches: Iterator[Relation]) -> tuple[bytes, bool]:
    """A digest of sets in order, and whether some differ."""
    digest, first, several = hashlib.blake2b(), None, False
    for batch in batches:
        pairs = np.column_stack([batch["high"], batch["low"]])
        first = pairs[:1] if first is None else first
        several = several or bool((pairs != first).any())
        digest.update(pairs.tobytes())
    return digest.digest(), several


def _check_rows(place: Place, expected: Table, shown: Table, notes: Notes) -> None:
    compared = place.both(expected, shown, ("row",), _compare_rows, _COMPARED)
    found = find(place, compared, (ROW,), partial(_look_at_rows, "its"), notes)
    notes.metrics["records_that_differ"] = found.sums["differing"]


def _compare_rows(expected: Relation, shown: Relation) -> Relation:
    at = place_of(expected["row"], shown["row"])
    is_same = (expected["high"] == shown["high"][at]) & (expected["low"] == shown["low"][at])
    differs, added = np.zeros(len(shown), np.bool_), np.ones(len(shown), np.bool_)
    differs[at[~is_same & expected["is_sure"]]] = True
    added[at] = False
    return Relation({"row": shown["row"], "differs": differs, "added": added, "lost": np.zeros(len(shown), np.int64)})


def _look_at_rows(whose: str, rows: Relation) -> Found:
    sums = {"differing": int(rows["differs"].sum()), "lost": int(rows["lost"].sum())}
    return Found(look(rows, (not_the_image,), whose) + look(rows, (of_no_record,)), sums)


def _check_as_multisets(place: Place, expected: Table, shown: Table, notes: Notes) -> None:
    """Check that the same sets were released, each as often, in any order."""
    compared = place.both(expected, shown, ("high", "low"), _compare_sets, _COMPARED)
    found = find(place, compared, (ROW,), partial(_look_at_rows, "an"), notes)
    lost, differing = found.sums["lost"], found.sums["differing"]
    notes.findings += fewer_rows(lost, differing) + more_rows(lost, differing)
    notes.metrics["records_that_differ"] = max(lost, differing)


def _compare_sets(expected: Relation, shown: Relation) -> Relation:
    """Records with an item of unknown label may be missing, and so may empty ones; row -1 tells how many others are."""
    shown = shown.ordered("row")
    wanted, there = pair_codes((expected["high"], expected["low"]), (shown["high"], shown["low"]))
    binding = expected["is_sure"] & ~expected["is_empty"]
    absent, extra = surplus(wanted[binding], there)
    unexplained = np.flatnonzero(absent | extra)
    none, more = surplus(wanted[~binding], there[unexplained])
    differs = np.zeros(len(shown) + 1, np.bool_)
    differs[unexplained[none | more]] = True
    missing, rarer = surplus(there, wanted[binding])
    lost = np.zeros(len(shown) + 1, np.int64)
    lost[-1] = (missing | rarer).sum()
    return Relation(
        {"row": np.append(shown["row"], -1), "differs": differs, "added": np.zeros_like(differs), "lost": lost}
    )
