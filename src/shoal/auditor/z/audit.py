"""Audit z-anonymity: was every released value shown by z people within the window?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.auditor.checks import Check, Found, all_found, look, merged
from shoal.auditor.counting import combined
from shoal.auditor.engine import Place, Table
from shoal.auditor.evidence import audit_release
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.identifying_columns import ColumnCrowds, allows_identifying, measure_crowds, note_identifying
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.released_columns import raw_identifier_in_metadata
from shoal.auditor.sorting import distinct, firsts
from shoal.auditor.trace import RELEASED, VERDICTS
from shoal.auditor.z import crowds, epochs, membership, order, pseudonyms, records, withheld
from shoal.auditor.z.evidence import (
    LINK,
    decided_shape,
    entry_shape,
    join_records,
    join_rows,
    level_columns,
    nothing,
    read_entries,
    read_records,
    read_released,
    record_shape,
    verdicts_of,
    without_rows,
)  # fmt: skip
from shoal.auditor.z.order import Clock
from shoal.auditor.z.promise import Attribute, Target, ZPromise, read_z_promise
from shoal.auditor.z.spelling import check_spellings
from shoal.errors import InputError

_NO_ROWS: Final = Relation({})


def audit_z(place: Place, policy: Policy) -> AuditReport:
    """Check the promise of a policy for z-anonymity."""
    promise = read_z_promise(policy)
    return audit_release(place, policy, promise, lambda notes: _Audit(place, policy, promise, notes).run())


@dataclass(slots=True)
class _Audit:
    """The steps of an audit."""

    place: Place
    policy: Policy
    promise: ZPromise
    notes: Notes
    shape: Shape = field(default_factory=dict)
    """The columns of released rows."""
    has_truth: bool = False
    has_trace: bool = False

    def run(self) -> None:
        """Read everything, link released rows to their records, and look at values, rows, people and epochs."""
        place, notes = self.place, self.notes
        released, self.shape = read_released(place, self.promise)
        self.has_truth = place.has("truth")
        people, active = None, dict[int, int]()
        if not self.has_truth:
            self._say_without_truth()
            rows = place.each(released, partial(_with, {}), self.shape | LINK)
            forms: frozenset[str] = frozenset()
        else:
            self._require_truth()
            notes.findings += check_spellings(place, self.promise)
            known = read_records(place, self.promise)
            rows, counted = self._against_truth(released, known)
            people, active = self._measure_people(counted)
            rows, forms = self._check_identifiers(rows, known)
        self._check_pseudonyms(rows, forms)
        self._check_carried(rows)
        self._check_epochs(rows, people, active)

    def _find(self, found: Iterable[Found]) -> Found:
        whole = all_found(found)
        self.notes.findings += whole.findings
        return whole

    # ---- evidence

    def _say_without_truth(self) -> None:
        notes = self.notes
        notes.skip("Whether z people showed every value, and whether rows are true, was not checked: no truth.")
        notes.skip("Whether identifiers leaked was not checked beyond the form of pseudonyms: no truth.")
        if self.place.has("trace"):
            notes.skip("The trace was not checked: it needs the truth.")

    def _say_without_trace(self) -> None:
        notes, promise = self.notes, self.promise
        notes.skip(
            "People were counted over all usable records up to the released time: "
            "refusals of late records and the order of equal times are only in the trace."
        )
        notes.skip("Whether one person has two pseudonyms, or two share one, was checked only for unique rows.")
        if promise.target is not None:
            notes.skip(
                "Which z was in force in which epoch, and whether values had as many people, was not checked: no trace."
            )
        notes.skip("Whether too much was suppressed, and whether every record was decided once, was not checked: no trace.")
        notes.skip("How many people have no released row was not counted: no trace.")
        if any(attribute.generalizes for attribute in promise.attributes):
            notes.skip("The residual rule (people released below a label do not count for it) was not checked: no trace.")
        if len(promise.attributes) > 1:
            notes.skip("Which values belong to one row was not checked: no trace.")

    def _require_truth(self) -> None:
        truth = self.place.outline("truth")
        missing = [name for name in self.promise.columns if name not in truth.columns]
        if missing and truth.rows:
            raise InputError(f"truth: no column {', '.join(missing)}; check the policy and the file")

    def _against_truth(self, released: Table, known: Table) -> tuple[Table, Table]:
        """Check released rows with their records; return both, the records that counted only."""
        place, promise = self.place, self.promise
        trace = place.outline("trace").columns
        missing = [name for name in ("row", "verdict") if name not in trace]
        if place.has("trace") and missing:
            self.notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
        self.has_trace = place.has("trace") and not missing
        if not self.has_trace:
            self._say_without_trace()
            return self._check_bounds(released, known, known)
        files = place.facts("trace", _shown)
        apart = abs(sum(shown for _, shown in files) - place.outline("release").rows)
        self.notes.findings += records.release_count(_NO_ROWS, apart)
        ends = np.cumsum([(0, 0), *files], axis=0)[:-1]
        entries = read_entries(place, promise, dict(ends.tolist()))
        shape = entry_shape(promise) | self.shape
        if apart:
            self.notes.skip("Rows were not checked one by one: trace and release do not have the same number of rows.")
            entries = place.each(entries, partial(without_rows, shape), shape)
        else:
            entries = join_rows(place, entries, released, shape)
        decided = place.both(entries, known, ("record",), join_records, decided_shape(promise, self.shape))
        clock = self._check_records(decided, is_linked=not apart)
        if apart:
            accepted = place.each(decided, partial(_kept, "accepted", record_shape(promise)), record_shape(promise))
            return self._check_bounds(released, known, accepted)[0], decided
        self._check_values(decided, clock)
        columns = self.shape | LINK
        return place.each(decided, partial(_linked, columns), columns), decided

    # ---- records, with the trace

    def _check_records(self, decided: Table, *, is_linked: bool) -> Clock:
        place, promise, notes = self.place, self.promise, self.notes
        clock = place.along(place.each(decided, order.arrivals, order.ARRIVAL), ("record",), partial(order.follow, promise))
        decisions = place.each(decided, order.decisions, order.DECISION)
        misplaced = place.along(decisions, ("entry",), partial(order.count_misplaced, promise, clock))
        notes.findings += order.decision_order(_NO_ROWS, misplaced)
        if promise.k is not None or not misplaced:
            notes.findings += order.late_accepted(_NO_ROWS, clock.late)
        closed = -1
        if promise.k is not None:
            closed = max(place.divide(decided, ("record",), partial(records.last_closed, promise, clock)), default=-1)
        checks = (*records.ALL, *(records.OF_ROWS if is_linked else ()))
        found = all_found(place.divide(decided, ("record",), partial(_of_records, checks, promise, clock, closed)))
        notes.findings += merged([*found.findings, *records.refused_in_time(_NO_ROWS, clock.in_time)])
        empty = dict.fromkeys((*VERDICTS, "undecided"), 0)
        notes.metrics["verdicts"] = {"in": place.outline("truth").rows, **empty, **found.sums}
        return clock

    def _check_values(self, decided: Table, clock: Clock) -> None:
        place, promise, notes = self.place, self.promise, self.notes
        has_levels = self._has_levels()
        shape = {name: kind for name, kind in decided_shape(promise, self.shape).items() if name not in ("reason", "accepted")}
        accepted = place.each(decided, partial(_kept, "accepted", shape), shape)
        notes.metrics["smallest_crowd"] = {}
        for attribute in promise.attributes:
            by = () if attribute.generalizes else (f"true {attribute.name}",)
            held = f"held {attribute.name}"
            shape = shape | crowds.COUNTED | {held: bool}
            work = partial(_counted, attribute, clock, has_levels)
            accepted = place.regroup(accepted, by, work, shape)
            check = partial(crowds.check_counted, attribute, is_final=promise.target is None)
            found = self._find(place.divide(accepted, by, check))
            notes.metrics["smallest_crowd"][attribute.name] = found.least.get("crowd")
        if promise.k is not None and has_levels:
            self._find(place.divide(accepted, ("epoch",), partial(_let_wait, promise, clock)))
        if promise.target is not None:
            self._check_target(promise.target, accepted, clock)

    def _has_levels(self) -> bool:
        if self.promise.k is None:
            return False
        if level_columns(self.place.outline("trace").columns, self.promise) is None:
            self.notes.unchecked(
                "Values that passed z and were removed later cannot be distinguished from values suppressed by z: "
                "the trace has no column level, the level at which values passed."
            )
            return False
        return True

    def _check_target(self, target: Target, accepted: Table, clock: Clock) -> None:
        place, promise = self.place, self.promise
        self._find(place.divide(accepted, ("epoch",), partial(_of_z, promise, clock)))
        low = place.divide(accepted, ("epoch",), partial(epochs.low_z, promise, target, clock))
        self.notes.findings += epochs.z_too_early(_NO_ROWS, promise, target, low)
        found = self._find(place.divide(accepted, ("epoch",), partial(withheld.check_withheld, promise, target, clock)))
        self.notes.metrics["withheld"] = found.sums.get("withheld", 0)

    # ---- records, without the trace

    def _check_bounds(self, released: Table, known: Table, counted: Table) -> tuple[Table, Table]:
        """Check released rows as far as time and carried values tell their records."""
        place, promise = self.place, self.promise
        times = record_shape(promise) | {"at": int}
        shape = self.shape | LINK | {"absent": bool, "extra": bool}
        rows = place.both(
            place.each(known, partial(_renamed, "time", "at"), times), released, ("at",),
            partial(membership.matched, promise), shape,
        )  # fmt: skip
        self._find(place.divide(rows, ("row",), _of_times))
        smallest = self.notes.metrics["smallest_crowd"] = {}
        for attribute in promise.attributes:
            true, shown = f"true {attribute.name}", f"released {attribute.name}"
            values = place.each(counted, partial(_values, true, shown), {"time": int, "person": str, shown: str})
            by = () if attribute.generalizes else (shown,)
            work = partial(crowds.bounded, attribute)
            bounded = place.both(values, rows, by, work, shape | {"crowd": int})
            found = self._find(place.divide(bounded, ("row",), partial(crowds.check_bounded, attribute)))
            smallest[attribute.name] = found.least.get("crowd")
        return rows, known

    # ---- people and pseudonyms

    def _measure_people(self, counted: Table) -> tuple[int | None, dict[int, int]]:
        """Count people, also by epoch."""
        place, metrics, truth = self.place, self.notes.metrics, self.place.outline("truth")
        shape = {"person": str, "epoch": int, "is_shown": bool}
        found = place.divide(place.each(counted, _counting, shape), ("person",), _count_people)
        people, shown = (sum(part[at] for part in found) for at in (0, 1))
        active: dict[int, int] = {}
        for *_, of_epochs in found:
            for epoch, count in of_epochs.items():
                active[epoch] = active.get(epoch, 0) + count
        if self.has_trace:
            metrics["released_people"] = shown
            metrics["people_never_released_share"] = 1 - shown / people if people else None
        if truth.rows:
            metrics["rows"], metrics["people"] = truth.rows, people
        return people or None, active

    def _check_identifiers(self, rows: Table, known: Table) -> tuple[Table, frozenset[str]]:
        """Look for identifiers of the truth wherever they must not be; return the rows, and hashes with epochs."""
        place, promise = self.place, self.promise
        self.notes.metrics |= _usable(self.place, known)
        persons = place.each(known, _persons, {"person": str})
        people = place.regroup(persons, ("person",), _different, {"person": str})
        release = replace(place.outline("release"), claims=())
        self._find(place.divide(people, ("person",), partial(_of_metadata, promise, release)))
        own = {promise.person, promise.time, *(attribute.name for attribute in promise.attributes)}
        others = [f"released {name}" for name in place.outline("release").columns if name not in own]
        shape: Shape = {"row": int, "named": bool, **dict.fromkeys(others, str)}
        named = place.each(rows, partial(_with, {"named": bool}, only=tuple(shape)), shape)
        for name in others:
            there = place.each(people, partial(_renamed, "person", name), {name: str})
            named = place.both(there, named, (name,), partial(_named, name), shape)
        self._find(place.divide(named, ("row",), _of_names))
        forms = place.each(people, pseudonyms.disguises, pseudonyms.FORMS)
        marks = self.shape | LINK | {"raw": bool, "disguised": bool}
        rows = place.both(forms, place.each(rows, partial(_kept, None, self.shape | LINK), self.shape | LINK),
                          ("pseudonym",), pseudonyms.unmasked, marks)  # fmt: skip
        return rows, self._hashes(rows, known)

    def _hashes(self, rows: Table, known: Table) -> frozenset[str]:
        """Hashes of a few people with their epochs, people of released rows if these are known."""
        place, promise = self.place, self.promise
        found = place.divide(rows, ("row",), _epochs_of)
        shown = set[int]().union(*(epochs_of for _, epochs_of in found))
        if not shown:
            return frozenset()
        shape = {"row": int, "person": str, "epoch": int}
        table, count, wanted = place.each(rows, _linked_people, shape), sum(linked for linked, _ in found), 4
        if not count:
            table, wanted = place.each(known, partial(_people_within, frozenset(shown)), shape), 20
            count = sum(place.divide(table, ("row",), len))
        places = pseudonyms.spread(count, wanted)
        pairs = place.along(table, ("row",), partial(_people_at, places))
        return pseudonyms.hashed_forms(pairs, wanted, promise.rotation_ns, min(shown))

    def _check_pseudonyms(self, rows: Table, forms: frozenset[str]) -> None:
        place, promise = self.place, self.promise
        found = self._find(place.divide(rows, ("pseudonym",), partial(_of_pseudonyms, promise, forms)))
        metrics = self.notes.metrics
        metrics["released_rows"] = place.outline("release").rows
        metrics["pseudonyms"] = found.sums.get("pseudonyms", 0)
        shape: Shape = {"row": int, "pseudonym": str}
        names = place.each(rows, partial(_kept, None, shape), shape)
        first = place.along(
            place.regroup(names, ("pseudonym",), pseudonyms.first_of_each, shape), ("row",), pseudonyms.first_pseudonyms
        )
        checks = (pseudonyms.uneven_digits, pseudonyms.shared_halves, pseudonyms.counted_up)
        self.notes.findings += look(first, checks)
        if not self.has_truth:
            return
        shape = {"row": int, "pseudonym": str, "shown epoch": int, "readable": bool} | LINK
        parts = place.divide(place.each(rows, partial(_linked_rows, shape), shape), ("person",), _of_people)
        self._find(part for part, _ in parts)
        same = sum((kept for _, kept in parts), np.zeros(33, np.int64))
        self.notes.findings += pseudonyms.kept_parts(_NO_ROWS, same[:-1], int(same[-1]))

    # ---- carried columns

    def _check_carried(self, rows: Table) -> None:
        """Measure how identifying carried columns are; a pseudonym counts as a person unless all records are known."""
        place, promise = self.place, self.promise
        allowed, carry = allows_identifying(self.policy), promise.carry
        if not carry:
            return
        unlinked = sum(place.divide(rows, ("row",), _count_unlinked))
        values = tuple(f"released {name}" for name in dict.fromkeys((*(one.name for one in promise.attributes), *carry)))
        shape: Shape = {"row": int, "someone": str, **dict.fromkeys(values, str)}
        table = place.each(rows, partial(_someone, "pseudonym" if unlinked else "person", shape), shape)
        z = min(attribute.z for attribute in promise.attributes)
        of_class = tuple(f"released {attribute.name}" for attribute in promise.attributes)
        measured = [
            sum(place.divide(table, by, partial(_crowds_of, by, of_class, z)), ColumnCrowds())
            for by in ((f"released {name}",) for name in carry)
        ]
        joint = None
        if len(carry) > 1:
            by = tuple(f"released {name}" for name in carry)
            joint = sum(place.divide(table, by, partial(_crowds_of, by, of_class, z)), ColumnCrowds())
        people = sum(place.divide(table, ("someone",), _count_different))
        found = dict(zip(carry, measured, strict=True))
        note_identifying(found, joint, carry, (), ("z", z), people, self.notes, allowed=allowed)

    # ---- epochs

    def _check_epochs(self, rows: Table, people: int | None, active: dict[int, int]) -> None:
        place, promise, metrics = self.place, self.promise, self.notes.metrics
        if promise.k is not None:
            found = self._find(place.divide(rows, ("shown epoch",), partial(_of_sets, promise)))
            metrics["smallest_k"] = found.least.get("smallest_k")
            for what in ("rows", "people"):
                whole = found.sums.get(what, 0)
                metrics[f"{what}_below_k_share"] = found.sums[f"{what} below"] / whole if whole else None
        shown: dict[int, epochs.Epoch] = {}
        for part in place.divide(rows, ("shown epoch",), partial(epochs.epochs_of, promise)):
            shown |= part
        metrics["epochs"] = epochs.describe_epochs(promise, shown, active, people)
        if promise.target is not None:
            target = promise.target
            met = sum(int(one.sizes[one.sizes >= target.k].sum()) >= target.p * one.shown for one in shown.values())
            metrics["target"] = {"k": target.k, "p": target.p, "epochs_shown": len(shown), "epochs_met": met}
            self.notes.findings += epochs.target_missed(_NO_ROWS, len(shown), met)


# ---- what is done with every part


def _shown(trace: Rows) -> tuple[int, int]:
    """How many entries a file has, and how many of them have a released row."""
    return len(trace), int((verdicts_of(trace) == RELEASED).sum())


def _with(columns: Shape, rows: Relation, only: tuple[str, ...] = ()) -> Relation:
    """Rows with empty columns; of the others only some."""
    empty = {name: nothing(kind, len(rows)) for name, kind in (columns or LINK).items()}
    return rows.having(**empty) if not only else rows.having(**empty).only(*only)


def _kept(which: str | None, shape: Shape, rows: Relation) -> Relation:
    """The columns of a shape, of rows that are marked."""
    found = rows.only(*shape)
    return found if which is None or rows[which].all() else found.take(rows[which])


def _linked(shape: Shape, rows: Relation) -> Relation:
    found = rows.only(*shape).having(record=np.maximum(rows["record"], -1))
    is_shown = rows["row"] >= 0
    return found if is_shown.all() else found.take(is_shown)


def _linked_rows(shape: Shape, rows: Relation) -> Relation:
    return rows.only(*shape).take(pseudonyms.is_linked(rows))


def _renamed(name: str, new: str, rows: Relation) -> Relation:
    return Relation({new: rows[name], **({one: rows[one] for one in rows} if new == "at" else {})})


def _values(true: str, shown: str, rows: Relation) -> Relation:
    rows = rows.take(rows["usable"] & (rows.codes(true) >= 0))
    return Relation({"time": rows["time"], "person": rows["person"], shown: rows[true]})


def _persons(rows: Relation) -> Relation:
    return _different(rows.only("person").take(rows.codes("person") >= 0))


def _different(rows: Relation) -> Relation:
    return rows.take(firsts(rows.codes("person")))


def _named(name: str, people: Relation, rows: Relation) -> Relation:
    return rows.having(named=rows["named"] | pseudonyms.marked(rows[name], people[name].texts))


def _usable(place: Place, known: Table) -> dict[str, int]:
    found = sum(place.divide(known, ("record",), _count_usable))
    return {"usable_rows": found} if place.outline("truth").rows else {}


def _count_usable(rows: Relation) -> int:
    return int(rows["usable"].sum())


def _counting(rows: Relation) -> Relation:
    """Records that count, and whether they were released."""
    is_shown = rows["verdict"] == RELEASED if "verdict" in rows else np.zeros(len(rows), np.bool_)
    counts = rows["accepted"] if "accepted" in rows else rows["usable"]
    found = rows.only("person", "epoch").having(is_shown=is_shown)
    return found if counts.all() else found.take(counts)


def _count_people(rows: Relation) -> tuple[int, int, dict[int, int]]:
    people, of_epochs = epochs.active_people(rows)
    return people, len(firsts(rows.codes("person")[rows["is_shown"]])), of_epochs


def _epochs_of(rows: Relation) -> tuple[int, set[int]]:
    """How many rows have a known person, and the epochs of readable rows."""
    return int(pseudonyms.is_linked(rows).sum()), set(distinct(rows["shown epoch"][rows["readable"]]).tolist())


def _linked_people(rows: Relation) -> Relation:
    rows = rows.take(pseudonyms.is_linked(rows))
    return Relation({"row": rows["row"], "person": rows["person"], "epoch": rows["shown epoch"]})


def _people_within(shown: frozenset[int], rows: Relation) -> Relation:
    rows = rows.take(rows["usable"] & np.isin(rows["epoch"], list(shown)))
    return Relation({"row": rows["record"], "person": rows["person"], "epoch": rows["epoch"]})


def _people_at(places: Ints, parts: Iterable[Relation]) -> list[tuple[str, int]]:
    """The people and epochs at some places of all rows."""
    found, first = [], 0
    for rows in parts:
        at = places[(places >= first) & (places < first + len(rows))] - first
        first += len(rows)
        texts = rows["person"].texts
        found += [(texts[code], epoch) for code, epoch in zip(rows.codes("person")[at].tolist(), rows["epoch"][at].tolist(), strict=True)]
    return found


def _count_unlinked(rows: Relation) -> int:
    return int((rows["record"] < 0).sum())


def _someone(person: str, shape: Shape, rows: Relation) -> Relation:
    rows = rows.take(rows["readable"] & (rows.codes(person) >= 0))
    return rows.having(someone=rows[person]).only(*shape)


def _count_different(rows: Relation) -> int:
    return len(firsts(rows.codes("someone")))


def _crowds_of(by: tuple[str, ...], of_class: tuple[str, ...], z: int, rows: Relation) -> ColumnCrowds:
    rows = rows.take(np.argsort(rows["row"]))
    value = combined([rows.codes(name) for name in by], len(rows))
    return measure_crowds(value, rows.codes("someone"), combined([rows.codes(name) for name in of_class], len(rows)), rows["row"], z)


# ---- what is checked in every part


def _of_records(checks: tuple[Check, ...], promise: ZPromise, clock: Clock, closed: int, rows: Relation) -> Found:
    return Found(look(rows, checks, promise, clock, closed), records.verdicts(rows))


def _counted(attribute: Attribute, clock: Clock, has_levels: bool, rows: Relation) -> Relation:  # noqa: FBT001
    found = crowds.counted(attribute, clock, has_levels, rows)
    return found.having(**{f"held {attribute.name}": found["held"]})


def _let_wait(promise: ZPromise, clock: Clock, rows: Relation) -> Found:
    return Found(look(rows, (epochs.suppressed_at_once,), promise, clock))


def _of_z(promise: ZPromise, clock: Clock, rows: Relation) -> Found:
    return Found(look(rows, (epochs.z_missing, epochs.z_within_epoch), promise, clock))


def _of_times(rows: Relation) -> Found:
    return Found(look(rows, (membership.not_in_truth, membership.more_often)))


def _of_metadata(promise: ZPromise, release: Outline, people: Relation) -> Found:
    texts = pa.chunked_array([people["person"].to_arrow()])
    return Found(look(release, (raw_identifier_in_metadata,), texts, promise.columns))


def _of_names(rows: Relation) -> Found:
    return Found(look(rows, (pseudonyms.identifier_in_column,)))


def _of_pseudonyms(promise: ZPromise, forms: frozenset[str], rows: Relation) -> Found:
    checks = [pseudonyms.unreadable_row, pseudonyms.bad_pseudonym, pseudonyms.empty_row, pseudonyms.across_epochs]
    if "raw" in rows:
        checks += [pseudonyms.raw_identifier, pseudonyms.disguised_identifier, pseudonyms.hashed_with_epoch,
                   pseudonyms.pseudonym_shared]  # fmt: skip
    codes = rows.codes("pseudonym")
    return Found(look(rows, checks, promise, forms), {"pseudonyms": len(firsts(codes[codes >= 0]))})


def _of_people(rows: Relation) -> tuple[Found, Ints]:
    return Found(look(rows, (pseudonyms.pseudonym_split,))), pseudonyms.kept_digits(rows)


def _of_sets(promise: ZPromise, rows: Relation) -> Found:
    assert promise.k is not None
    rows = epochs.shared_sets(promise, promise.k, rows)
    has_set, below, first = rows["size"] >= 0, rows["below"], rows["is_first"]
    sums = {"rows": len(rows), "rows below": int(below.sum()), "people": int((first & has_set).sum()),
            "people below": int((first & below).sum())}  # fmt: skip
    smallest = int(rows["size"][has_set].min()) if has_set.any() else None
    return Found(look(rows, (epochs.set_below_k,)), sums, {"smallest_k": smallest})
