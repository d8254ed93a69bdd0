"""`shoal report`: a release window by window, and which values cost most."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.errors import OutputError, RunError

if TYPE_CHECKING:
    from shoal.auditor import WindowReport


def report(
    release: Path,
    *,
    policy: Path,
    truth: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None,
    k: int | None = None,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Report, window by window, how many people share all that was released of them with others.

    For z-anonymity, which hides rare values and not rare combinations. A window is the lifetime of a
    pseudonym. People are counted, never named; named are the released values that cost most: without them fewer people
    would stand out. Exit code 0 when the report could be made, 1 when a file cannot be read or written, 2 when the
    policy is wrong.

    Examples:

        shoal report released.parquet --policy policy.toml

        shoal report released.parquet --policy policy.toml --truth visits.csv --k 5 --out report

        shoal report released/ --policy policy.toml --json

    Parameters
    ----------
    release
        The released file, or a folder of part files.
    policy
        The policy it was released under.
    truth
        The private input, to count active people: files, folders, or globs in quotes.
    k
        How many people must share a released set. By default that of the policy's target or combine, else 2.
    out
        Folder for windows.csv, costs.csv and windows.png; without it nothing is written. With the private input, only
        their owner may read them.
    as_json
        Print the report as JSON.
    """
    import orjson

    from shoal.auditor import report_windows

    found = report_windows(release, policy=policy, truth=truth or None, k=k)
    places = [] if out is None else _write(found, _folder(out), private=bool(truth))
    if as_json:
        print(orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        print("\n".join([found.text(), *places]))
    return 0


def _folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{out}: the folder cannot be created ({error.strerror}); choose another with --out"
        ) from None
    return out


def _write(found: WindowReport, folder: Path, *, private: bool) -> list[str]:
    """Write the tables and the picture; return where they are."""
    from shoal.auditor.report.windows_report import COST_COLUMNS, WINDOW_COLUMNS

    _write_table(folder / "windows.csv", WINDOW_COLUMNS, found.window_lines(), private=private)
    _write_table(folder / "costs.csv", COST_COLUMNS, found.cost_lines(), private=private)
    try:
        picture = _draw(found, folder / "windows.png", private=private)
    except OutputError:
        raise
    except RunError as error:  # the numbers matter more than their picture
        picture = f"none: {error}"
    return [f"tables         {folder / 'windows.csv'}, {folder / 'costs.csv'}", f"picture        {picture}"]


def _write_table(path: Path, columns: Sequence[str], lines: Sequence[Mapping[str, Any]], *, private: bool) -> None:
    from shoal.crypto.safe_open import write_file

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(line[column]) for column in columns] for line in lines)
    try:
        write_file(path, text.getvalue(), private=private)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another folder with --out") from None


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else value


def _draw(found: WindowReport, path: Path, *, private: bool) -> str:
    from shoal.figures.z_windows import draw_windows

    if not found.windows:
        return "none: no window was found"
    target = found.target
    draw_windows(
        path,
        starts=[window.start_ns for window in found.windows],
        length=found.rotation_ns,
        shown=[window.shown for window in found.windows],
        anonymous=[window.anonymous for window in found.windows],
        k=found.k,
        target=target.p if target and target.k == found.k else None,
        private=private,
    )
    return str(path)
