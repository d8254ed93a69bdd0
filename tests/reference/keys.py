"""Table keys made by hand: few, wide, or chosen so that they all want the same slots."""

from __future__ import annotations

Key = tuple[int, int]
LAST_SLOT, FIRST_SLOT = 0xFFFF_FFFF, 0


def signed(word: int) -> int:
    """64 bits as NumPy's int64 reads them."""
    word &= (1 << 64) - 1
    return word - (1 << 64) if word >> 63 else word


def word_with_tag(tag: int, number: int) -> int:
    """The number-th word whose two halves fold to the tag."""
    return signed((number << 32) | (number ^ tag))


def attribute_with_tag(tag: int, number: int) -> Key:
    """An attribute's key with a tag of choice."""
    return word_with_tag(tag, number), number


def person_with_tag(tag: int, number: int, value: Key) -> Key:
    """A person's key whose pair with this attribute has a tag of choice."""
    return signed(word_with_tag(tag, number) - value[0]), number
