"""What a study prints: its data, how long it usually takes, its progress, and where its results are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shoal.reproduce.data.streams import Stream

_SECONDS_BETWEEN_LINES: Final = 5.0
_QUICK_SECONDS: Final = {"fast": 5, "flexible": 7, "kvarp": 8, "km": 10, "z": 8}
Report = Callable[[int, int, str], None]
"""Takes the steps done, the steps in all, and a description of the next step."""


def announce(streams: list[Stream]) -> None:
    """Print the name and the size of each data set."""
    for stream in streams:
        print(f"{stream.name}: {len(stream):,} rows of {stream.origin}", flush=True)


def expect(study: str, seconds: float, *, quick: bool) -> None:
    """Print how long a study usually takes."""
    seconds = _QUICK_SECONDS[study] if quick else seconds
    amount = f"{max(1, round(seconds))} seconds" if seconds < 90 else f"{round(seconds / 60)} minutes"
    print(f"usually takes about {amount} of processor time, and compiling once", flush=True)


@contextmanager
def show_progress(kernels: str = "fads") -> Iterator[Report]:
    """A progress bar on a terminal, otherwise a line every few seconds; `kernels` names a method of the family."""
    from shoal.cli.output.render import say_compiling
    from shoal.pipeline.warmup import must_compile

    if must_compile(kernels):
        say_compiling()
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting …")

        def report(done: int, total: int, step: str) -> None:
            progress.update(task, completed=done, total=total, description=step)

        yield report


def finish(page: Path) -> int:
    """Print where page, pictures and tables are; return the exit code."""
    print(f"page           {page}\npictures       {page.parent}/*.png\ntables         {page.parent}/*.csv")
    return 0


def _lines() -> Report:
    last = time.monotonic()

    def report(done: int, total: int, step: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"shoal: {done} of {total} runs done; {step}", file=sys.stderr, flush=True)

    return report
