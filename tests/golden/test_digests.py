"""Everything comes out as it always did; a failure names the case and the part of it that differs."""

from __future__ import annotations

import zlib

import pytest

from tests.golden.comparison import explains, unusable
from tests.golden.digests import ENTRIES, REASONS, recorded
from tests.reference.effort import IS_COMPILED

RECORDED = recorded()
SLOW = {"sets that are unique", "run demo", "run example-tuples", "run example-measurements"}
"""Cases that take seconds where kernels run as plain Python."""
SHARE = 3
"""One case in so many is compared by default, all of them by `make digests` and in test-all."""


def marks_of(name):
    """Where coverage is measured, as plain Python, every case counts; those of parameters add nothing to it."""
    is_in_the_share = zlib.crc32(name.encode()) % SHARE == 0
    is_default = is_in_the_share or not (IS_COMPILED or name.startswith("parameters"))
    return [*([pytest.mark.compiled] if name in SLOW else []), *([] if is_default else [pytest.mark.exhaustive])]


def test_every_case_is_recorded():
    assert sorted(ENTRIES) == list(RECORDED)


def test_recorded_outputs_agree_whichever_way_they_were_made():
    assert unusable(RECORDED) == []


def test_every_recorded_change_has_its_reason():
    text = REASONS.read_text()
    assert explains(text, RECORDED), f"record changes of digests with the sentence that says why: {REASONS.name}"
    assert not explains(text, {**RECORDED, "sets local": {}})


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in ENTRIES])
def test_the_output_is_unchanged(name):
    assert ENTRIES[name]() == RECORDED[name]
