"""`shoal sanitize`: the whole sanitization process, from a source to an internal and an external store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter


def sanitize(
    policy: Path,
    *,
    status: Annotated[bool, Parameter(negative="")] = False,
    clear: Annotated[bool, Parameter(negative="")] = False,
    follow: Annotated[bool, Parameter(negative="")] = False,
    every: str = "10s",
    rotate_key: Path | None = None,
    audit: bool = True,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Ingest records, hide them among decoys in an internal store, and publish them anonymized in an external one.

    Identifying columns are hashed and sealed before anything is written; the key comes from SHOAL_KEY_FILE. Started
    again, it resumes after a crash and ingests what is new in the source. Exit code 0 on success, 1 when it failed or
    the audit found a broken promise, 2 when the policy is wrong.

    Examples:

        shoal sanitize policy.toml

        shoal sanitize policy.toml --follow --every 30s     (records keep arriving; stop it with Ctrl-C)

        shoal sanitize policy.toml --status

        shoal sanitize policy.toml --clear

        shoal sanitize policy.toml --rotate-key new-key.txt

    Parameters
    ----------
    policy
        The policy file (TOML), with [sanitize].
    status
        Only show what is in each store.
    clear
        Only clear temporary rows and keys that have expired.
    follow
        Keep looking for new files and lines.
    every
        How long to wait between two looks.
    rotate_key
        Have the key in this file open everything from now on, in place of the one in SHOAL_KEY_FILE.
    audit
        Audit the external store after publishing.
    as_json
        Print the result as JSON.
    quiet
        No progress.
    """
    from shoal.cli.output.render import warn_of_key, watch
    from shoal.sanitize.process import Sanitizer
    from shoal.schema import duration_ns

    process = Sanitizer.from_policy(policy)
    warn_of_key(rotate_key)
    if rotate_key is not None:
        process.rotate_key(rotate_key)
        print(f"the key in {rotate_key} opens everything now; set SHOAL_KEY_FILE to it, and destroy the old one")
        return 0
    if clear:
        cleared = process.clear()
        fate = "their temporary rows and keys are deleted" if cleared else "none has expired"
        print(f"{cleared} run{'s' * (cleared != 1)} cleared: {fate}")
        return 0
    if status:
        _show_status(process.status(), as_json=as_json)
        return 0
    seconds = duration_ns(every, name="--every") / 1e9
    with watch(quiet=quiet) as observer:
        for warning in process.policy.warnings:
            observer.warn(warning)
        if follow:
            return _follow(process, seconds, observer, as_json=as_json)
        summary = process.run(observer, audit=audit)
    _show(summary, as_json=as_json)
    return 1 if summary.status["audit"].startswith("BROKEN") else 0


def _follow(process: Any, seconds: float, observer: Any, *, as_json: bool) -> int:
    from threading import Event

    def show(summary: Any) -> None:
        if summary.read or summary.published:
            _show(summary, as_json=as_json)

    never = Event()
    try:
        process.follow(lambda: not never.wait(seconds), observer, done=show)
    except KeyboardInterrupt:
        print("shoal: stopped; start the same command again to continue", file=sys.stderr)
    return 0


def _show(summary: Any, *, as_json: bool) -> None:
    if as_json:
        _print_json(summary.to_dict())
        return
    speed = f"{summary.read / summary.seconds:,.0f} rows/s" if summary.seconds and summary.read else ""
    print(f"read           {summary.read:>12,}  new records  {speed}")
    print(f"published      {summary.published:>12,}  rows")
    if summary.dead:
        print(f"refused        {summary.dead:>12,}")
    if summary.cleared:
        print(f"cleared        {summary.cleared:>12,}  runs")
    _show_status(summary.status, as_json=False)


def _show_status(status: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print_json(status)
        return
    inside, between, outside = status["internal"], status["temporary"], status["external"]
    print(f"internal       {inside['records']:>12,}  records, real ones and decoys  ({inside['store']})")
    runs = "1 run" if between["runs"] == 1 else f"{between['runs']:,} runs"
    print(f"temporary      {between['batches']:>12,}  sealed batches, of {runs}  ({between['store']})")
    print(f"batches        {status['waiting_batches']:>12,}  not anonymized yet")
    print(f"pending        {status['pending']:>12,}  records pending until there are enough people")
    print(f"external       {outside['published']:>12,}  rows published  ({outside['store']})")
    if status["suppressed"]:
        print(f"suppressed     {status['suppressed']:>12,}  records (this method may drop some; flexible-k does not)")
    if status["dead"]:
        print(f"dead           {status['dead']:>12,}  records that could not be used")
    print(f"audit          {status['audit']}")


def _print_json(content: dict[str, Any]) -> None:
    import orjson

    print(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode())
