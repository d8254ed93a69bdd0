"""Sealed bytes cannot be read, altered, cut or exchanged without the key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.crypto import sealing
from shoal.crypto.keys import Secret
from shoal.crypto.sealing import SealBroken, WrongKey, is_sealed, seal, unseal
from tests.reference.effort import tries

SECRET, OTHER = Secret(bytes(16)), Secret(bytes(15) + b"\x01")
DATA = b"ann visited a.example"


@given(st.binary(max_size=200), st.text(max_size=5))
@tries(50)
def test_what_was_sealed_opens(data, purpose):
    sealed = seal(SECRET, data, purpose=purpose)
    assert is_sealed(sealed)
    assert unseal(SECRET, sealed, purpose=purpose) == data


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(sealing, "_PIECE", 8)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 17, 100])
def test_in_several_pieces(small_pieces, size):
    data = bytes(range(size))
    sealed = seal(SECRET, data, purpose="p")
    assert len(sealed) == 38 + size + 16 * max(1, -(-size // 8))
    assert unseal(SECRET, sealed, purpose="p") == data


def test_equal_content_gives_equal_bytes_and_other_content_another_nonce():
    assert seal(SECRET, DATA, purpose="p") == seal(SECRET, DATA, purpose="p")
    sealed = [seal(SECRET, DATA, purpose="p"), seal(SECRET, DATA + b"!", purpose="p"), seal(SECRET, DATA, purpose="q")]
    assert len({one[18:30] for one in sealed}) == 3
    assert all(b"ann" not in one and b"example" not in one for one in sealed)


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_flipped_bit_anywhere(in_pieces, monkeypatch):
    if in_pieces:
        monkeypatch.setattr(sealing, "_PIECE", 8)
    sealed = seal(SECRET, DATA, purpose="p")
    for at in range(len(sealed)):
        altered = bytearray(sealed)
        altered[at] ^= 0x10
        with pytest.raises((SealBroken, WrongKey)):
            unseal(SECRET, bytes(altered), purpose="p")


def test_cut_off_or_added_to_anywhere(small_pieces):
    sealed = seal(SECRET, DATA, purpose="p")
    for end in range(len(sealed)):
        with pytest.raises(SealBroken):
            unseal(SECRET, sealed[:end], purpose="p")
    with pytest.raises(SealBroken):
        unseal(SECRET, sealed + b"\x00", purpose="p")


def test_pieces_cannot_change_places(small_pieces):
    sealed = seal(SECRET, bytes(16), purpose="p")
    head, first, second = sealed[:38], sealed[38:62], sealed[62:]
    with pytest.raises(SealBroken):
        unseal(SECRET, head + second + first, purpose="p")


def test_another_key_and_another_purpose():
    sealed = seal(SECRET, DATA, purpose="snapshot")
    with pytest.raises(WrongKey, match="another key"):
        unseal(OTHER, sealed, purpose="snapshot")
    with pytest.raises(SealBroken, match="another purpose"):
        unseal(SECRET, sealed, purpose="trace")


def test_what_is_not_sealed():
    assert not is_sealed(b"ts,user,site\n")
    with pytest.raises(SealBroken, match="not sealed"):
        unseal(SECRET, DATA * 10, purpose="p")
