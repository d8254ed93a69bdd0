"""Ranks of texts, against a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from shoal.kernels import text_ranks
from shoal.methods.text_ranks import TextRanks


def read(ranks, column):
    raws, values = np.empty((2, len(column)))
    refused = ranks.read_into(column, raws, values)
    assert np.array_equal(raws, values, equal_nan=True)
    return raws, refused


def check(labels, column):
    """Each text has the rank that a dictionary says, and exactly unknown texts are refused."""
    known = {label: rank for rank, label in enumerate(labels)}
    raws, refused = read(TextRanks(known), column)
    for text, rank, is_refused in zip(column.to_pylist(), raws.tolist(), refused.tolist(), strict=True):
        assert is_refused == (text is not None and text not in known)
        assert rank == known[text] if text in known else rank != rank  # noqa: PLR0124 - NaN


@pytest.mark.parametrize("seed", range(20))
def test_like_a_dictionary(seed):
    """Texts of all sizes around whole words, many of which have the same first and last bytes."""
    draw = random.Random(seed)
    middles = ["".join(draw.choices("ab", k=draw.randrange(30))) for _ in range(300)]
    texts = [draw.choice(["", "abcdefgh", "x"]) + middle + draw.choice(["", "z" * 8]) for middle in middles]
    labels = list(dict.fromkeys(texts))[: draw.choice([0, 1, 7, 150])]
    given = [draw.choice([*texts, *labels, None]) for _ in range(400)]
    column = pa.array(given, type=pa.string())
    for part in (column, column.slice(3), column.slice(7, 1), column.slice(0, 0)):
        check(labels, part)


@pytest.mark.parametrize("text", ["", "a", "1234567", "12345678", "123456789", "1234567890abcdef", "1234567890abcdefg"])
def test_a_text_that_is_a_whole_buffer(text):
    """No byte before or after it can be read."""
    for labels in ([text], [text + "a"], ["b" + text], [text[:-1] + "?"], ["x", text, "y"]):
        check(list(dict.fromkeys(labels)), pa.array([text]))


def test_long_texts_with_the_same_ends_are_different():
    middles = ["a" * 24, "a" * 23 + "b", "b" + "a" * 23]
    labels = [f"12345678{middle}abcdefgh" for middle in middles]
    check(labels[:2], pa.array(labels))


def test_texts_with_the_same_hash_are_compared():
    """All labels in one chain, and texts that end in it."""
    table = np.zeros((8, text_ranks.FIELDS), dtype=np.uint64)
    labels = [f"{name:*^24}" for name in ("one", "two", "three")]
    made = TextRanks({label: rank for rank, label in enumerate(labels)})
    filled = made._table[made._table[:, text_ranks.RANK] > 0]
    table[: len(filled)] = filled
    table[3:] = filled[0]  # full: the search ends after one round
    made._table = table
    raws, refused = read(made, pa.array([*labels, "four", f"{'four':*^24}"]))
    assert refused.tolist()[3:] == [True, True]
    assert set(raws[:3]) == {0.0, 1.0, 2.0}


def test_a_value_hidden_under_a_null_is_missing():
    hidden = pa.StringArray.from_buffers(
        2, pa.array(["a", "b"]).buffers()[1], pa.py_buffer(b"ab"), pa.py_buffer(b"\x02"), 1
    )
    raws, refused = read(TextRanks({"a": 0, "b": 1}), hidden)
    assert np.isnan(raws).tolist() == [True, False]
    assert not refused.any()
