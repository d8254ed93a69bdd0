"""Named arrays as bytes: the same every time, and nothing but those bytes is read."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.crypto.keys import Secret
from shoal.crypto.snapshots import VERSION, open_state, pack_state, seal_state, unpack_state
from shoal.errors import CheckpointError, VaultError
from shoal.methods.z.z_anonymity import ZAnonymity
from tests.reference.effort import tries

SECRET = Secret(bytes(16))
ARRAYS = {
    "numbers": np.arange(6, dtype=np.int64).reshape(3, 2),
    "nothing": np.empty((0, 4), dtype=np.int64),
    "bytes": np.frombuffer(b"abc", dtype=np.uint8),
    "sliced": np.arange(10, dtype=np.int32)[::3],
}


@given(st.dictionaries(st.text(max_size=4), st.integers(-(2**70), 2**70), max_size=4))
@tries(30)
def test_what_was_packed_is_read(header):
    state = unpack_state(pack_state(header, ARRAYS))
    assert state.header == header
    assert list(state.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert state.arrays[name].dtype == array.dtype
        assert np.array_equal(state.arrays[name], array)


def test_the_same_bytes_every_time():
    assert pack_state({"a": 1, "b": 2}, ARRAYS) == pack_state({"b": 2, "a": 1}, ARRAYS)
    assert seal_state(SECRET, {"a": 1}, ARRAYS) == seal_state(SECRET, {"a": 1}, ARRAYS)


def test_altered_or_cut_bytes():
    packed = pack_state({"a": 1}, ARRAYS)
    for at in range(len(packed)):
        altered = bytearray(packed)
        altered[at] ^= 1
        with pytest.raises(CheckpointError):
            unpack_state(bytes(altered))
        with pytest.raises(CheckpointError):
            unpack_state(packed[:at])


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_another_version_is_refused(version):
    packed = bytearray(pack_state({}, {})[:-32])
    struct.pack_into("<H", packed, 9, version)
    with pytest.raises(CheckpointError, match=f"format version {version}; .* start without it, or continue with"):
        unpack_state(bytes(packed) + hashlib.sha256(packed).digest())


def test_sealed_states_open_with_their_key_alone():
    sealed = seal_state(SECRET, {"a": 1}, ARRAYS)
    assert open_state(SECRET, sealed).header == {"a": 1}
    with pytest.raises(VaultError):
        open_state(Secret(b"x" * 16), sealed)


# ---- snapshots of anonymizers


def make(key=bytes(16), **settings):
    given_settings = {"z": 2, "window": 60, "person": "user", "time": "ts", "attribute": "site", **settings}
    return ZAnonymity(**given_settings, key=key)


def test_restore_finds_the_method_and_its_parameters():
    z = make(lateness=5, carry=["n"])
    z.push({"ts": 1, "user": "ann", "site": "a", "n": 1})
    again = shoal.restore(z.snapshot(), key=bytes(16))
    assert isinstance(again, ZAnonymity)
    assert again.guarantee == z.guarantee
    assert again.snapshot() == z.snapshot()
    assert again.counts == z.counts
    event = {"ts": 20, "user": "bob", "site": "a", "n": 2}
    assert again.push(event) == z.push(event)


def test_restore_into_other_parameters_is_refused():
    state = make().snapshot()
    with pytest.raises(CheckpointError, match="other parameters"):
        make(z=3).restore(state)


def test_restore_refuses_a_method_it_does_not_have():
    state = seal_state(SECRET, {"method": "made-up"}, {})
    with pytest.raises(CheckpointError, match="made-up"):
        shoal.restore(state, key=bytes(16))
    with pytest.raises(CheckpointError, match="another method"):
        make().restore(seal_state(SECRET, {"method": "made-up", "settings": {}}, {}))


@pytest.mark.parametrize("how", ["another key", "flipped", "cut"])
def test_damaged_snapshots_change_nothing(how):
    z = make(lateness=5)
    z.push({"ts": 1, "user": "ann", "site": "a"})
    before = z.snapshot()
    state = {
        "another key": make(key=b"k" * 16, lateness=5).snapshot(),
        "flipped": before[:60] + bytes([before[60] ^ 1]) + before[61:],
        "cut": before[:-1],
    }[how]
    with pytest.raises(VaultError):
        z.restore(state)
    assert z.snapshot() == before


def test_a_snapshot_holds_nothing_in_clear():
    z = make(lateness=50, carry=["note"])
    z.push({"ts": 1, "user": "ann-the-person", "site": "secret.example", "note": "carried-along"})
    state = z.snapshot()
    assert not any(text in state for text in (b"ann-the", b"secret.ex", b"carried", b"user", b"z-anon"))
