"""`shoal reproduce`: the experiments of the papers, on their data or on synthetic data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from cyclopts import App

from shoal.cli.reproduce.study_output import announce, expect, finish, show_progress
from shoal.errors import InputError, OutputError, PolicyError

if TYPE_CHECKING:
    from shoal.reproduce.data.streams import Stream

reproduce = App(
    name="reproduce",
    help="Run the experiments of a paper: PNG figures, CSV tables and one HTML page.",
    help_format="plaintext",
)

_FEWEST_ROWS: Final = 400
_QUICK_ROWS: Final = 1200
_ALL_ADULT: Final = 30_162
_KVARP_ROWS: Final = 30_000
_KM_PEOPLE: Final = 20_000
_QUICK_PEOPLE: Final = 1_000
_FEWEST_RUNS: Final = 3
_FULL_RUNS: Final = 100
_FLEXIBLE_PEOPLE, _QUICK_FLEXIBLE_PEOPLE, _ROWS_PER_PERSON = 2_000, 500, 15
_FAST_SECONDS, _KVARP_SECONDS, _Z_SECONDS = 90, 320, 120
"""Rough processor seconds, compiling apart, on an Intel Xeon: of the paper's rows, and of 100 runs."""
_KM_SECONDS, _KM_SECONDS_PER_MILLION = 15, 280
"""Of 20,000 people, and extrapolated from one k and σ with as many people as the paper."""
_FLEXIBLE_SECONDS: Final = 20
"""Of 30,000 rows."""


@reproduce.command
def fast(
    *,
    data: Path | None = None,
    out: Path = Path("reproduce-fast"),
    rows: int | None = None,
    seed: int = 1,
    quick: bool = False,
) -> int:
    """Figures 3 to 8 of the FAST paper: FADS and FAST, at its Table 3.

    Examples:

        shoal reproduce fast

        shoal reproduce fast --data downloads/adult

        shoal reproduce fast --quick --out try

    Parameters
    ----------
    data
        Folder with adult.data of the UCI Machine Learning Repository, Adult (plain or .gz). Without it, synthetic data.
    out
        Folder for the page, pictures and tables.
    rows
        Number of people, at most; by default all of Adult without a missing value. One in ten appears twice.
    seed
        Seed of the rows that appear twice, and of synthetic data.
    quick
        A short run with fewer rows and points, to try it out.
    """
    from shoal.figures.lines import require_matplotlib
    from shoal.reproduce.data.adult import fast_stream, read_adult
    from shoal.reproduce.data.adult_imitation import imitate_adult
    from shoal.reproduce.tuples.fast_page import write_fast_page
    from shoal.reproduce.tuples.fast_study import QUICK, FastPlan, run_fast_study

    wanted = _at_least("rows", rows, _QUICK_ROWS if quick else _ALL_ADULT)
    require_matplotlib()
    people = imitate_adult(wanted, seed=seed) if data is None else read_adult(data).head(wanted)
    stream, plan = fast_stream(people, seed=seed), QUICK if quick else FastPlan()
    folder = _folder(out)
    announce([stream])
    expect("fast", _FAST_SECONDS * len(people) / _ALL_ADULT, quick=quick)
    with show_progress() as report:
        tables = run_fast_study(stream, plan, report)
    return finish(write_fast_page(folder, stream, plan, tables))


@reproduce.command
def flexible(
    *,
    data: Path | None = None,
    places: Path | None = None,
    ontology: Path | None = None,
    out: Path = Path("reproduce-flexible"),
    rows: int | None = None,
    seed: int = 1,
    quick: bool = False,
) -> int:
    """Examples, figures 1 and 2, and the traceability attack of the paper on flexible k-anonymity.

    Every statement of the paper that can be checked is compared with what we find, on a synthetic measurement campaign
    or on measurements of your own.

    Examples:

        shoal reproduce flexible

        shoal reproduce flexible --data measurements.csv --places places.csv

        shoal reproduce flexible --quick --out try

    Parameters
    ----------
    data
        CSV or Parquet file with the columns maid (an id per person), device, place, network and time, and if you like
        provider and mbps_down. Without it, a synthetic campaign.
    places
        Hierarchy of the places of --data: a file with a line place;district;...;root for each. Without it, places are
        published as they are or not at all.
    ontology
        RDF file with an attribute device, for --data. Without it, the ontology of phones that shoal includes.
    out
        Folder for the page, pictures and tables.
    rows
        Number of measurements, at most; 30,000 by default.
    seed
        Seed of the synthetic campaign, and of the people who are looked for.
    quick
        A short run with fewer measurements, to try it out.
    """
    from shoal.figures.lines import require_matplotlib
    from shoal.reproduce.data.measurements import read_measurements, synthetic_measurements
    from shoal.reproduce.flexible.page import write_flexible_page
    from shoal.reproduce.flexible.study import QUICK, FlexiblePlan, run_flexible_study

    people = _QUICK_FLEXIBLE_PEOPLE if quick else _FLEXIBLE_PEOPLE
    wanted = _at_least("rows", rows, people * _ROWS_PER_PERSON)
    if seed < 0:
        raise PolicyError("seed: must be at least 0")
    if data is None and (places or ontology):
        raise PolicyError("places, ontology: belong to your own measurements; give them with --data")
    require_matplotlib()
    if data is None:
        measured = synthetic_measurements(max(1, wanted // _ROWS_PER_PERSON), wanted, seed)
    else:
        measured = read_measurements(data, places=places, ontology=ontology).head(wanted)
    folder = _folder(out)
    print(f"{measured.origin}: {len(measured):,} measurements of {measured.people:,} people", flush=True)
    expect("flexible", _FLEXIBLE_SECONDS * len(measured) / (_FLEXIBLE_PEOPLE * _ROWS_PER_PERSON), quick=quick)
    plan = replace(QUICK if quick else FlexiblePlan(), seed=seed)
    with show_progress("flexible-k") as report:
        findings = run_flexible_study(measured, plan, report)
    return finish(write_flexible_page(folder, measured, plan, findings))


@reproduce.command
def kvarp(
    *,
    data: Path | None = None,
    out: Path = Path("reproduce-kvarp"),
    rows: int | None = None,
    seed: int = 1,
    unit: Literal["arrivals", "milliseconds"] = "arrivals",
    quick: bool = False,
) -> int:
    """Figures 5 to 10 of the K-VARP paper: a growing number of missing values, on Adult and PM2.5.

    Examples:

        shoal reproduce kvarp

        shoal reproduce kvarp --data downloads --unit milliseconds

        shoal reproduce kvarp --quick --out try

    Parameters
    ----------
    data
        Folder with adult.data of the UCI Machine Learning Repository, Adult, and the five CSV files of its PM2.5 Data
        of Five Chinese Cities (plain or .gz, in the folder or its direct subfolders). Without it, synthetic data.
    out
        Folder for the page, pictures and tables.
    rows
        Number of rows of each data set, at most; 30,000 by default.
    seed
        Seed of the missing values, and of synthetic data.
    unit
        Unit of the paper's 2000 and 200: arrivals, or milliseconds, in which two rows arrive.
    quick
        A short run with fewer simulations and points, to try it out.
    """
    from shoal.figures.lines import require_matplotlib
    from shoal.reproduce.data.adult import read_adult
    from shoal.reproduce.data.adult_imitation import imitate_adult
    from shoal.reproduce.data.pm25 import read_pm25
    from shoal.reproduce.data.pm25_imitation import imitate_pm25
    from shoal.reproduce.tuples.kvarp_page import write_kvarp_page
    from shoal.reproduce.tuples.kvarp_study import QUICK, KVarpPlan, run_kvarp_study

    wanted = _at_least("rows", rows, _QUICK_ROWS if quick else _KVARP_ROWS)
    require_matplotlib()
    if data is None:
        streams = [imitate_adult(wanted, seed=seed), imitate_pm25(wanted, seed=seed)]
    else:
        streams = [stream.head(wanted) for stream in _read_all(data, read_adult, read_pm25)]
    plan = replace(QUICK if quick else KVarpPlan(), unit=unit, seed=seed)
    folder = _folder(out)
    announce(streams)
    expect("kvarp", _KVARP_SECONDS * sum(map(len, streams)) / (2 * _KVARP_ROWS), quick=quick)
    with show_progress() as report:
        tables = run_kvarp_study(streams, plan, report)
    return finish(write_kvarp_page(folder, streams, plan, tables))


@reproduce.command
def km(
    *,
    people: int | None = None,
    out: Path = Path("reproduce-km"),
    trials: int = 1,
    seed: int = 1,
    quick: bool = False,
) -> int:
    """Figures 2 to 6 of the paper on probabilistic k^m-anonymity, on a synthetic city.

    Examples:

        shoal reproduce km

        shoal reproduce km --people 200000 --trials 3

        shoal reproduce km --quick --out try

    Parameters
    ----------
    people
        Number of people of the city; 20,000 by default. The paper has 4,427,486.
    out
        Folder for the page, pictures and tables.
    trials
        Number of searches; the result with the smallest error is used. The paper uses 10.
    seed
        Seed of the city and of the samples.
    quick
        A short run with fewer people and points, to try it out.
    """
    from shoal.figures.lines import require_matplotlib
    from shoal.reproduce.data.city import make_city
    from shoal.reproduce.sets.page import write_km_page
    from shoal.reproduce.sets.study import QUICK, KmPlan, run_km_study

    wanted = _at_least("people", people, _QUICK_PEOPLE if quick else _KM_PEOPLE)
    if trials < 1:
        raise PolicyError("trials: must be at least 1")
    require_matplotlib()
    plan = replace(QUICK if quick else KmPlan(), trials=trials, seed=seed)
    folder = _folder(out)
    city = make_city(wanted, seed=seed)
    print(f"synthetic city: {len(city):,} people, {len(city.places):,} towers", flush=True)
    seconds = _KM_SECONDS + _KM_SECONDS_PER_MILLION * wanted / 1e6
    expect("km", seconds * (1 + trials) / 2, quick=quick)
    with show_progress("k^m") as report:
        findings = run_km_study(city, plan, report)
    return finish(write_km_page(folder, city, plan, findings))


@reproduce.command
def z(
    *,
    out: Path = Path("reproduce-z"),
    runs: int | None = None,
    seed: int = 1,
    quick: bool = False,
) -> int:
    """Figures 2 to 8 and C.10 of the z-anonymity paper: its model with bounds, and simulations.

    Examples:

        shoal reproduce z

        shoal reproduce z --runs 400 --seed 2

        shoal reproduce z --quick --out try

    Parameters
    ----------
    out
        Folder for the page, pictures and tables.
    runs
        Simulated streams for each point; 100 by default. The paper uses 10.
    seed
        Seed of the simulations.
    quick
        A few seconds with fewer runs and points, to see what comes out.
    """
    from shoal.figures.lines import require_matplotlib
    from shoal.reproduce.z.page import write_z_page
    from shoal.reproduce.z.study import QUICK, ZPlan, run_z_study

    plan = QUICK if quick else ZPlan()
    if runs is not None and runs < _FEWEST_RUNS:
        raise PolicyError(f"runs: must be at least {_FEWEST_RUNS}; fewer give no meaningful error bars")
    if seed < 0:
        raise PolicyError("seed: must be at least 0")
    require_matplotlib()
    plan = replace(plan, runs=runs or plan.runs, seed=seed)
    folder = _folder(out)
    expect("z", _Z_SECONDS * plan.runs / _FULL_RUNS, quick=quick)
    with show_progress("z-model") as report:
        tables = run_z_study(plan, report)
    return finish(write_z_page(folder, plan, tables))


def _read_all(folder: Path, *readers: Callable[[Path], Stream]) -> list[Stream]:
    """Read all data sets; one error lists everything that is missing."""
    streams, problems = [], []
    for read in readers:
        try:
            streams.append(read(folder))
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("; ".join(problems))
    return streams


def _at_least(name: str, given: int | None, default: int) -> int:
    if given is None:
        return default
    if given < _FEWEST_ROWS:
        raise PolicyError(f"{name}: must be at least {_FEWEST_ROWS}; fewer give no meaningful comparison")
    return given


def _folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{out}: cannot be created as a folder ({error.strerror}); choose another with --out"
        ) from None
    return out
