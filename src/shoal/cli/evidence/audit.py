"""`shoal audit`: check a release against its input, independently."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from shoal.cli.evidence.table_options import TableOptions
from shoal.errors import OutputError, PolicyError

if TYPE_CHECKING:
    from shoal.auditor import AuditReport

NO_TABLE: Final = TableOptions()
MOST_LINES: Final = 25
"""Lines that are printed without --all."""


def audit(  # noqa: PLR0913 - one for each option
    release: Path | None = None,
    *,
    policy: Path | None = None,
    truth: Annotated[list[Path] | None, Parameter(consume_multiple=True, json_list=False, negative="")] = None,
    trace: Path | None = None,
    max_memory: str | None = None,
    sign: Path | None = None,
    verify: Path | None = None,
    key: Path | None = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    show_all: Annotated[bool, Parameter(name="--all", negative="")] = False,
    lists: Annotated[bool, Parameter(name="--list", negative="")] = False,
    engine: Literal["here", "spark"] = "here",
    master: str | None = None,
    table: TableOptions = NO_TABLE,
) -> int:
    """Check a release with code that shares nothing with the publisher.

    The first line is the verdict: promise kept, broken, or could not be checked. Exit code 0 when no promise is
    broken, 1 when one is, 2 when the policy is wrong. Without the input or the trace fewer checks are possible; the
    report says which.

    Examples:

        shoal audit released.parquet --truth visits.csv --trace trace.parquet --policy policy.toml

        shoal audit released/ --policy policy.toml --json

        shoal audit released.csv --policy policy.toml --out report.html

        shoal audit released.csv --truth visits.csv --policy policy.toml --sign auditor.pem -o attestation.json

        shoal audit released.csv --policy policy.toml --verify attestation.json --key auditor.pub

        shoal audit table.csv --quasi age sex zip --sensitive illness --k 5 --l 2

        shoal audit out/ --truth in/ --trace trace.parquet --policy policy.toml --engine spark --master local[4]

        shoal audit --list

    Parameters
    ----------
    release
        The released file, or a folder of part files, or of micro-batches (batch=000000000/).
    policy
        The policy it was released under; for a plain table of any tool give --quasi instead.
    truth
        The private input, all of it, in the order it was read: files, folders, or globs (visits-*.csv).
    trace
        The private trace ([trace] in the policy), or a folder or pattern of traces, which are read by name; sealed ones
        are opened with the key of SHOAL_KEY_FILE.
    max_memory
        How much memory the audit may use ("8 GB"); by default half of the machine's.
    sign
        A file with an Ed25519 private key (PEM): sign the verdict and the digests of release, policy, input and trace.
    verify
        An attestation: check its signature and that it is about these files; nothing is audited. Exit code 1 if not.
    key
        With --verify: the auditor's public key (PEM).
    out
        A file that ends in .html: write the audit as a page. With --sign any other file is that of the attestation;
        by default RELEASE.attestation.json.
    as_json
        Print the report as JSON.
    show_all
        Print all of the report; without it at most 25 lines, of which the last names the rest.
    lists
        Print all checks and audit nothing: what each finds, what it needs, and what to do.
    engine
        Where rows are counted: here, or on the executors of Spark, for files that one machine cannot hold.
    master
        With --engine spark: the cluster, such as spark://host:7077, yarn or local[4]; by default that of spark-submit.
    """
    import orjson

    from shoal.cli.engine import check_engine

    if lists:
        print(_listed(as_json=as_json), file=sys.stdout)
        return 0
    if release is None:
        raise PolicyError("shoal audit: name the released file or folder")
    check_engine(engine, master)
    page = out if out is not None and out.suffix == ".html" else None
    if out is not None and page is None and sign is None:
        raise PolicyError(f"--out {out.name}: give a file that ends in .html for a page, or --sign for an attestation")
    promised = _promise(policy, table, is_signed=sign is not None or verify is not None)
    if verify is not None:
        assert policy is not None
        return _verify(verify, release, policy, one_or_all(truth), trace, key)
    signer = (
        None
        if sign is None or policy is None
        else _Signer(sign, release, policy, one_or_all(truth), trace, None if page else out)
    )
    if engine == "spark":
        report = _on_spark(release, truth, trace, promised, max_memory, master)
    else:
        from shoal.auditor import audit as judge

        report = judge(
            release, truth=one_or_all(truth), trace=read_private_trace(trace), policy=promised, max_memory=max_memory
        )
    text = report.text(None if show_all else MOST_LINES)
    print(orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2).decode() if as_json else text, file=sys.stdout)
    if page is not None:
        report.report(page)
        print(f"shoal: page written to {page}", file=sys.stderr)
    if signer is not None:
        signer.write(report)
    return 0 if report.ok else 1


def _listed(*, as_json: bool) -> str:
    import orjson

    from shoal.auditor.listing import entries

    found = entries()
    if as_json:
        return orjson.dumps([one.to_dict() for one in found], option=orjson.OPT_INDENT_2).decode()
    return "\n".join(one.text() for one in found)


def _on_spark(
    release: Path, truth: list[Path] | None, trace: Path | None, promised: Any, max_memory: str | None,
    master: str | None,
) -> AuditReport:  # fmt: skip
    from shoal.spark.evidence import audit_on_spark, sealed_trace

    return audit_on_spark(release, truth, sealed_trace(trace), promised, max_memory=max_memory, master=master)


def _promise(policy: Path | None, table: TableOptions, *, is_signed: bool) -> Path | dict[str, Any]:
    """Return the policy, or what the options for a plain table say."""
    promised = table.policy()
    if policy is not None and promised is not None:
        raise PolicyError(
            "--policy and options for a plain table (--quasi, --k, …) exclude each other; put them in [table]"
        )
    if is_signed and policy is None:
        raise PolicyError(
            "--policy: give it, too; an attestation names the policy (write the promise of a plain table under [table])"
        )
    if policy is None and promised is None:
        raise PolicyError("--policy: give the policy, or for a plain table of any tool --quasi COLUMN …")
    return policy if policy is not None else promised or {}


class _Signer:
    """Takes the digests of the files before the audit, and writes the attestation after it."""

    def __init__(
        self, key: Path, release: Path, policy: Path, truth: Any, trace: Path | None, out: Path | None
    ) -> None:
        from shoal.auditor.attestation import Inputs

        self._key, self._inputs = key, Inputs(release, policy, truth, trace)
        self._place = out or Path(str(release).rstrip("/") + ".attestation.json")
        self._before = self._inputs.digests()

    def write(self, report: AuditReport) -> None:
        from shoal.auditor.attestation import make_statement, sign

        text = sign(make_statement(report, self._inputs, self._before), self._key)
        try:
            self._place.write_text(text, encoding="utf-8")
        except OSError as error:
            reason = f"cannot be written ({error.strerror}); choose another file with --out"
            raise OutputError(f"{self._place}: {reason}") from None
        print(f"shoal: attestation written to {self._place}", file=sys.stderr)


def _verify(attestation: Path, release: Path, policy: Path, truth: Any, trace: Path | None, key: Path | None) -> int:
    from shoal.auditor.attestation import Inputs, verdict_in, verify

    statement, problems = verify(attestation, Inputs(release, policy, truth, trace), key)
    for problem in problems:
        print(problem)
    if not problems:
        print(
            f"attested: {statement['method']}, {verdict_in(statement)}; {statement['warnings']} warnings, "
            f"{statement['not_checked']} checks not possible (shoal {statement['shoal']})"
        )
    return 1 if problems else 0


def one_or_all(paths: list[Path] | None) -> Any:
    """Return one path as it is, several as a list."""
    return paths[0] if paths and len(paths) == 1 else paths or None


def read_private_trace(path: Path | None) -> Any:
    """Open sealed traces: a file, or those of a folder or pattern by name. The auditor reads any other itself."""
    from shoal.auditor.reading.paths import table_paths
    from shoal.cli.output.render import warn_of_key
    from shoal.encode.sealed import is_sealed_trace, read_trace

    if path is None:
        return None
    paths = table_paths(path, "trace")
    if not any(map(is_sealed_trace, paths)):
        return path
    warn_of_key()
    found = [read_trace(one) for one in paths]
    return found[0] if len(found) == 1 else found
