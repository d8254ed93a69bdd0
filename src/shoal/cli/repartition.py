"""`shoal repartition`: write a topic of Kafka that is keyed by a column."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def repartition(  # noqa: PLR0913 - one for each option
    policy: Path,
    *,
    read: Annotated[tuple[str, ...], Parameter(name="--from", negative="")] = (),
    by: str | None = None,
    to: str | None = None,
    partitions: int | None = None,
    until_end: Annotated[bool, Parameter(negative="")] = False,
    checkpoint: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    take_over: Annotated[bool, Parameter(negative="")] = False,
    log: Literal["text", "json"] = "text",
) -> int:
    """Write the messages of Kafka topics to a topic that is keyed by a column.

    Several workers can share a topic if all messages with the same value are in one partition. This command copies
    every message as it came (value, headers, time) to the partition of its value, with the value as its key. If the
    policy reads a column from the key, keys stay as they are. Nothing is anonymized: the new topic has the data of
    people, so protect it like the old one. A message whose column cannot be read goes to the dead letters (the topic
    with -dead-letters at its end), so none is lost.

    Every message is written exactly once, also if the command is killed and started again. It goes on until it gets
    SIGTERM or Ctrl-C, or with --until-end up to the end as it is now. Exit codes are those of shoal run.

    Examples:

        shoal repartition policy.toml --from visits --partitions 8     (the policy reads the new topic)

        shoal repartition policy.toml --by site --to visits-by-site    (the policy reads the old one)

        shoal repartition policy.toml --by site --to visits-by-site --until-end

    Parameters
    ----------
    policy
        The policy file (TOML); its [source] is Kafka. Messages are read as it says.
    read
        Topics to read; by default those of the policy.
    by
        The column that the new topic is keyed by; by default keyed_by of [source], or the attribute of z-anonymity.
    to
        The topic to write; by default the one that the policy reads, if --from names others. Never the sink of the
        policy.
    partitions
        Create the new topic and that of dead letters if they do not exist, the new one with this many partitions.
    until_end
        Stop at the end as it is at the start.
    checkpoint
        Folder for state; by default that of the policy. A folder for the new topic is made in it.
    as_json
        Print the summary as JSON on standard output.
    quiet
        No progress.
    take_over
        Continue although another process uses the checkpoints; that one stops at its next commit.
    log
        How events are written on standard error: as sentences, or as JSON objects, one per line.
    """
    from shoal.cli.output.render import print_summary, watch
    from shoal.pipeline.live.repartition import Request
    from shoal.pipeline.live.repartition import repartition as write
    from shoal.pipeline.stopping import Stop, on_signals
    from shoal.policy import load_policy

    loaded = load_policy(policy, checkpoint=checkpoint)
    stop = Stop()
    request = Request(by, read, to, partitions, until_end)
    signals = nullcontext() if until_end or not loaded.source.is_endless else on_signals(stop, as_json=log == "json")
    with watch(quiet=quiet, log=log, metrics=None) as observer, signals:
        summary = write(loaded, request, observer, stop=stop, take_over=take_over)
    print_summary(summary, as_json=as_json, is_piped=False)
    return 0 if summary.ok else 1
