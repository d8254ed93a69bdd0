"""What a worker needs before it starts: which one it is, and the key that all of them have."""

from __future__ import annotations

from typing import Final

from shoal.crypto.keys import KEY_FILE_VARIABLE, secret_from_environment
from shoal.errors import PolicyError
from shoal.policy import Policy
from shoal.policy.live.workers import workers_of

NO_KEY: Final = (
    f"{KEY_FILE_VARIABLE} is not set, but all workers need the same key, so that a person has the same pseudonym "
    "everywhere; write it to a file on every machine, and set the variable to the file"
)


def require_worker(policy: Policy) -> None:
    """Raise PolicyError if the policy is for several workers and this is none of them, or has no key."""
    workers = workers_of(policy)
    if workers == 1:
        return
    if policy.worker is None:
        raise PolicyError(
            f"[source] workers: is {workers}, so say which one this is: --worker 0 to --worker {workers - 1}, each in "
            "a process of its own"
        )
    if secret_from_environment() is None:
        raise PolicyError(f"[source] workers: {NO_KEY}")
