"""Addresses of brokers."""

from __future__ import annotations

import pytest

from shoal.clients.addresses import addresses
from shoal.errors import PolicyError


def test_ports_are_optional() -> None:
    assert [str(one) for one in addresses("a, b:7 ,::1,[::2]:8", port=5)] == ["a:5", "b:7", "::1:5", "::2:8"]


@pytest.mark.parametrize("text", ["", " , ", "a:0", "a:65536", "a:b", ":5", "redis://a", "ann:pet@a"])
def test_anything_else_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(PolicyError, match=r"write host:port|name at least one broker") as refusal:
        addresses(text, port=5)
    assert "pet" not in str(refusal.value)
