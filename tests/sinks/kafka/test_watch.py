"""A client that lost its brokers is noticed, one whose brokers are down is not replaced."""

from __future__ import annotations

import pytest

from shoal.sinks.base import Aborted
from shoal.sinks.kafka.transactions import KafkaTransactions
from shoal.sinks.kafka.watch import Watch


@pytest.mark.parametrize("us", [False, True])
@pytest.mark.parametrize("others", [False, True])
def test_only_a_client_that_alone_gets_no_answer_is_cut_off(us: bool, others: bool) -> None:
    now = [0.0]
    watch = Watch(lambda: us, lambda: others, clock=lambda: now[0])
    now[0] = 9.0
    assert not watch.is_cut_off(), "not yet"
    now[0] = 10.0
    assert watch.is_cut_off() == (others and not us)
    assert not watch.is_cut_off(), "brokers are not asked again at once"
    now[0] = 15.0
    watch.restart()
    now[0] = 24.0
    assert not watch.is_cut_off(), "something was done in between"
    now[0] = 25.0
    assert watch.is_cut_off() == (others and not us)


class _Stuck:
    """A client whose messages are never acknowledged."""

    def flush(self, seconds: float) -> int:
        return 3


def test_a_flush_of_a_client_that_lost_its_brokers_is_aborted() -> None:
    transactions = KafkaTransactions("x:1", "t", give_up=600)
    transactions._producer = _Stuck()
    now = iter(range(0, 1_000, 4))
    transactions._watch = Watch(lambda: False, lambda: True, clock=lambda: next(now))
    with pytest.raises(Aborted, match="brokers answer, but not to this client, so the transaction was given up"):
        transactions.flush()
