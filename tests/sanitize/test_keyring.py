"""Working keys open under the master key alone, and change hands in one step."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shoal.crypto.keys import Secret
from shoal.crypto.private_files import destroy, only_one, replace_private
from shoal.crypto.sealing import seal
from shoal.errors import VaultError
from shoal.sanitize.keyring import (
    destroy_run_key,
    make_run_key,
    new_keyring,
    read_keyring,
    read_run_key,
    rotate_keyring,
    run_key_path,
    write_keyring,
)  # fmt: skip
from shoal.sanitize.pii import Hasher, SealedHashes

OLD, NEW = Secret(b"the old key of sixteen"), Secret(b"the new key of sixteen")


def test_what_is_written_is_read(tmp_path):
    ring, path = new_keyring(), tmp_path / "keys"
    write_keyring(path, ring, OLD)
    found = read_keyring(path, OLD)
    assert found.name == ring.name
    assert found.key("a") == ring.key("a") != ring.key("b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(VaultError, match="keys: sealed under another key"):
        read_keyring(path, NEW)


def test_rotation_keeps_the_working_keys(tmp_path):
    ring, path = new_keyring(), tmp_path / "keys"
    write_keyring(path, ring, OLD)
    sealed = ring.seal(b"content", "note")
    rotate_keyring(path, OLD, NEW)
    assert read_keyring(path, NEW).unseal(sealed, "note", name="x") == b"content"
    with pytest.raises(VaultError, match="another key"):
        read_keyring(path, OLD)
    with pytest.raises(VaultError, match="another key"):
        rotate_keyring(path, OLD, NEW)
    assert list(tmp_path.iterdir()) == [path]


def test_torn_missing_and_newer_keys(tmp_path):
    path = tmp_path / "keys"
    with pytest.raises(VaultError, match="cannot be read"):
        read_keyring(path, OLD)
    write_keyring(path, new_keyring(), OLD)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(VaultError, match="its end is lost"):
        read_keyring(path, OLD)
    path.write_bytes(seal(OLD, b'{"version": 2}', purpose="keyring"))
    with pytest.raises(VaultError, match="made by a newer shoal"):
        read_keyring(path, OLD)


def test_the_key_of_a_run_goes_for_good(tmp_path):
    ring = new_keyring()
    path = run_key_path(tmp_path, "sealed", "1f")
    secret = make_run_key(path, ring)
    assert read_run_key(path, ring).same_as(secret)
    with pytest.raises(VaultError, match="another key"):
        read_run_key(path, new_keyring())
    with path.open("rb") as held:
        before = held.read()
        destroy_run_key(path)
        held.seek(0)
        assert held.read() != before  # overwritten before its name went
    assert not path.exists()
    destroy(path)  # once more does no harm
    with pytest.raises(VaultError, match="the key of this run is missing"):
        read_run_key(path, ring)


def test_a_lock_is_held_once(tmp_path):
    with only_one(tmp_path / "lock"), pytest.raises(VaultError, match="another process"), only_one(tmp_path / "lock"):
        pass
    with only_one(tmp_path / "lock"):
        pass


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(VaultError, match="cannot be used"):
        replace_private(tmp_path / "file" / "below", b"")


# ---- hashes


def hashed(ring, *columns):
    return Hasher(ring, "pii").hashes([pa.array(column) for column in columns])


def test_a_hash_is_of_all_columns_and_no_others_give_it():
    ring = new_keyring()
    numbers, hashes = hashed(ring, ["a", "ab", "a", None, "", "1:a", "a"], ["bc", "c", None, "a", "a", "x", "bc"])
    assert len(hashes) == 6
    assert numbers[0] == numbers[6]
    again, same = hashed(ring, ["ab"], ["c"])
    assert np.array_equal(same[again[0]], hashes[numbers[1]])
    assert not np.array_equal(hashed(new_keyring(), ["ab"], ["c"])[1], same)


def test_references_tell_nothing_of_hashes():
    ring = new_keyring()
    _, hashes = hashed(ring, ["a", "b"])
    made = Hasher(ring, "pii").references(hashes)
    assert made.shape == (2, 16)
    assert not np.array_equal(made, Hasher(ring, "person").references(hashes))


def test_sealed_hashes_are_added_once_and_read_again(tmp_path):
    ring, path = new_keyring(), tmp_path / "sealed"
    _, first = hashed(ring, ["a", "b"])
    _, second = hashed(ring, ["b", "c"])
    kept = SealedHashes(path, ring)
    assert (len(kept.add(first)), len(kept.add(second)), len(kept.add(second))) == (2, 1, 0)
    found = SealedHashes(path, ring)
    assert len(found) == 3
    assert {row.tobytes() for row in found.hashes} == {row.tobytes() for row in (*first, *second)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(row.tobytes() in path.read_bytes() for row in first)
    with pytest.raises(VaultError, match="another key"):
        SealedHashes(path, new_keyring())


@pytest.mark.parametrize("lost", [1, 20, 90])
def test_a_torn_end_is_dropped(tmp_path, lost):
    ring, path = new_keyring(), tmp_path / "sealed"
    _, first = hashed(ring, ["a", "b"])
    _, second = hashed(ring, ["c"])
    kept = SealedHashes(path, ring)
    kept.add(first)
    kept.add(second)
    path.write_bytes(path.read_bytes()[:-lost])
    found = SealedHashes(path, ring)
    assert len(found) == 2
    assert len(found.add(second)) == 1
    assert len(SealedHashes(path, ring)) == 3


def test_something_else_than_sealed_hashes(tmp_path):
    path: Path = tmp_path / "sealed"
    path.write_bytes(b"something else entirely")
    with pytest.raises(VaultError, match="not a file of sealed hashes"):
        SealedHashes(path, new_keyring())
    path.write_bytes(b"")
    assert len(SealedHashes(path, new_keyring())) == 0
