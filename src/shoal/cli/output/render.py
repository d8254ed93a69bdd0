"""What the command line shows of a run: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from shoal.cli.output.program import from_here
from shoal.observe.counts import RunSummary, SetSummary
from shoal.observe.json_log import JsonLog
from shoal.observe.observer import COMPILING, Observer, Observers

if TYPE_CHECKING:
    from shoal.pipeline.doctor.remarks import Remark

_SECONDS_BETWEEN_LINES: Final = 5.0
_LONG: Final = 0.1
_NOTHING: Final = 2**31 - 1


class LineObserver(Observer):
    """Prints a line on standard error from time to time."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = time.monotonic()
        self._z: int | None = None

    def compiling(self) -> None:
        if not self._quiet:
            say_compiling()

    def progress(self, summary: RunSummary) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            print(f"shoal: {describe(summary)}", file=sys.stderr)

    def deciding(self, what: str, size: int, blocks: int) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            print(f"shoal: {describe_deciding(what, size, blocks)}", file=sys.stderr)

    def z_set(self, moment: str, z: int) -> None:
        if not self._quiet and z != self._z:
            self._z = z
            print(f"shoal: from {moment} on z is {z_words(z)}", file=sys.stderr)

    def resumed(self, rows: int) -> None:
        if not self._quiet:
            print(f"shoal: resuming from the checkpoint after {rows:,} rows", file=sys.stderr)

    def warn(self, sentence: str) -> None:
        print(f"shoal: warning: {sentence}", file=sys.stderr)


class LiveObserver(LineObserver):
    """Updates one line on a terminal."""

    def __init__(self, status: Any) -> None:
        super().__init__(quiet=False)
        self._status = status

    def compiling(self) -> None:
        self._status.update(f"{COMPILING} …")

    def progress(self, summary: RunSummary) -> None:
        self._status.update(describe(summary))

    def z_set(self, moment: str, z: int) -> None:
        """Not shown on a terminal: the summary reports it."""

    def deciding(self, what: str, size: int, blocks: int) -> None:
        self._status.update(describe_deciding(what, size, blocks))


@contextmanager
def watch(*, quiet: bool, log: str = "text", metrics: str | None = None) -> Iterator[Observer]:
    """The observer of a run; with `metrics` also a server of measurements at this address while the run lasts."""
    with _shown(quiet=quiet, log=log) as shown:
        if metrics is None:
            yield shown
            return
        from shoal.observe.metrics import MetricsObserver
        from shoal.observe.serving import HealthObserver, serving

        health, measured = HealthObserver(), MetricsObserver()
        with serving(metrics, health, measured.page):
            yield Observers(shown, health, measured)


@contextmanager
def _shown(*, quiet: bool, log: str) -> Iterator[Observer]:
    """The observer for a log collector, for a terminal, or for anything else."""
    if log == "json":
        yield JsonLog(sys.stderr, quiet=quiet)
        return
    if quiet or not sys.stderr.isatty():
        yield LineObserver(quiet=quiet)
        return
    from rich.console import Console

    with Console(stderr=True).status("starting …") as status:
        yield LiveObserver(status)


@contextmanager
def watch_steps(what: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the current step of a long command: in one place on a terminal, elsewhere as lines on standard error."""
    if quiet:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        yield lambda step: print(f"shoal: {what} {step}", file=sys.stderr, flush=True)
        return
    from rich.console import Console

    with Console(stderr=True).status("starting …") as status:
        yield lambda step: status.update(f"{what} {step} …")


def say_written(what: str, place: Path, *, quiet: bool) -> None:
    """Report on standard error where something was written."""
    if not quiet:
        print(f"shoal: {what} written to {place}", file=sys.stderr)


def warn_of_key(other: Path | None = None) -> None:
    """Warn of key files that others can read: the one of SHOAL_KEY_FILE and one given to a command."""
    from shoal.crypto.keys import key_warning, warning_about

    for sentence in (key_warning(), warning_about(other) if other else None):
        if sentence:
            print(f"shoal: warning: {sentence}", file=sys.stderr)


def print_remarks(remarks: Iterable[Remark]) -> None:
    """Print what the doctor found, one line each."""
    marks = {"good": "ok   ", "look": "look ", "wrong": "WRONG"}
    for remark in remarks:
        print(f"{marks[remark.level]}  {remark.topic:<12} {remark.sentence}", file=sys.stdout)


def say_compiling() -> None:
    """Report that kernels are compiled, which takes a while."""
    print(f"shoal: {COMPILING}", file=sys.stderr, flush=True)


def describe(summary: RunSummary) -> str:
    """One line about the progress of a run."""
    if isinstance(summary, SetSummary):
        speed = f"{summary.rows_per_second:,.0f} rows/s"
        return f"reading: {summary.rows_in:,} rows in, {summary.dead:,} refused, {speed}"
    return (
        f"{summary.rows_in:,} rows in, {summary.released:,} released, {summary.suppressed:,} suppressed, "
        f"{summary.dead:,} refused, {summary.rows_per_second:,.0f} rows/s"
    )


def describe_deciding(what: str, size: int, blocks: int) -> str:
    """One line about the progress of the search for blocks."""
    return f"{what} itemsets of size {size}, {blocks:,} blocks left"


def print_summary(summary: RunSummary, *, as_json: bool, is_piped: bool) -> None:
    """Print the summary of a run; on standard error if rows go to standard output."""
    out = sys.stderr if is_piped else sys.stdout
    if as_json:
        print(orjson.dumps(summary.to_dict(), option=orjson.OPT_INDENT_2).decode(), file=out)
    else:
        print("\n".join(summary_lines(summary)), file=out)
    if summary.outcome:
        print(f"shoal: warning: {summary.outcome}", file=sys.stderr)
    if summary.failure:
        print(f"shoal: {summary.failure} (what could be read was used)", file=sys.stderr)


def summary_lines(summary: RunSummary) -> list[str]:
    """The summary of a run, as text."""
    if summary.finished_before:
        counts = f"{summary.rows_in:,} rows, {summary.released:,} released"
        return [f"this run was finished before; nothing was changed ({counts})"]
    if isinstance(summary, SetSummary):
        return _set_lines(summary)
    lines = [
        *(["stopped after a checkpoint; start the same command again to continue"] if summary.stopped else []),
        f"rows in        {summary.rows_in:>12,}" + (f"  since {summary.since}" if summary.since else ""),
        f"  released     {summary.released:>12,}  {_share(summary.released, summary.rows_in)}",
        *_kept_back(summary),
        f"  refused      {summary.dead:>12,}  {_share(summary.dead, summary.rows_in)}",
    ]
    lines += [f"    {reason:<20} {count:>6,}" for reason, count in summary.dead_by_reason.items()]
    lines += _metric_lines(summary)
    lines += [
        f"speed          {summary.rows_per_second:>12,.0f}  rows/s ({_seconds(summary)})",
        f"promise        {summary.guarantee}",
        f"released to    {from_here(summary.released_to)}",
    ]
    if summary.dead:
        lines.append(f"dead letters   {from_here(summary.dead_letters)}  (why rows were refused)")
    if summary.trace:
        lines.append(f"trace          {from_here(summary.trace)}  (private: for the auditor)")
    return lines


def _seconds(summary: RunSummary) -> str:
    compiling = summary.compiling_seconds
    return f"{summary.seconds:.1f} s" + (f", without {compiling:.1f} s of compiling" if compiling >= _LONG else "")


def _kept_back(summary: RunSummary) -> list[str]:
    """Rows that were not released: suppressed, or pending if the method suppresses none or the run was stopped."""
    words = "(in the checkpoint)" if summary.stopped else "(too few people so far; they are still in the source)"
    left = "  (published fully generalized)" if summary.suppressed_left and summary.suppressed else ""
    pending = f"  pending      {summary.pending:>12,}  {_share(summary.pending, summary.rows_in)}  {words}"
    suppressed = f"  suppressed   {summary.suppressed:>12,}  {_share(summary.suppressed, summary.rows_in)}{left}"
    if not summary.pending:
        return [suppressed]
    return [suppressed, pending] if summary.stopped else [pending]


def _metric_lines(summary: RunSummary) -> list[str]:
    """Loss and delay, if the method measures them."""
    found, unit = summary.metrics, summary.delay_unit
    if not found:
        return []
    if "epochs_met" in found:
        return [_target_line(found)]
    if "pending" in found:  # K_s is not known before the first round
        return _flexible_lines(found)
    lines = [
        f"average loss   {found['loss']:>12.3f}  of 1, over what rows carry ({found['loss_all']:.3f} over all columns)",
        f"average delay  {found['delay']:>12,.1f}  {unit} (longest {found['max_delay']:,g})",
        f"clusters       {found['formed']:>12,}  formed, {found['merged']:,} of them with different values "
        f"missing; {found['reused']:,} rows published by reuse",
    ]
    return lines + ([f"clamped        {found['clamped']:>12,}  values"] if found.get("clamped") else [])


def _target_line(found: dict[str, Any]) -> str:
    """How often an adaptive z met its target."""
    return (
        f"target met in  {found['epochs_met']:>12,}  of {found['epochs_shown']:,} epochs with released rows "
        f"({found['epochs']:,} are complete); z is {z_words(found['z'])} now"
    )


def z_words(z: int) -> str:
    """A z as text."""
    return f"{z:,}" if z < _NOTHING else "so high that nothing is released"


def _flexible_lines(found: dict[str, Any]) -> list[str]:
    """What flexible k-anonymity lost, and how many values its trees do not list."""
    columns = ", ".join(
        f"{name.removeprefix('loss_')} {loss:.3f}" for name, loss in found.items() if name.startswith("loss_")
    )
    lines = [f"average loss   {found['loss']:>12.3f}  of 1: {columns}"]
    unknown = {
        name.removeprefix("unknown_"): int(count) for name, count in found.items() if name.startswith("unknown_")
    }
    return lines + [
        f'unlisted       {count:>12,}  values of column {name!r}, published as "unknown" or pending'
        for name, count in unknown.items()
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:6.1%}" if whole else ""


def _dropped_lines(summary: SetSummary) -> list[str]:
    if not summary.items_dropped:
        return []
    return [
        f"dropped        {summary.items_dropped:>12,}  items that too few people have, "
        f"{summary.entries_dropped_share:.1%} of what people have; not part of the error"
    ]


def _block_lines(summary: SetSummary) -> list[str]:
    """How many blocks there are, or labels if each record has its own, and how many items they generalize."""
    share = _share(summary.items_generalized, summary.blocks_before).strip()
    generalized = f"generalized    {summary.items_generalized:>12,}  items"
    if summary.recoding == "local":
        labels = f"labels         {summary.blocks_used:>12,}  for {summary.blocks_before:,} items"
        return [labels, f"{generalized} in at least one record, {share} of all; the others stay as they are"]
    return [
        f"blocks         {summary.blocks_after:>12,}  of {summary.blocks_before:,} before "
        f"({summary.blocks_used:,} of them in use)",
        f"{generalized}, {share} of all; the others stay as they are",
    ]


def _set_lines(summary: SetSummary) -> list[str]:
    """The summary of a run, as text."""
    is_distance = summary.error_kind == "distance"
    unit = "m on average from an item to the middle of its block" if is_distance else "of 1 (NCP)"
    lines = [
        f"rows in        {summary.rows_in:>12,}",
        f"  refused      {summary.dead:>12,}",
        *(f"    {reason:<20} {count:>6,}" for reason, count in summary.dead_by_reason.items()),
        f"records        {summary.records:>12,}",
        f"  released     {summary.released:>12,}",
    ]
    if summary.empty_records:
        lines.append(f"  left empty   {summary.empty_records:>12,}  (no usable item; not published)")
    lines += [
        f"items          {summary.items:>12,}  different ones, of {summary.blocks_before:,} that are known",
        *_block_lines(summary),
        *_dropped_lines(summary),
        f"error          {summary.error:>12,g}  {unit}",
        f"time           {summary.seconds:>12,.1f}  s",
        "promise",
        *(f"  {line}" for line in summary.statement.splitlines()),
        f"released to    {from_here(summary.released_to)}",
        f"certificate    {from_here(summary.certificate_file)}",
        f"blocks         {from_here(summary.blocks_file)}  (which items a label stands for)",
    ]
    lines += [f"warning        {warning}" for warning in summary.warnings]
    if summary.dead:
        lines.append(f"dead letters   {from_here(summary.dead_letters)}  (why rows were refused)")
    if summary.trace:
        lines.append(f"trace          {from_here(summary.trace)}  (private: for the auditor)")
    return lines
