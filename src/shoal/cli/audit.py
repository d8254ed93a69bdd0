"""`shoal audit`: check a release against its input, independently."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter


def audit(
    release: Path,
    *,
    policy: Path,
    truth: Annotated[list[Path] | None, Parameter(consume_multiple=True, json_list=False, negative="")] = None,
    trace: Path | None = None,
    max_memory: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Check a release with code that shares nothing with the publisher.

    Exit code 0 when no promise is broken, 1 when one is, 2 when the policy is wrong. Without the input or the trace
    fewer checks are possible; the report says which.

    Examples:

        shoal audit released.parquet --truth visits.csv --trace trace.parquet --policy policy.toml

        shoal audit released/ --policy policy.toml --json

    Parameters
    ----------
    release
        The released file, or a folder of part files.
    policy
        The policy it was released under.
    truth
        The private input, all of it, in the order it was read: files, folders, or globs (visits-*.csv).
    trace
        The private trace ([trace] in the policy); a sealed one is opened with the key of SHOAL_KEY_FILE.
    max_memory
        How much memory the audit may use ("8 GB"); by default half of the machine's.
    as_json
        Print the report as JSON.
    """
    import orjson

    from shoal.auditor import audit as judge

    report = judge(
        release, truth=one_or_all(truth), trace=read_private_trace(trace), policy=policy, max_memory=max_memory
    )
    text = orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2).decode() if as_json else report.text()
    print(text, file=sys.stdout)
    return 0 if report.ok else 1


def one_or_all(paths: list[Path] | None) -> Any:
    """Return one path as it is, several as a list."""
    return paths[0] if paths and len(paths) == 1 else paths or None


def read_private_trace(path: Path | None) -> Any:
    """Open a sealed trace; the auditor reads any other itself."""
    from shoal.cli.render import warn_of_key
    from shoal.encode.sealed import is_sealed_trace, read_trace

    if path is None or not path.is_file() or not is_sealed_trace(path):
        return path
    warn_of_key()
    return read_trace(path)
