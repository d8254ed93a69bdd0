"""Trouble that may pass: a call is repeated until it succeeds or patience ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from shoal.clients.patience import Patience
from shoal.errors import RunError

_T = TypeVar("_T")


class Unreachable(Exception):
    """A system does not answer now, but may later. The text says what happened, without data or secrets."""


def unknown_setting(error: TypeError) -> str:
    """What to say if a client does not know one of its settings.

    >>> unknown_setting(TypeError("connect() got an unexpected keyword argument 'colour'"))
    "the client has no setting 'colour'; correct it in client or secrets"
    """
    names = re.findall(r"unexpected keyword argument ('\w+')", str(error))
    return f"the client has no setting {names[0]}; correct it in client or secrets" if names else (
        "the client refuses its settings; check client and secrets"
    )  # fmt: skip


def persist(call: Callable[[], _T], patience: Patience, failure: Callable[[str], RunError]) -> _T:
    """Repeat a call while it raises Unreachable; raise `failure` if that lasts too long."""
    while True:
        try:
            result = call()
        except Unreachable as trouble:
            if patience.fail():
                raise failure(
                    f"unreachable for longer than give_up ({trouble}); check that it runs and its address"
                ) from None
            patience.wait()
        else:
            patience.succeed()
            return result
