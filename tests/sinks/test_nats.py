"""Answers of a NATS server that refuse a message: which of them may pass."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.clients.trouble import Unreachable
from shoal.errors import OutputError

pytest.importorskip("nats")
MISPLACED = {"code": 400, "err_code": 10071, "description": "wrong last sequence: 7"}
TOO_LONG = {"code": 400, "err_code": 10054, "description": "message size exceeds maximum allowed"}
BUSY = {"code": 503, "err_code": 10077, "description": "insufficient resources"}


def report(error: dict[str, object], *, was_tried: bool) -> None:
    from shoal.sinks.nats import NatsWriter

    connection: Any = None
    NatsWriter(connection, "visits", name="NATS, stream visits")._report(error, was_tried=was_tried)


@pytest.mark.parametrize("was_tried", [False, True])
def test_what_does_not_pass_ends_the_run(was_tried: bool) -> None:
    with pytest.raises(OutputError, match="NATS, stream visits: the server refuses messages: 'message size exceeds"):
        report(TOO_LONG, was_tried=was_tried)


@pytest.mark.parametrize("was_tried", [False, True])
def test_trouble_of_the_server_may_pass(was_tried: bool) -> None:
    for error in (BUSY, {"description": "there is no such stream"}):
        with pytest.raises(Unreachable, match="the server answers"):
            report(error, was_tried=was_tried)


def test_another_sequence_means_another_writer_unless_it_was_tried_before() -> None:
    with pytest.raises(OutputError, match="another process writes here too"):
        report(MISPLACED, was_tried=False)
    with pytest.raises(Unreachable):
        report(MISPLACED, was_tried=True)
