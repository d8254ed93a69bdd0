"""`shoal.anonymize`: one call from a data frame to a data frame that may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.keys import as_secret
from shoal.errors import PolicyError
from shoal.frames.arguments import Arguments
from shoal.frames.feasibility import require_people, require_roles, require_usable
from shoal.frames.frame_input import read_frame
from shoal.frames.frame_output import Intervals, write_frame
from shoal.frames.result import Anonymized
from shoal.frames.sets import anonymize_sets
from shoal.inspection import Facts, Proposal, Wishes, look, propose
from shoal.inspection.columns.column_names import printable
from shoal.inspection.columns.facts import as_moments
from shoal.inspection.events import nanoseconds
from shoal.methods.base import statement_for_rows
from shoal.methods.release import refused_by_reason
from shoal.observe.counts import RunSummary
from shoal.pipeline.checks.identifying import measure_sensitive, refuse_identifying
from shoal.pipeline.missing_values import missing_value_words
from shoal.pipeline.outcome import Explain, outcome_words
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy
from shoal.policy.loading import parse_policy, read_tables
from shoal.schema import ROWS
from shoal.times import column_ns

_PLACES: Final = {
    "source": {"kind": "parquet", "path": "frame.parquet"}, "sink": {"kind": "parquet", "path": "released.parquet"},
}  # fmt: skip
"""A policy needs a source and a sink; neither is used."""


def anonymize(  # noqa: PLR0913 - one keyword for each role and parameter
    frame: Any,
    *,
    k: int | None = None,
    z: int | None = None,
    m: int | None = None,
    person: str | None = None,
    quasi: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    carry: Sequence[str] | None = None,
    time: str | None = None,
    attribute: str | None = None,
    items: str | None = None,
    window: str | None = None,
    method: str | None = None,
    policy: str | Path | Mapping[str, Any] | None = None,
    intervals: Intervals = "text",
    key: bytes | None = None,
    **settings: Any,
) -> Anonymized:
    """Anonymize a data frame; return one of the same library, with what was decided.

    What is not given is guessed from names and values and reported in `roles` and `questions` of the result: check
    them. All rows are decided: each is released, suppressed, or refused with a reason, and counted. Do not use it for
    data that do not fit into memory: ``shoal init`` writes a policy for files and streams.

    Parameters
    ----------
    frame
        A pandas or polars data frame, an Arrow table, or anything with the Arrow interface.
    k
        Rows: how many people share what is published of each (:class:`shoal.LeastLoss`, unless `method` is given).
    z
        Events: how many people must have exposed a value within the `window` (:class:`shoal.ZAnonymity`).
    m
        Sets: how many items of a person may be known (:class:`shoal.KmAnonymity`); `k` people then have them.
    person
        The column, or the level of a pandas index, that says whose row it is; ``shoal.ROWS`` if every row is another
        person. By default it is found by names and values. If it is not certain, an error names the candidates; if no
        column may be it, rows are counted, and the result says so.
    quasi, sensitive, carry
        Rows: columns that an attacker may know (published generalized), columns whose values must differ and columns
        that are published unchanged. With `quasi` no other column is published unless it is named.
    time, attribute, window
        Events: when, what, and how far back people count, such as ``"1h"``.
    items
        Sets: the column of items, one per row or a list.
    method
        The name of a method, such as ``"fads"``; see ``shoal methods``.
    policy
        The path or the content of a policy, in place of all the above.
    intervals
        The form of published ranges: ``"text"`` (``[20, 30]``), ``"columns"`` (two columns), ``"middle"``,
        ``"interval"`` (pandas) or ``"struct"``.
    key
        At least 16 secret bytes for pseudonyms; by default the key of ``SHOAL_KEY_FILE``, else a new one.
    settings
        Further parameters of the method, such as ``deadline=5000`` or ``l=3``.

    Raises
    ------
    shoal.ShoalError
        If an argument or a column cannot be used; it says which, and what to do. All wrong arguments are listed.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)], "city": ["Ulm"] * 60})
    >>> result = shoal.anonymize(people, k=5, person="id", quasi=["age"])
    >>> result.counts["released"], result.frame.column_names, result.audit().ok
    (60, ['age'], True)
    """
    arguments = Arguments(
        {
            "k": k, "z": z, "m": m, "person": person, "quasi": quasi, "sensitive": sensitive, "carry": carry,
            "time": time, "attribute": attribute, "items": items, "window": window, "method": method,
            "policy": policy, "intervals": intervals, "key": key,
        },
        settings,
    )  # fmt: skip
    read = read_frame(frame)
    if intervals == "interval" and read.library != "pandas":
        raise PolicyError('intervals: "interval" is for pandas; choose text, columns, middle or struct')
    wishes = arguments.wishes(read)
    if policy is None:
        result, checked = _guess_and_run(read.table, wishes, key)
    elif wishes.names():
        raise PolicyError(f"{', '.join(wishes.names())}: the policy states it; give the policy alone")
    else:
        content, checked = _read(policy)
        require_people(read.table, checked)
        result = _run(read.table, checked, content, None, key)
    used = {checked.stream.person, *result.rows.column_names}
    dropped = [*(repr(printable(name)) for name in read.index if name not in used), *read.row_labels]
    shown = write_frame(result.rows, read, _unchanged(checked), intervals)
    return replace(result, frame=shown, dropped_index=", ".join(dropped))


def _guess_and_run(table: pa.Table, wishes: Wishes, key: bytes | None) -> tuple[Anonymized, Policy]:
    require_usable(table, wishes)
    facts = look(table)
    proposal = propose(facts, wishes)
    require_roles(proposal, wishes)
    if proposal.family == "z":  # a frame is not a stream: its rows may come in any order
        order = np.argsort(nanoseconds(as_moments(facts[proposal.stream["time"]]))[0], kind="stable")
        table = table.take(pa.array(order))
        facts = look(table)
        proposal = propose(facts, wishes)
    table, content = _with_whole_people(_with_moments(table, facts, proposal), proposal), proposal.content
    item = proposal.anonymize.get("item")
    if item is not None and facts[item].separator is not None:
        split = pc.split_pattern(table.column(item).cast(pa.string()), facts[item].separator)
        table = table.set_column(table.column_names.index(item), item, split)
    try:
        policy = parse_policy({**_PLACES, **content})
    except PolicyError as error:  # they are keywords here, not keys of a file
        raise PolicyError([problem.removeprefix("[anonymize] ") for problem in error.problems]) from None
    require_people(table, policy, wishes)
    return _run(table, policy, content, proposal, key), policy


def _unchanged(policy: Policy) -> set[str]:
    """Columns that are published as they are, with their types."""
    time = {policy.stream.time} if policy.anonymize.PUBLISHES_TIME else set()
    kept = {*policy.stream.carry, *getattr(policy.anonymize, "sensitive", ())}
    return {*(kept - {*getattr(policy.anonymize, "quasi", {})}), *(time - {None})}


def _read(policy: str | Path | Mapping[str, Any]) -> tuple[Any, Policy]:
    """The content that the auditor reads, and the checked policy."""
    if isinstance(policy, Mapping):
        own = {name: policy[name] for name in ("stream", "anonymize") if name in policy}
        return own, parse_policy({**_PLACES, **own})
    path = Path(policy)
    written = read_tables(path)
    own = {name: written[name] for name in ("stream", "anonymize") if name in written}
    return path, parse_policy({**_PLACES, **own}, folder=path.absolute().parent)


def _with_moments(table: pa.Table, facts: Mapping[str, Facts], proposal: Proposal) -> pa.Table:
    """Texts and numbers of which ranges of moments are published, and times that are not in seconds, as timestamps."""
    quasi = proposal.anonymize.get("quasi", {})
    for name in {*quasi, proposal.stream.get("time")} - {None}:
        one = facts[name]
        is_range = quasi.get(name, {}).get("kind") == "numeric" and isinstance(quasi[name]["low"], str)
        if pa.types.is_integer(table.column(name).type) and (is_range or one.time_unit not in (None, "s")):
            moments = table.column(name).cast(pa.int64()).cast(pa.timestamp(one.time_unit or "s"))
        elif one.kind == "moment" and one.is_converted and is_range:
            found, usable = column_ns(table.column(name).combine_chunks())
            moments = pa.array(found // 1000, mask=~usable).cast(pa.timestamp("us", "UTC"))
        else:
            continue
        table = table.set_column(table.column_names.index(name), name, moments)
    return table


def _with_whole_people(table: pa.Table, proposal: Proposal) -> pa.Table:
    """Floats that say whose row it is as whole numbers: pandas makes floats of whole numbers with a gap."""
    name = proposal.stream.get("person")
    if name not in table.column_names or not pa.types.is_floating(table.column(name).type):
        return table
    column = pc.if_else(pc.is_nan(table.column(name)), None, table.column(name))
    try:
        whole = column.cast(pa.int64())
    except pa.ArrowInvalid:  # it has fractions; the method refuses it
        return table
    return table.set_column(table.column_names.index(name), name, whole)


def _run(table: pa.Table, policy: Policy, content: Any, proposal: Proposal | None, key: bytes | None) -> Anonymized:
    if not policy.anonymize.IS_STREAM:
        return anonymize_sets(table, policy, content, proposal)
    counts_rows = policy.stream.person == ROWS and ROWS not in table.column_names
    truth = table  # the auditor numbers rows itself
    if counts_rows:
        table = table.append_column(ROWS, pa.array(range(table.num_rows), pa.int64()))
    warnings = [*policy.warnings, *([] if policy.stream.carry_identifying else refuse_identifying(policy, table))]
    warnings += [
        f"column {found.name!r}: is sensitive and published unchanged, but {found.words()}: anyone who knows such a "
        "value finds the row"
        for found in measure_sensitive(policy, table) if found.is_identifying
    ]  # fmt: skip
    method = make_anonymizer(policy, as_secret(key))
    release = method.anonymize(table)
    promised = method.guarantee.statement
    reasons = refused_by_reason(method.counts)
    counts = {
        "rows": table.num_rows, "released": release.rows.num_rows, "suppressed": method.counts["suppressed"],
        "refused": method.counts["dead"], "pending": method.pending,
    }  # fmt: skip
    warnings += _little_left(counts, reasons, method.explain, policy)
    metrics, decided = dict(method.metrics), method.counts["released"] + method.counts["suppressed"]
    warnings += missing_value_words(metrics, policy.anonymize, decided=decided)
    return Anonymized(
        frame=None, rows=pa.Table.from_batches([release.rows]), trace=release.trace, truth=truth, policy=content,
        counts=counts,
        refused={reason: f"{count:,}: {method.explain(reason).words}" for reason, count in reasons.items()},
        statement=statement_for_rows(promised) if counts_rows else promised,
        proposal=proposal, warnings=tuple(warnings), metrics=metrics,
    )  # fmt: skip


def _little_left(counts: Mapping[str, int], reasons: Mapping[str, int], explain: Explain, policy: Policy) -> list[str]:
    """One sentence if little is left of the frame."""
    summary = RunSummary(
        rows_in=counts["rows"], released=counts["released"], suppressed=counts["suppressed"],
        pending=counts["pending"], dead=counts["refused"], dead_by_reason=dict(reasons),
    )  # fmt: skip
    found = outcome_words(summary, explain, policy.anonymize)
    return [found] if found is not None else []
