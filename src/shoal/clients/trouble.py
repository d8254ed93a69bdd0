"""Trouble that may pass: a call is repeated until it succeeds or patience ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shoal.clients.patience import Patience
from shoal.errors import RunError

_T = TypeVar("_T")


class Unreachable(Exception):
    """A system does not answer now, but may later. The text says what happened, without data or secrets."""


def persist(call: Callable[[], _T], patience: Patience, failure: Callable[[str], RunError]) -> _T:
    """Repeat a call while it raises Unreachable; raise `failure` if that lasts too long."""
    while True:
        try:
            result = call()
        except Unreachable as trouble:
            if patience.fail():
                raise failure(f"unreachable for too long ({trouble})") from None
            patience.wait()
        else:
            patience.succeed()
            return result
