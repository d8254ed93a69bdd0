"""`shoal doctor`: check a policy, its columns and a sample of the data before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def doctor(
    policy: Path,
    *,
    rows: int = 100_000,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    engine: Literal["here", "spark"] = "here",
    master: str | None = None,
    shards: int | None = None,
) -> int:
    """Check a policy, its columns and a sample of the data before anything runs.

    Nothing is written. The method is tried on the sample: the doctor reports how much would be released and, for
    methods on rows, the average loss and how many values are missing, outside their domain or not in their hierarchy.
    Methods on sets are not tried; the doctor reports how many people stand out by some items in the raw data.

    Exit code 0 when the policy can run, 2 when the policy itself is wrong, 1 when the run would fail or be of no use:
    in the trial more than half of the rows are refused or fewer than 5% released, or times have another unit than the
    policy states. More than 5% refused is reported but does not change the exit code.

    Examples:

        shoal doctor policy.toml

        shoal doctor policy.toml --rows 1000000 --json

        shoal doctor people.toml --rows 5000     (a quick look)

    Parameters
    ----------
    policy
        The policy file (TOML).
    rows
        How many rows to read.
    as_json
        Print the remarks as JSON.
    engine
        With spark, executors are started too: whether they have the key and the same versions, and see the input and
        the folders of output, trace and state.
    master
        With --engine spark: the cluster, such as spark://host:7077, yarn or local[4]; by default that of spark-submit.
    shards
        With --engine spark: into how many parts records are divided at most, 16 by default; for methods on rows, what
        is published depends on it. Give some for each core. A stream keeps the number it began with.
    """
    import orjson

    from shoal.cli.engine import check_engine
    from shoal.cli.output.render import LineObserver, print_remarks
    from shoal.pipeline.doctor.doctor import examine
    from shoal.policy import load_policy

    check_engine(engine, master, shards)
    loaded = load_policy(policy)
    observer = LineObserver(quiet=False)
    if engine == "spark":
        from shoal.spark.cluster.doctor import is_stream, spark_remarks
        from shoal.spark.families import SHARDS

        remarks = examine(loaded, rows=rows, observer=observer, places=not is_stream(loaded))
        remarks += spark_remarks(loaded, master=master, shards=shards or SHARDS)
    else:
        remarks = examine(loaded, rows=rows, observer=observer)
    is_fit = all(remark.level != "wrong" for remark in remarks)
    if as_json:
        content = {"ok": is_fit, "remarks": [remark.to_dict() for remark in remarks]}
        print(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode(), file=sys.stdout)
    else:
        print_remarks(remarks)
        print("this policy can run" if is_fit else "this policy cannot run; see WRONG above", file=sys.stdout)
    return 0 if is_fit else 1
