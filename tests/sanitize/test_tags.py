"""Tags prove themselves under the key and look random without it."""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from shoal.sanitize.tags import Tags, as_blocks, one_way

IDS = as_blocks(bytes(range(256)) * 4)


def test_a_decoys_tag_is_the_cmac_of_its_id():
    for number in range(20):
        key = bytes([number]) * 32
        made = Tags(key, b"r" * 32).of_decoys(IDS)
        for row, tag in zip(IDS[:4], made, strict=False):
            peer = CMAC(AES(key))
            peer.update(row.tobytes())
            assert peer.finalize() == tag.tobytes()


def test_each_kind_proves_itself_and_not_the_other():
    tags = Tags(b"d" * 32, b"r" * 32)
    arrivals = np.arange(len(IDS)) * 10**9
    real, decoys = tags.of_real(IDS, arrivals), tags.of_decoys(IDS)
    assert tags.are_decoys(IDS, decoys).all()
    assert not tags.are_decoys(IDS, real).any()
    is_real, found = tags.read_real(IDS, real)
    assert is_real.all()
    assert np.array_equal(found, arrivals)
    assert not tags.read_real(IDS, decoys)[0].any()


def test_a_tag_holds_for_its_row_and_its_keys_alone():
    tags, others = Tags(b"d" * 32, b"r" * 32), Tags(b"x" * 32, b"y" * 32)
    real, decoys = tags.of_real(IDS, np.arange(len(IDS))), tags.of_decoys(IDS)
    moved = np.roll(IDS, 1, axis=0)
    assert not tags.read_real(moved, real)[0].any()
    assert not tags.are_decoys(moved, decoys).any()
    assert not others.read_real(IDS, real)[0].any()
    assert not others.are_decoys(IDS, decoys).any()


def test_bits_of_both_kinds_are_even():
    """Without the key, tags of real records and of decoys are coins alike."""
    ids = as_blocks(os.urandom(16 * 20_000))
    tags = Tags(os.urandom(32), os.urandom(32))
    for made in (tags.of_real(ids, np.arange(len(ids))), tags.of_decoys(ids)):
        share = np.unpackbits(made, axis=1).mean(axis=0)
        assert np.abs(share - 0.5).max() < 0.02
        assert len(np.unique(made, axis=0)) == len(ids)


def test_one_way_depends_on_its_key():
    assert not np.array_equal(one_way(b"a" * 32, IDS), one_way(b"b" * 32, IDS))
    assert one_way(b"a" * 32, IDS[:0]).shape == (0, 16)
