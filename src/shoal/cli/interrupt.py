"""What to do after a run was interrupted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from shoal.policy import Policy

INTERRUPTED: Final = 130


def say_interrupted(policy: Policy) -> int:
    """Tell how to go on, or what lies about; give the exit code."""
    print(f"shoal: interrupted; {_what_next(policy)}", file=sys.stderr)
    return INTERRUPTED


def _what_next(policy: Policy) -> str:
    if policy.checkpoint is not None:
        return "start the same command again, it goes on from the last checkpoint"
    if not policy.anonymize.IS_STREAM:
        return "nothing was published; the next run starts over"
    left = [str(path) for path in _unfinished(policy) if path.exists()]
    if not left:
        return "nothing was written"
    return f"not finished: {', '.join(left)}; the next run replaces them (with --checkpoint it would go on)"


def _unfinished(policy: Policy) -> list[Path]:
    """Where a run writes before it is finished; dead letters are written in place."""
    places = [policy.sink.path, *([policy.trace.path] if policy.trace else [])]
    working = [
        place.path if place.is_folder else place.path.with_name(f"{place.path.name}.partial")
        for place in places
        if not place.is_standard
    ]
    return [*working, policy.dead_letters.path.path]
