"""`shoal attack`: who could be found in a release, what could be linked, what could be inferred."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from shoal.errors import PolicyError

if TYPE_CHECKING:
    from shoal.auditor.attacks.outcome import AttackReport

Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]


def attack(  # noqa: PLR0913
    release: Path,
    *,
    truth: Annotated[list[Path], Parameter(consume_multiple=True, negative="")],
    policy: Path | None = None,
    trace: Path | None = None,
    other: Path | None = None,
    control: Path | None = None,
    knows: Names = None,
    sensitive: Names = None,
    person: str | None = None,
    targets: int = 1000,
    seed: int = 1,
    max_memory: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    engine: Literal["here", "spark"] = "here",
    master: str | None = None,
) -> int:
    """Simulate attackers on a release, shoal's or another tool's, and compare them with guessing.

    Each attacker has stated knowledge. Reported are the success rate with a 95% confidence interval, the rate of
    guessing without the release, the rate on the raw data, and the rate against people who are not in the data. Exit
    code 0 when attacks could be run, 1 when a file cannot be read, 2 when the policy is wrong.

    Examples:

        shoal attack released.parquet --truth visits.csv --trace trace.parquet --policy policy.toml

        shoal attack released.csv --truth people.csv --policy policy.toml --knows age sex --control others.csv --json

        shoal attack theirs.csv --truth people.csv --knows age,sex,zip --sensitive illness

        shoal attack out/ --truth in/ --policy policy.toml --engine spark --master local[4]

    Parameters
    ----------
    release
        The released file, or a folder of part files.
    truth
        The private input: files, folders, or globs in quotes. It tells whether an attacker is right.
    policy
        The policy it was released under. Without one (another tool's table) name the columns with --knows.
    trace
        The private trace, which says whose row is whose; more attacks apply with it.
    other
        A second release of the same input under the same policy: what do both together show?
    control
        Records of people who are not in the data, in the form of the input.
    knows
        The quasi-identifiers that attackers know, separated by spaces or commas; by default all of the policy.
    sensitive
        Without a policy: the sensitive columns.
    person
        Without a policy: the column that identifies people; by default every row is another person.
    targets
        How many people are attacked, drawn at random.
    seed
        The seed of the draw: the same seed gives the same report.
    max_memory
        How much memory may be used ("8 GB"); by default half of the machine's.
    as_json
        Print the report as JSON, with what each attacker wants and knows.
    quiet
        Print no progress on standard error.
    engine
        Where rows are counted: here, or on the executors of Spark, for files that one machine cannot hold. On Spark
        the risks of prosecutor, marketer and journalist are computed from the sizes of classes, for all rows.
    master
        With --engine spark: the cluster, such as spark://host:7077, yarn or local[4]; by default that of spark-submit.
    """
    from shoal.auditor import attack as run
    from shoal.cli.engine import check_engine
    from shoal.cli.evidence.audit import one_or_all, read_private_trace
    from shoal.cli.output.render import watch_steps

    check_engine(engine, master)
    if engine == "spark":
        if trace is not None or other is not None or sensitive:
            raise PolicyError("--trace, --other, --sensitive: not used with --engine spark; leave them out")
        from shoal.spark.evidence import attack_on_spark

        found = attack_on_spark(
            release, one_or_all(truth), policy, control=control, knows=split_names(knows), person=person,
            max_memory=max_memory, master=master,
        )  # fmt: skip
        _print(found, as_json=as_json)
        return 0
    with watch_steps("attacking:", quiet=quiet) as progress:
        report = run(
            release,
            one_or_all(truth),
            policy,
            trace=read_private_trace(trace),
            other=other,
            control=control,
            knows=split_names(knows),
            sensitive=split_names(sensitive) or (),
            person=person,
            targets=targets,
            seed=seed,
            max_memory=max_memory,
            progress=progress,
        )
    _print(report, as_json=as_json)
    return 0


def _print(report: AttackReport, *, as_json: bool) -> None:
    import orjson

    text = orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2).decode() if as_json else report.text()
    print(text, file=sys.stdout)


def split_names(given: list[str] | None) -> list[str] | None:
    """Return names that are separated by spaces or commas."""
    return None if given is None else [name for one in given for name in one.split(",") if name]
