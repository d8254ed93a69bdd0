"""A policy, ready to run."""

from __future__ import annotations

from os import PathLike
from typing import Self

from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.live.workers import require_worker
from shoal.pipeline.stopping import Stop
from shoal.policy import Policy, load_policy
from shoal.sources.base import Source


class Pipeline:
    """A policy, ready to run: read, anonymize and write what it names.

    To anonymize data that is in memory, use a method such as :class:`shoal.ZAnonymity` directly.

    Parameters
    ----------
    policy
        A checked policy with a ``[sink]``; :meth:`from_policy` reads one from a file.

    Examples
    --------
    ``Pipeline.from_policy("policy.toml").run()`` returns a summary of counts.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        policy.sink  # noqa: B018 - raises for a policy of another command, before anything is written
        require_worker(policy)

    @classmethod
    def from_policy(
        cls, path: str | PathLike[str], *, checkpoint: str | PathLike[str] | None = None, worker: int | None = None
    ) -> Self:
        """Read and check a policy file; `checkpoint` names a folder that replaces the policy's.

        `worker` is the number of this worker, from 0, if the policy is for several.
        """
        return cls(load_policy(path, checkpoint=checkpoint, worker=worker))

    def run(
        self,
        observer: Observer | None = None,
        *,
        source: Source | None = None,
        stop: Stop | None = None,
        take_over: bool = False,
        upgrade: bool = False,
    ) -> RunSummary:
        """Run to the end of the input, or resume an earlier run of the same policy that was stopped.

        A run on a live system ends only if `stop` is asked, from another thread or a signal: it commits and returns.
        `source` replaces the one that the policy describes, such as one that a web server fills. With `take_over` the
        run continues although another process uses the checkpoints; that one stops at its next commit.
        With `upgrade` it continues a run of a policy with another [stream] or [anonymize], or with another key.
        """
        # A run imports only what its kind of method needs.
        if self.policy.anonymize.IS_STREAM:
            from shoal.pipeline.run import StreamRun
            from shoal.pipeline.upgrade import Upgrade

            if upgrade:
                Upgrade(self.policy, observer or Observer(), take_over=take_over).execute()
            return StreamRun(self.policy, observer or Observer(), source, stop=stop, take_over=take_over).execute()
        from shoal.pipeline.sets.run import SetRun

        return SetRun(self.policy, observer or Observer()).execute()
