"""What the command line shows of a run: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from shoal.cli.output.summary_text import summary_lines, z_words
from shoal.observe.counts import RunSummary, SetSummary
from shoal.observe.json_log import JsonLog
from shoal.observe.observer import COMPILING, Observer, Observers

if TYPE_CHECKING:
    from shoal.pipeline.doctor.remarks import Remark

_SECONDS_BETWEEN_LINES: Final = 5.0


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
        self._print(lambda: describe(summary))

    def step(self, sentence: str) -> None:
        self._print(lambda: sentence)

    def deciding(self, what: str, size: int, blocks: int) -> None:
        self._print(lambda: describe_deciding(what, size, blocks))

    def _print(self, line: Callable[[], str]) -> None:
        """Print a line, unless the last one was printed a moment ago."""
        now = time.monotonic()
        if not self._quiet and now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            print(f"shoal: {line()}", file=sys.stderr)

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

    def step(self, sentence: str) -> None:
        self._status.update(sentence)

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
    for sentence in summary.last_warnings:
        print(f"shoal: warning: {sentence}", file=sys.stderr)
    if summary.failure:
        print(f"shoal: {summary.failure} (what could be read was used)", file=sys.stderr)
