"""`shoal tune`: choose z for a target, and check the choice on data that was not used for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def tune(  # noqa: PLR0913 - options of a command
    source: Annotated[Path, Parameter(name="input")],
    *,
    k: int = 2,
    p: float = 0.95,
    person: str | None = None,
    time: str | None = None,
    attribute: str | None = None,
    window: Annotated[list[str] | None, Parameter(negative="")] = None,
    policy: Path | None = None,
    holdout: float = 0.3,
    classes: int = 3,
    release: float = 0.01,
    out: Path = Path("tune-out"),
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Choose z (and the window) so that a share of the people shown are k-anonymous, and check the choice.

    z-anonymity hides rare values, not rare combinations. A model of people and rates is estimated from the earlier part
    of the stream; every z is tried on it, and the smallest is taken whose bound reaches the target up to 1.1 z. So is
    the smallest by which people reached it when the earlier part is replayed. Then the later part, which was not used,
    is replayed with these, and people are counted. A z is proposed only if the target held there; the table says where
    it comes from.

    Exit code 0 when a z held on the unused part, 1 when none did or the input cannot be read, 2 when an option is
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
    k
        How many people must show the same set of released values within a pseudonym's epoch.
    p
        The share of people with a released row of whom that must be true.
    person
        The column that says who.
    time
        The column that says when.
    attribute
        The column that is published.
    window
        How far back people count; may be repeated. By default the policy's, or up to three that fit the stream.
    policy
        A policy to take names and the window from.
    holdout
        The share of rows, the latest ones, that is kept back for the check.
    classes
        Up to how many classes of people, by how much they do, the model tells apart; with 1 its bounds are proven,
        with more they are a confidence interval, and the model is nearer to real people.
    release
        A z that releases a smaller share of rows is not taken.
    out
        Folder for what is written.
    as_json
        Print the result as JSON.
    quiet
        No progress.
    """
    from shoal.cli.render import say_compiling
    from shoal.cli.render_tune import Teller, print_tuned, to_json
    from shoal.models.z.tuning import Target
    from shoal.pipeline.tune.files import PICTURE, require_room, write_files
    from shoal.pipeline.tune.tune import tune_input

    target = Target(k, p, holdout, classes, release)
    require_room(out)
    tuned = tune_input(
        source, target, person=person, time=time, attribute=attribute, windows=window or (), names=policy,
        tell=Teller(quiet=quiet), say_compiling=(lambda: None) if quiet else say_compiling,
    )  # fmt: skip
    for warning in tuned.warnings:
        print(f"shoal: warning: {warning}", file=sys.stderr)
    written = write_files(tuned, out)
    picture = _draw(tuned.tuning, out / PICTURE)
    if as_json:
        print(to_json(tuned, [*written, *picture]), file=sys.stdout)
    else:
        print_tuned(tuned, [*written, *picture])
    return 0 if tuned.tuning.best is not None else 1


def _draw(tuning: object, path: Path) -> list[Path]:
    from shoal.errors import OutputError, RunError
    from shoal.figures.z_tune import draw_tuning
    from shoal.models.z.tuning import Tuning

    assert isinstance(tuning, Tuning)
    try:
        draw_tuning(path, tuning, private=True)
    except OutputError:
        raise
    except RunError as error:  # no matplotlib: the numbers are there all the same
        print(f"shoal: warning: no picture: {error}", file=sys.stderr)
        return []
    return [path]
