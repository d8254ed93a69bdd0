"""Audit a tuple stream: do k people share every published vector, and is every row true and in time?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.auditor.evidence import Evidence, audit_rows, read_evidence
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import read_attribute
from shoal.auditor.tuples.classes import (
    Classes,
    check_classes,
    check_shares,
    measure_classes,
    measure_nulls,
    read_classes,
)
from shoal.auditor.tuples.clusters import (
    Clusters,
    Link,
    check_carriers,
    check_clusters,
    check_cover,
    check_one_vector,
    check_roots,
    read_clusters,
    read_link,
    sum_loss,
)
from shoal.auditor.tuples.deadlines import Arrivals, Timeline, check_reuse, check_undecided, read_timeline
from shoal.auditor.tuples.diversity.distances import References
from shoal.auditor.tuples.diversity.diversity import (
    arrivals_at_formation,
    check_against_arrivals,
    check_diversity,
    check_recorded,
    measure_diversity,
    read_growth,
    read_references,
)
from shoal.auditor.tuples.diversity.sensitive import Sensitive, read_sensitive
from shoal.auditor.tuples.events import check_arrival_order, check_events, check_together, with_events
from shoal.auditor.tuples.filled import count_filled
from shoal.auditor.tuples.history import check_history
from shoal.auditor.tuples.promise import TuplePromise, read_tuple_promise
from shoal.auditor.tuples.row_judge import RowJudge
from shoal.auditor.tuples.trace import Decisions, Recorded, read_decisions, read_recorded
from shoal.auditor.tuples.truth import (
    check_identifiers,
    check_membership,
    check_patterns,
    check_refused,
    check_unchanged,
)


def audit_tuples(policy: Policy, release: Any, truth: Any, trace: Any) -> AuditReport:
    """Check the promise of a policy for a tuple stream."""
    return audit_rows(read_evidence(policy, release, truth, trace), read_tuple_promise, _judge)


def _judge(evidence: Evidence, promise: TuplePromise, notes: Notes) -> None:
    _Judge(evidence, promise, notes).judge()


class _Judge(RowJudge):
    """One audit of a tuple stream."""

    def __init__(self, evidence: Evidence, promise: TuplePromise, notes: Notes) -> None:
        super().__init__(evidence, promise, notes, read_attribute, promise.time if promise.is_timed else None)
        self.promise = promise
        self.at_root: Bools = np.logical_and.reduce([attribute.at_root for attribute in self.attributes])

    def judge(self) -> None:
        """Check everything that can be checked."""
        self.check_release()
        if self.trace is None:
            self._judge_without_trace()
        else:
            self._judge_with_trace(self.trace)

    # ---- without the trace

    def _judge_without_trace(self) -> None:
        promise, notes = self.promise, self.notes
        person = self._persons_without_trace()
        self._judge_unlinked()
        is_root = self._assumed_roots()
        if promise.shows_suppressed:
            notes.skip("Rows at the root were assumed to be suppressed and not counted in classes: no trace.")
        self._say_without_trace()
        classes = self._judge_classes(is_root, person)
        sensitive = read_sensitive(promise, self.release, self.truth, None)
        measure_diversity(sensitive, classes, None, notes)
        check_diversity(sensitive, classes, None, None, promise, notes)

    def _persons_without_trace(self) -> Ints | None:
        """Number the persons of released rows if the truth has no person twice: then rows are people."""
        person = self.records.person[self.records.usable]
        if self.has_truth and len(np.unique(person)) == len(person):
            return np.arange(len(self.release))
        self.notes.skip(
            "People were counted as rows, of which there are at least as many: "
            + ("the person of a row is only in the trace." if self.has_truth else "no truth.")
        )
        return None

    def _say_without_trace(self) -> None:
        skip = self.notes.skip
        if not self.has_truth:
            skip("Whether rows are true, and whether identifiers leaked, was not checked: no truth.")
        skip("Whether every record was decided once, in time, and by clusters of k people was not checked: no trace.")
        skip("Whether published values cover the records' values was not checked: no trace.")
        skip("Cells that show something although their record has nothing there were not counted: no trace.")
        skip("Carriers of each attribute, and over what history k holds, were not counted: no trace.")
        if self.promise.diversity.needs_reference:
            skip("t was not checked: its references are in the trace.")
        self._say_without_values("no trace")

    def _say_without_values(self, why: str) -> None:
        if self.promise.generalized:
            names = ", ".join(map(repr, self.promise.generalized))
            self.notes.skip(f"Diversity of {names}, published generalized, was not checked: {why}.")

    # ---- with the trace

    def _judge_with_trace(self, trace: Rows) -> None:
        promise, notes = self.promise, self.notes
        records = len(self.truth) if self.has_truth else None
        decisions = read_decisions(trace, promise, records=records, released=len(self.release), notes=notes)
        decisions, timeline = self._judge_times(decisions)
        if self.has_truth:
            check_refused(trace, decisions, self.records, notes)
        else:
            self._say_without_truth()
        if not decisions.is_linked:
            self._judge_without_link()
            return
        link = read_link(decisions, self.records.usable if self.has_truth else None)
        person = self._persons(link)
        self._judge_rows(link)
        clusters = read_clusters(self.attributes, link, person, with_carriers=self.has_truth)
        check_clusters(clusters, link, promise, notes)
        if self.has_truth:
            check_carriers(trace, decisions, clusters, len(self.attributes), notes)
        classes = self._judge_classes(link.is_root, person)
        self._judge_diversity(trace, decisions, timeline, link, clusters, classes)
        if person is not None:
            check_history(decisions, timeline, link, person, classes, promise, notes)
        sum_loss(self.attributes, link, decisions).note(notes, has_records=bool(link.known.any()))

    def _say_without_truth(self) -> None:
        self.notes.skip("People were counted as rows, of which there are at least as many: no truth.")
        self.notes.skip("Whether rows are true, and whether identifiers leaked, was not checked: no truth.")
        self.notes.skip("Cells that show something although their record has nothing there were not counted: no truth.")
        self.notes.skip("Carriers of each attribute, and over what history k holds, were not counted: no truth.")

    def _judge_times(self, decisions: Decisions) -> tuple[Decisions, Timeline | None]:
        count = len(self.truth) if self.has_truth else decisions.records
        arrivals = Arrivals(self.records.time, self.records.person if self.has_truth else None, count)
        check_events(decisions, self.notes)
        timeline = read_timeline(decisions, arrivals, self.promise, self.notes)
        decisions = with_events(decisions, timeline, self.promise, self.notes)
        check_together(decisions, self.notes)
        check_arrival_order(decisions, self.notes)
        check_reuse(decisions, timeline, self.promise, self.notes)
        check_undecided(decisions, timeline, self.promise, records=count, notes=self.notes)
        return decisions, timeline

    def _judge_without_link(self) -> None:
        """Check classes although the persons of rows are not known."""
        classes = self._judge_classes(self._assumed_roots(), None)
        sensitive = read_sensitive(self.promise, self.release, self.truth, None)
        measure_diversity(sensitive, classes, None, self.notes)
        self._say_without_values("the trace does not fit the release")
        self._judge_unlinked()

    def _judge_unlinked(self) -> None:
        """Check rows against the truth although it is not known which record each is of."""
        if not self.has_truth:
            return
        promise, records = self.promise, self.records
        check_membership(promise, self.release, self.truth, records.usable, self.notes)
        if promise.rule_of_nulls == "exact":
            judged = ~self._assumed_roots()
            check_patterns(promise, self.attributes, self.release, self.truth, records.usable, judged, self.notes)
        check_identifiers(promise, self.attributes, self.release, self.truth, None, self.notes)

    def _assumed_roots(self) -> Bools:
        """The rows that may be suppressed ones, where it is not known which are."""
        return self.at_root if self.promise.shows_suppressed else np.zeros(len(self.release), np.bool_)

    def _persons(self, link: Link) -> Ints | None:
        if not self.has_truth:
            return None
        person = np.append(self.records.person, -1)
        return person[link.row]  # row -1 picks the last

    def _judge_rows(self, link: Link) -> None:
        """Check row by row."""
        check_roots(self.attributes, link.is_root, self.notes)
        group = np.where(link.is_root, -1, link.group)
        check_one_vector(self.attributes, group, self.notes, record_nulls=self.promise.keeps_record_nulls)
        if self.has_truth:
            rule = self.promise.rule_of_nulls
            check_cover(self.attributes, link.row, link.known, self.notes, missing=rule, exempt=link.is_root)
            unchanged = check_unchanged(self.promise, self.release, self.truth, link.row, self.notes)
            filled = count_filled(self.attributes, link.row, unchanged, link.is_root)
            filled.note(self.notes, is_asked=self.promise.asks_for_filled)
            check_identifiers(self.promise, self.attributes, self.release, self.truth, link.row, self.notes)

    def _judge_classes(self, is_root: Bools, person: Ints | None) -> Classes:
        judged = ~is_root & ~self.release.broken
        classes = read_classes(self.attributes, judged, person)
        check_classes(classes, self.promise, self.notes)
        self.notes.metrics["released_rows"] = len(self.release)
        self.notes.metrics["root_rows"] = int(is_root.sum())
        measure_classes(classes, self.promise, person, self.notes)
        check_shares(classes, person, self.promise.max_share, self.notes)
        measure_nulls(self.attributes, judged, self.notes)
        self.check_identifying(~self.release.broken, person, classes.of_row)
        return classes

    def _judge_diversity(
        self,
        trace: Rows,
        decisions: Decisions,
        timeline: Timeline | None,
        link: Link,
        clusters: Clusters,
        classes: Classes,
    ) -> None:
        if not self.promise.sensitive and not self.promise.generalized:
            return
        needs = self.promise.diversity.needs_reference
        recorded = read_recorded(trace) if needs and "reference" in trace.columns else None
        if not self.has_truth:
            self._say_without_values("no truth")
        row = link.row if self.has_truth else None
        sensitive = read_sensitive(self.promise, self.release, self.truth, recorded, row=row)
        measure_diversity(sensitive, classes, clusters.number, self.notes)
        references = None
        if recorded is not None:
            references = self._judge_references(recorded, sensitive, decisions, timeline, clusters)
        elif needs:
            self.notes.unchecked("t was not checked: the trace has no column reference.")
        event = None if decisions.event is None else decisions.event[decisions.is_shown]
        grown = read_growth(clusters.number, link.formed, event, len(clusters.people))
        check_diversity(sensitive, classes, grown, references, self.promise, self.notes)

    def _judge_references(
        self,
        recorded: Recorded,
        sensitive: Sequence[Sensitive],
        decisions: Decisions,
        timeline: Timeline | None,
        clusters: Clusters,
    ) -> dict[str, References]:
        cluster_of = np.full(len(decisions.row), -1, np.int64)
        cluster_of[decisions.is_shown] = clusters.number
        references = read_references(recorded, sensitive, cluster_of, len(clusters.people))
        check_recorded(references, clusters.people > 0, self.notes)
        if self.has_truth and timeline is not None:
            alive = np.ones(len(self.truth), np.bool_)
            alive[decisions.dead_rows] = False
            usable = np.flatnonzero(alive)
            formed = arrivals_at_formation(
                decisions, timeline, cluster_of, len(clusters.people), usable, is_timed=self.promise.is_timed
            )
            check_against_arrivals(recorded, sensitive, cluster_of, usable, formed, self.promise, self.notes)
        return references
