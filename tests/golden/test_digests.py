"""Everything comes out as it always did; a failure names the case and the part of it that differs."""

from __future__ import annotations

import json

import pytest

from tests.golden.digests import ENTRIES, GOLDEN, SLOW

KEPT = json.loads(GOLDEN.read_text())


def test_every_entry_is_kept():
    assert list(ENTRIES) == list(KEPT)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.compiled if name in SLOW else ()) for name in ENTRIES]
)
def test_the_output_is_unchanged(name):
    assert ENTRIES[name]() == KEPT[name]
