"""`shoal run`: anonymize a stream as a policy says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def run(
    policy: Path,
    *,
    checkpoint: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Anonymize a stream as a policy says.

    Released rows go to the policy's sink, unusable ones to the dead letters beside it. Exit code 0 when all went
    well, 1 when the run failed or the input broke off, 2 when the policy is wrong.

    The policy's method decides what is promised: z-anonymity for events (who, when, what); least-loss, fads, fast,
    k-varp, iot-anonymization, castle or fads-varied for whole rows, of which every one leaves alike for k people within
    a deadline; k^m or k^m-apriori for one set of items a person, which is read whole, decided at once, and published
    with a certificate beside it. The summary also tells what was lost.

    Examples:

        shoal run policy.toml

        shoal run policy.toml --checkpoint state/     (kill it, start it again: it goes on)

        shoal run policy.toml --json > summary.json

        shoal doctor people.toml && shoal run people.toml --quiet

    Parameters
    ----------
    policy
        The policy file (TOML).
    checkpoint
        Folder for state, so that a killed run can be started again with the same command.
    as_json
        Print the summary as JSON on standard output.
    quiet
        No progress.
    """
    from shoal.cli.interrupt import say_interrupted
    from shoal.cli.render import print_summary, watch
    from shoal.pipeline import Pipeline

    pipeline = Pipeline.from_policy(policy, checkpoint=checkpoint)
    try:
        with watch(quiet=quiet) as observer:
            for warning in pipeline.policy.warnings:
                observer.warn(warning)
            summary = pipeline.run(observer)
    except KeyboardInterrupt:
        return say_interrupted(pipeline.policy)
    print_summary(summary, as_json=as_json, is_piped=pipeline.policy.sink.path.is_standard)
    return 0 if summary.ok else 1
