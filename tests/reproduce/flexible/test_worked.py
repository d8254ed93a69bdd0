"""The paper's worked examples: blocks and labels as its text gives them."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from shoal.reproduce.flexible import worked as examples
from shoal.reproduce.flexible.worked import Worked, k_s_of, work_examples


@pytest.fixture(scope="module")
def worked() -> Worked:
    return work_examples()


def test_k_s_is_the_product_rounded_up_and_clamped() -> None:
    assert k_s_of(0.5, 6) == 3
    for percent in range(5, 101):
        for k in (3, 6, 12, 100):
            assert k_s_of(percent / 100, k) == min(k, max(2, math.ceil(percent * k / 100)))
    assert [k_s_of(share, 6) for share in (0.0, 0.01, 0.049)] == [6, 6, 6]


def test_three_of_six_become_android(worked: Worked) -> None:
    block = worked.blocks[examples.SIX]
    assert (block.k, block.k_s) == (6, 3)
    assert Counter(block.labels) == {"Samsung Galaxy S6": 3, "Android": 3}
    assert Counter(worked.blocks[examples.BORROWED].labels) == {"Samsung Galaxy S6": 3, "Android": 3}


def test_five_models_fail_without_an_ontology(worked: Worked) -> None:
    assert set(worked.blocks[examples.FIVE_PLAIN].labels) == {None}
    assert set(worked.blocks[examples.FIVE_COMMON].labels) == {"Android"}


def test_the_galaxy_s6_is_generalized_at_low_density_only(worked: Worked) -> None:
    low, high = worked.blocks[examples.LOW], worked.blocks[examples.HIGH]
    assert (low.k, low.k_s, high.k, high.k_s) == (6, 3, 4, 2)
    assert set(low.labels) == {"Samsung"}
    assert Counter(high.labels) == {"Samsung Galaxy S6": 5, "Android": 3}


def test_the_four_phones_share_a_system_but_no_country(worked: Worked) -> None:
    assert worked.common(examples.SAME_SYSTEM, "has OS") == ["Android"]
    assert worked.common(examples.SAME_SYSTEM, "headquarters in") == ["Asia", "East Asia"]
    assert worked.common(examples.SAME_SYSTEM, "is a") == []


def test_every_block_keeps_its_promise(worked: Worked) -> None:
    for block in worked.blocks.values():
        published = [label for label in block.labels if label is not None]
        assert not published or len(published) >= block.k
        assert all(people >= block.k_s for people in Counter(published).values())
