"""Calls in a thread of their own."""

from __future__ import annotations

from threading import Event

import pytest

from shoal.clients.background import Background


def test_results_and_errors_come_back() -> None:
    calls: Background[int] = Background("test")
    assert calls.call(lambda: 3, 60) == 3
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 // 0, 60)
    assert calls.call(lambda: 4, 60) == 4
    calls.close()


def test_a_call_that_is_not_ready_is_waited_for_again() -> None:
    calls: Background[str] = Background("test")
    may_end = Event()
    assert calls.call(lambda: "first" if may_end.wait(60) else "late", 0.01) is None
    assert calls.call(lambda: "second", 0.01) is None
    may_end.set()
    assert calls.call(lambda: "third", 60) == "first"
    assert calls.call(lambda: "fourth", 60) == "fourth"
    calls.close()
