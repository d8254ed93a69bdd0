"""Going back to the last checkpoint in the same process, after a transaction was aborted."""

from __future__ import annotations

from collections.abc import Callable

from shoal.clients.patience import Patience
from shoal.errors import OutputError
from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.pipeline.stopping import Stop
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink
from shoal.sinks.base import Aborted


class GoingBack:
    """Lets a run go back while that may help: until nothing was published for longer than the sink's `give_up`."""

    def __init__(self, policy: Policy, stop: Stop, warn: Callable[[str], None]) -> None:
        sink = policy.sink
        self._patience = Patience(sink.give_up.ns / 1e9 if isinstance(sink, MessageSink) else 0.0)
        self._stop, self._warn = stop, warn

    def after(self, error: Aborted, folder: CheckpointFolder | None) -> None:
        """Report the error and wait a moment.

        Raises it if there is nothing to go back to or the run was asked to stop, OutputError if it is time to give up,
        and CheckpointError if another process has taken over.
        """
        if folder is None or self._stop.is_asked:
            raise error
        if self._patience.fail():
            raise OutputError(
                f"{error}; nothing was published for longer than give_up. The same command continues at the last "
                "checkpoint"
            ) from None
        self._stop.is_reading = False  # until the run reads again, there is nothing to commit
        self._warn(f"{error}; going back to the last checkpoint")
        self._patience.wait()
        folder.require_own()

    def succeed(self) -> None:
        """Something was published."""
        self._patience.succeed()
