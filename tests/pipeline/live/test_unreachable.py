"""What the doctor says of a system that does not answer."""

from __future__ import annotations

from shoal.clients.trouble import Unreachable
from shoal.errors import InputError
from shoal.pipeline.live.common import named


def test_a_system_that_does_not_answer_is_named_with_what_to_do():
    found = named("NATS at localhost", Unreachable("refused"))
    assert found == "NATS at localhost: cannot be used now (refused); is it running, and is the address right?"


def test_other_errors_are_named_once():
    for error in (InputError("NATS at localhost: no stream"), InputError("no stream")):
        assert named("NATS at localhost", error) == "NATS at localhost: no stream"
