"""Read a stream and choose z for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from shoal.errors import InputError, PolicyError
from shoal.models.z.events import Events, read_events
from shoal.models.z.tuning import Target, Tuning, likely_windows, tune
from shoal.pipeline import warmup as compiling
from shoal.pipeline.tune.columns import Columns, find_columns, plain_policy
from shoal.pipeline.wiring import make_decoder, make_files
from shoal.policy import Policy, load_policy
from shoal.policy.z import ZAnonymitySection
from shoal.schema import duration_ns


@dataclass(frozen=True, slots=True)
class Tuned:
    """The input and the result of tuning."""

    policy: Policy
    columns: Columns
    events: Events
    tuning: Tuning
    warnings: tuple[str, ...] = ()
    hints: Policy | None = None
    """The policy that column names and the window come from."""

    @property
    def z_rules(self) -> ZAnonymitySection | None:
        """Its [anonymize] section, if it is for z-anonymity."""
        rules = self.hints.anonymize if self.hints is not None else None
        return rules if isinstance(rules, ZAnonymitySection) else None


def tune_input(
    source: Path,
    target: Target,
    *,
    person: str | None = None,
    time: str | None = None,
    attribute: str | None = None,
    windows: Sequence[str] = (),
    names: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
    say_compiling: Callable[[], None] = lambda: None,
) -> Tuned:
    """Read a data file, or what a policy file names as its source, and choose z for it.

    Names that are not given come from the policy, or are looked for by their usual names.
    """
    own = load_policy(source) if source.suffix == ".toml" else None
    hints = load_policy(names) if names is not None else own
    columns, guesses = find_columns(source, hints, person, time, attribute)
    lengths = [(text, _length(text)) for text in windows] or _own_window(hints, columns.attribute)
    policy = own if own is not None else plain_policy(source, columns)
    progress("reading")
    events = _read(policy, columns)
    if compiling.must_compile(compiling.TUNING):
        say_compiling()
    tuning = tune(events, lengths or likely_windows(events, target.holdout), target, progress=progress)
    return Tuned(policy, columns, events, tuning, (*guesses, *_warnings(hints, tuning)), hints)


def _warnings(hints: Policy | None, tuning: Tuning) -> Iterator[str]:
    """Settings of the policy that tuning ignores."""
    if hints is None or not isinstance(hints.anonymize, ZAnonymitySection):
        return
    rotation = hints.anonymize.rotation
    if rotation is not None and any(window.window_ns != rotation.ns for window in tuning.windows):
        yield (
            "[anonymize] rotation: is ignored; here pseudonyms change with every window, as in the model, "
            "and a longer rotation shows more of a person under one pseudonym"
        )
    if hints.hierarchies:
        yield "[anonymize] hierarchy: is ignored; here values that do not pass are dropped"
    if hints.anonymize.target is not None:
        yield "[anonymize] target: is ignored; the result is a fixed z (which a target can use as its start)"
    if hints.anonymize.combine is not None:
        yield "[anonymize] combine: is ignored; tuning counts what z alone would release"


def _length(text: str) -> int:
    length = duration_ns(int(text) if text.isdigit() else text, name="--window")
    if length <= 0:
        raise PolicyError("--window: must be longer than 0 seconds")
    return length


def _own_window(hints: Policy | None, attribute: str) -> list[tuple[str, int]]:
    if hints is None or not isinstance(hints.anonymize, ZAnonymitySection):
        return []
    column = hints.anonymize.columns.get(attribute)
    return [] if column is None else [(_duration_text(column.window.given), int(column.window))]


def _duration_text(given: str | float) -> str:
    return given if isinstance(given, str) else f"{given:g}s"


def _read(policy: Policy, columns: Columns) -> Events:
    needed = (columns.person, columns.time, columns.attribute)
    batches: list[pa.RecordBatch] = []
    types: dict[str, pa.DataType] | None = None
    refused = 0
    for file in make_files(policy):
        first = refused + sum(batch.num_rows for batch in batches)
        with make_decoder(policy, file, needed, types, first_row=first) as decoder:
            for decoded in decoder.batches():
                batches.append(decoded.batch)
                refused += len(decoded.refused)
            types = decoder.types if types is None else types
    if not batches:
        raise InputError("the input has no rows; nothing can be estimated")
    table = pa.Table.from_batches(batches)
    events = read_events(table, person=columns.person, time=columns.time, attribute=columns.attribute)
    if not len(events):
        empty = [name for name in (columns.person, columns.attribute) if table[name].null_count == len(table)]
        raise InputError(
            f"column {empty[0]!r}: has no value in any row; name another" if empty else
            f"column {columns.time!r}: no row has a usable time, a person and a value; give timestamps, seconds "
            "or ISO 8601 text, or name another column"
        )  # fmt: skip
    return replace(events, unusable=events.unusable + refused)
