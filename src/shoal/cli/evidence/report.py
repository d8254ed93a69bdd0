"""`shoal report`: one page of evidence on a release; and, for z-anonymity, its windows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.errors import OutputError, PolicyError, RunError

if TYPE_CHECKING:
    from shoal.auditor import WindowReport


def report(  # noqa: PLR0913
    release: Path,
    *,
    policy: Path,
    truth: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None,
    trace: Path | None = None,
    control: Path | None = None,
    workload: Path | None = None,
    k: int | None = None,
    targets: int = 1000,
    seed: int = 1,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Write one page of evidence on a release: promise, audit, attacks, losses, utility, and how to repeat it.

    With `-o report.html` the page is a single file that needs no network. It contains distributions of the private
    input, so only its owner may read it. For z-anonymity the command also reports, without a page, window by window
    how many people share all that was released of them with others; a window is the lifetime of a pseudonym. Exit code
    0 when the report could be made, 1 when a file cannot be read or written, 2 when the policy is wrong.

    Examples:

        shoal report released.parquet --policy policy.toml --truth visits.csv --trace trace.parquet -o report.html

        shoal report released.parquet --policy policy.toml --truth visits.csv --k 5 --out windows

        shoal report released/ --policy policy.toml --json

    Parameters
    ----------
    release
        The released file, or a folder of part files.
    policy
        The policy it was released under.
    truth
        The private input: files, folders, or globs in quotes. The page needs it.
    trace
        The private trace, which says whose row is whose; more can be said with it.
    control
        Records of people who are not in the data, in the form of the input, to compare attacks with.
    workload
        The counts that matter, in a TOML or JSON file: how far off is each, from the release? For rows, with the page.
    k
        For windows: how many people must share a released set; by default that of the policy's target or combine,
        else 2.
    targets
        How many people are attacked, drawn at random.
    seed
        The seed of the draw.
    out
        A file that ends in .html for the page; or a folder for windows.csv, costs.csv and windows.png (z-anonymity).
    as_json
        Print the report as JSON: with the page, all that is on it; otherwise the windows.
    quiet
        Print no progress on standard error.
    """
    import orjson

    from shoal.auditor import report_windows

    if out is not None and out.suffix == ".html":
        return _write_page(
            release, policy, truth, trace, control, workload, targets, seed, out, as_json=as_json, quiet=quiet
        )
    if workload is not None:
        raise PolicyError("--workload: is part of the page; give -o report.html")
    found = report_windows(release, policy=policy, truth=truth or None, k=k)
    places = [] if out is None else _write(found, _folder(out), private=bool(truth))
    if as_json:
        print(orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        print("\n".join([found.text(), *places]))
    return 0


def _write_page(  # noqa: PLR0913
    release: Path, policy: Path, truth: list[Path] | None, trace: Path | None, control: Path | None,
    workload: Path | None, targets: int, seed: int, out: Path, *, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    import orjson

    from shoal.auditor.digests import checksum
    from shoal.auditor.report.evidence_report import report_evidence
    from shoal.cli.evidence.audit import one_or_all, read_private_trace
    from shoal.cli.output.render import say_written, watch_steps
    from shoal.crypto.safe_open import write_file

    with watch_steps("reporting:", quiet=quiet) as progress:
        found = report_evidence(
            release, one_or_all(truth), policy, trace=read_private_trace(trace), control=control, targets=targets,
            seed=seed, workload=workload, progress=progress,
        )  # fmt: skip
    if trace is not None:  # of the file as it is, also where it is sealed and was opened first
        found.content["repeat"]["sha256"]["trace"] = checksum(trace)
    try:
        write_file(out, found.html(), private=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}); choose another file with --out") from None
    if as_json:
        say_written("page", out, quiet=quiet)
        print(orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
    else:
        print(f"audit          {found.content['verdict']['sentence']}\npage           {out}")
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
