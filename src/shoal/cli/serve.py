"""`shoal serve`: run a policy and show the run on a page."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def serve(
    policy: Path,
    *,
    port: int | None = None,
    host: str | None = None,
    no_token: Annotated[bool, Parameter(negative="")] = False,
    open_page: Annotated[bool, Parameter(name="--open", negative="")] = False,
    checkpoint: Path | None = None,
    take_over: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a policy and show the run on a page: rates, the promise next to what is measured, what-if.

    The run is that of `shoal run`: on a live system it goes on until SIGTERM or Ctrl-C, writes a last checkpoint and
    ends with 0. A run over files ends with them; the page stays until Ctrl-C. The page is open to this machine only and
    needs the printed address, whose token changes with every start unless SHOAL_SERVE_TOKEN sets it. It shows counts
    and published labels, never another value.

    Examples:

        shoal serve policy.toml

        shoal serve policy.toml --port 9000 --open

        SHOAL_SERVE_TOKEN=$(cat token.txt) shoal serve live.toml --host 0.0.0.0

    Parameters
    ----------
    policy
        The policy file (TOML).
    port
        Where the page is; 8765 by default, or the `listen` of an HTTP source. 0 takes a free one.
    host
        The address to listen at; another than this machine's own is reachable by others, without encryption.
    no_token
        Let everyone on this machine see the page.
    open_page
        Open the page in a browser.
    checkpoint
        Folder for state, so that a killed run can be started again with the same command.
    take_over
        Continue although another process uses the checkpoints.
    """
    from shoal.cli.output.render import print_summary, watch
    from shoal.pipeline import Pipeline
    from shoal.pipeline.stopping import Stop, on_signals
    from shoal.serve.host import RunHost

    pipeline = Pipeline.from_policy(policy, checkpoint=checkpoint)
    running = RunHost(pipeline, host=host, port=port, with_token=not no_token, with_page=True)
    for sentence in running.warnings:
        print(f"shoal: warning: {sentence}", file=sys.stderr)
    print(f"shoal: the page is at {running.address}", file=sys.stderr, flush=True)
    if pipeline.policy.source.kind == "http":
        print(f"shoal: records can be sent to {running.events_address}", file=sys.stderr, flush=True)
    if open_page:
        import webbrowser

        webbrowser.open(running.address)
    stop = Stop()
    with watch(quiet=True) as observer, on_signals(stop) if pipeline.policy.source.is_endless else nullcontext():
        summary = running.run(observer, stop=stop, take_over=take_over)
    print_summary(summary, as_json=False, is_piped=False)
    return summary.exit_code
