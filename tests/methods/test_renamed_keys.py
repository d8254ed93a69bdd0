"""A parameter or a value that was renamed is refused with a sentence that has its new name."""

from __future__ import annotations

import pytest

import shoal
from shoal.errors import PolicyError
from shoal.methods.renamed_keys import renamed, renamed_word

SCHEMA = shoal.Schema(person="id", quasi=[shoal.Numeric("age", low=0, high=100)])


@pytest.mark.parametrize(
    ("value", "saying"),
    [
        ("strict", 'is called missing now; write missing = "covered"'),
        ("common", 'is called missing now; write missing = "hidden"'),
        ("paper", 'is called missing now; write missing = "paper"'),
        (3, "is called missing now"),
    ],
)
def test_a_renamed_argument(value, saying):
    with pytest.raises(TypeError) as caught:
        shoal.Fads(SCHEMA, k=2, deadline=3, nulls=value)
    assert str(caught.value) == f"Fads: nulls {saying}"


def test_a_renamed_value():
    with pytest.raises(PolicyError) as caught:
        shoal.Fads(SCHEMA, k=2, deadline=3, missing="strict")
    assert caught.value.problems == ('missing: "strict" is called "covered" now; write missing = "covered"',)


def test_other_keys_and_words_are_not_renamed():
    assert renamed("nulls", "strict", ["k", "nulls"]) is None
    assert renamed("k", "strict", ["missing"]) is None
    assert renamed_word("missing", "covered") is None
    assert renamed_word("residual", "strict") is None
    assert renamed_word("missing", ["strict"]) is None
