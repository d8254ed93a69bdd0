"""`shoal warmup`: compile the kernels of some or all methods ahead of time."""

from __future__ import annotations

import sys


def warmup(*methods: str) -> int:
    """Compile the kernels of some or all methods on all cores, so that no run has to.

    Every method compiles its kernels when it is first used on a machine, which takes 5 to 30 seconds of processor time.
    This does it ahead of time: after an installation, or while an image is built. Compiled kernels are kept.
    NUMBA_CACHE_DIR names a folder for compiled kernels, if that of the installation is not writable.

    Examples:

        shoal warmup                                (all methods)

        shoal warmup least-loss z-anonymity

        NUMBA_CACHE_DIR=/var/cache/shoal shoal warmup fads

    Parameters
    ----------
    methods
        Names as in a policy, such as fads or k^m; by default all.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from shoal.errors import PolicyError
    from shoal.methods.registry import METHODS
    from shoal.pipeline.warmup import warm_all

    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        known = ", ".join(METHODS)
        raise PolicyError([f"{name!r} is not a method; give some of {known}" for name in unknown])
    wanted = list(dict.fromkeys(methods)) or list(METHODS)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        bar = progress.add_task("compiling", total=len(wanted))
        for name in warm_all(wanted):
            progress.update(bar, advance=1, description=f"compiled {name}")
    print(f"ready: {', '.join(wanted)}", file=sys.stdout)
    return 0
