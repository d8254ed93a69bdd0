"""Progress of a study: a bar on a terminal, otherwise lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_SECONDS_BETWEEN_LINES: Final = 5.0
Report = Callable[[int, int, str], None]
"""Takes the steps done, the steps in all, and a description of the next step."""


@contextmanager
def show_progress(kernels: str = "fads") -> Iterator[Report]:
    """A progress bar on a terminal, otherwise a line every few seconds; `kernels` names a method of the family."""
    from shoal.cli.render import say_compiling
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


def _lines() -> Report:
    last = time.monotonic()

    def report(done: int, total: int, step: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"shoal: {done} of {total} runs done; {step}", file=sys.stderr, flush=True)

    return report
