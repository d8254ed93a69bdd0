"""The entry for sets on Spark: read the facts of all files, then judge the release alone and with its truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import check_columns
from shoal.auditor.sets.blocks import Blocks, read_blocks
from shoal.auditor.sets.certificate import Certificate, read_certificate
from shoal.auditor.sets.promise import SetPromise, read_set_promise
from shoal.errors import PolicyError
from shoal.spark.auditor.engine import Engine
from shoal.spark.auditor.hashing import bins_for
from shoal.spark.auditor.join_trace import TruthBins
from shoal.spark.auditor.sets.judge import SetJudge
from shoal.spark.auditor.sets.reading import (
    Facts,
    Files,
    Plan,
    ReadFacts,
    column_of,
)
from shoal.spark.auditor.shares import shares_of


def audit_sets(
    engine: Engine, policy: Policy, release: Any, truth: Any, trace: Any, max_memory: int | None
) -> AuditReport:
    """Check the promise of a policy for sets."""
    promise, notes = read_set_promise(policy), Notes()
    if promise.is_local:
        raise PolicyError("[anonymize] recoding: a release of local recoding is audited on one machine, not on Spark")
    sink = replace(Format.of(policy.section("sink")), names_once=True, line_column=promise.column)
    source = replace(Format.of_source(policy.section("source")), line_column=promise.item)
    files = Files(
        shares_of(release, "release", sink, max_memory),
        [] if truth is None else shares_of(truth, "truth", source, max_memory),
        [] if truth is None or trace is None else shares_of(trace, "trace", Format(), max_memory),
        has_truth=truth is not None, is_file=isinstance(release, str | Path),
    )  # fmt: skip
    with notes.guarded():
        _judge(engine, policy, promise, files, (read_blocks(release), read_certificate(release)), notes)
    return notes.report(promise.method)


def _judge(
    engine: Engine, policy: Policy, promise: SetPromise, files: Files,
    given: tuple[Blocks | None, Certificate | None], notes: Notes,
) -> None:  # fmt: skip
    facts = Facts()
    for part in engine.run([*files.release, *files.truth, *files.trace], ReadFacts(policy, promise)):
        facts.merge(part)
    column = column_of(promise, facts.columns.get("release", []))
    names = {name: pa.nulls(0) for name in facts.columns.get("release", [])}
    if not check_columns((column,), Rows(((names, np.zeros(0, np.bool_)),), "release", (), facts.hidden), notes):
        return
    missing = [name for name in ("row", "position") if name not in facts.columns.get("trace", [])]
    if files.trace and missing and facts.count("release"):
        notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
        files = replace(files, trace=[])
    bins = bins_for(max(facts.count("truth"), facts.count("release")), engine.tasks)
    there = facts.columns.get("truth", [])
    notes.counts_rows = promise.person == "row" and not facts.has_row_column
    plan = Plan(
        policy, promise, column, tuple(facts.all_labels("release")), tuple(facts.all_labels("truth")),
        {key: facts.first(*key) for key in facts.rows}, facts.count("release"),
        is_by_person=promise.person in there or (promise.person == "row"), numbers_rows=not facts.has_row_column,
        rows=TruthBins(facts.count("truth"), bins), bins=bins,
    )  # fmt: skip
    blocks, certificate = given
    judge = SetJudge(engine, plan, files, blocks, certificate, notes)
    judge.judge_release()
    if files.has_truth:
        notes.metrics["unusable_rows"] = facts.unusable
        judge.judge_truth()
    else:
        notes.warning("no-rows", "The release has no row.", count=int(not judge.released.count))
        judge.judge_blocks(None)
        notes.skip("Whether sets are true, and the share of original itemsets, was not checked: no truth.")
    judge.judge_rows()
