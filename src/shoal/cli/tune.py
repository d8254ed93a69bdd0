"""`shoal tune`: choose z for a target, and check the choice on data that was not used for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from shoal.models.z.tuning import Tuning
    from shoal.pipeline.tune.tune import Tuned


@Parameter(name="*")
@dataclass(frozen=True)
class Goal:
    """The target.

    Parameters
    ----------
    k
        How many people must show the same set of released values within a pseudonym's epoch.
    p
        The share of people with a released row for whom this must hold.
    holdout
        The share of rows that is kept back for the check.
    classes
        The largest number of classes of people, by activity, in the model. With 1 its bounds are proven; with more
        they are a confidence interval, and the model is closer to real people.
    release
        A z that releases a smaller share of rows is not proposed.
    check
        The windows kept back for the check: the latest ones, or windows in between. "auto" takes the latest unless they
        are at times of the day that no other window has. Windows in between do not show whether a stream drifts.
    """

    k: int = 2
    p: float = 0.95
    holdout: float = 0.3
    classes: int = 3
    release: float = 0.01
    check: Literal["auto", "latest", "between"] = "auto"


@Parameter(name="*")
@dataclass(frozen=True)
class Input:
    """The columns and windows to read.

    Parameters
    ----------
    person
        The column of the person.
    time
        The column of the time.
    attribute
        The column that is published.
    window
        How far back people count; may be repeated. By default the policy's, or up to three that fit the stream.
    policy
        A policy to take names and the window from.
    """

    person: str | None = None
    time: str | None = None
    attribute: str | None = None
    window: Annotated[list[str] | None, Parameter(negative="")] = None
    policy: Path | None = None


def tune(
    source: Annotated[Path, Parameter(name="input")],
    *,
    goal: Goal = Goal(),  # noqa: B008 - frozen
    read: Input = Input(),  # noqa: B008 - frozen
    out: Path = Path("tune-out"),
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Choose z (and the window) so that a share of the people shown are k-anonymous, and check the choice.

    z-anonymity hides rare values, not rare combinations. A model of people and rates, by the time of the day,
    is estimated. Two candidates are chosen on one part of the stream: the smallest z that reaches the target in the
    model (up to 1.1 z), and the smallest that reaches it in a replay. Both are then checked on the windows that were
    kept back. A z is proposed only if the target held there; the table shows where it comes from.

    Exit code 0 when a z held on the unused windows, 1 when none did or the input cannot be read, 2 when an option is
    wrong. Writes curve.csv, curve.png (with matplotlib) and, when a z held, policy.toml.

    Examples:

        shoal tune visits.csv --k 2 --p 0.95     (columns of usual names, such as user, ts, site, are found)

        shoal tune visits.csv --person user --time ts --attribute site --k 2 --p 0.95

        shoal tune visits.parquet --person user --time ts --attribute site --window 1h --window 1d

        shoal tune policy.toml --p 0.9 --out tuned     (reads the policy's source, takes its names and its window)

        shoal tune day.jsonl.gz --policy policy.toml --json > tuned.json

    Parameters
    ----------
    source
        A data file (.csv, .jsonl, .parquet, .arrow; .gz and .zst too), or a policy (.toml) that names one.
    out
        Folder for the results.
    as_json
        Print the result as JSON.
    quiet
        No progress.
    """
    from shoal.cli.output.render_tune import print_tuned, to_json
    from shoal.pipeline.tune.files import PICTURE, require_room, write_files

    require_room(out)
    tuned = _tuned(source, goal, read, quiet=quiet)
    for warning in tuned.warnings:
        print(f"shoal: warning: {warning}", file=sys.stderr)
    written = [*write_files(tuned, out), *_draw(tuned.tuning, out / PICTURE)]
    if as_json:
        print(to_json(tuned, written), file=sys.stdout)
    else:
        print_tuned(tuned, written)
    return 0 if tuned.tuning.best is not None else 1


def _tuned(source: Path, goal: Goal, read: Input, *, quiet: bool) -> Tuned:
    from shoal.cli.output.render import say_compiling
    from shoal.cli.output.render_tune import ProgressLines
    from shoal.models.z.tuning import Target
    from shoal.pipeline.tune.tune import tune_input

    target = Target(goal.k, goal.p, goal.holdout, goal.classes, goal.release, goal.check)
    return tune_input(
        source, target, person=read.person, time=read.time, attribute=read.attribute, windows=read.window or (),
        names=read.policy, progress=ProgressLines(quiet=quiet),
        say_compiling=(lambda: None) if quiet else say_compiling,
    )  # fmt: skip


def _draw(tuning: Tuning, path: Path) -> list[Path]:
    from shoal.errors import OutputError, RunError
    from shoal.figures.z_tune import draw_tuning

    try:
        draw_tuning(path, tuning, private=True)
    except OutputError:
        raise
    except RunError as error:  # no matplotlib: the numbers are there all the same
        print(f"shoal: warning: no picture: {error}", file=sys.stderr)
        return []
    return [path]
