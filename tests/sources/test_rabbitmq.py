"""Messages of RabbitMQ that are broken: none of them may end the run."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.decode.messages import Messages
from shoal.sources.reader import Needs

rabbitmq: Any = pytest.importorskip("shoal.sources.rabbitmq", reason="needs rstream")

GOOD = bytes.fromhex("005375a002") + b"{}"
BROKEN = [b"\x00S", b"\x00Su", b"\x00Sw\x01", b"\x00S hello"]


@pytest.mark.parametrize("headers", [False, True])
def test_a_broken_message_is_passed_on_as_it_is_and_shifts_no_other(headers: bool) -> None:
    reader = rabbitmq.RabbitReader(None, ["visits"], name="visits")
    reader._needs = Needs(keys=False, headers=headers, times=False)
    raw = [GOOD, *BROKEN, GOOD]
    found: Messages = reader._messages(raw, [1] * len(raw))
    assert list(found.values) == [b"{}", *BROKEN, b"{}"]


def test_a_name_of_a_property_that_is_not_utf8_is_no_error() -> None:
    assert rabbitmq._properties({b"\xff": b"x", b"from": 3}) == [("\ufffd", b"x"), ("from", "3")]
