"""Secrets: derived keys, files, and that they never show."""

from __future__ import annotations

import hashlib
import hmac
import logging
import stat
import traceback
from pathlib import Path

import pytest

from shoal.crypto import keys
from shoal.crypto.keys import (
    Secret,
    as_secret,
    default_secret,
    is_ours_alone,
    key_warning,
    new_secret,
    secret_from_environment,
    secret_from_file,
    warning_about,
)
from shoal.errors import VaultError

VALUE = b"correct horse battery staple"


def test_subkeys_are_hmac_of_purpose_and_context():
    expected = hmac.digest(VALUE, b"seal\x00context", hashlib.sha256)
    assert Secret(VALUE).subkey("seal", b"context") == expected


def test_subkeys_of_two_purposes_differ():
    secret = Secret(VALUE)
    made = {
        secret.subkey(purpose, context) for purpose in ("seal", "nonce", "seal2") for context in (b"", b"2", b"\x00")
    }
    assert len(made) == 9
    assert secret.subkey("seal") == Secret(bytes(bytearray(VALUE))).subkey("seal")


def test_a_secret_shows_itself_nowhere(caplog):
    secret = Secret(VALUE)
    logging.getLogger("test").warning("secret %s %r", secret, {"key": secret})
    try:
        raise VaultError(f"with {secret!r}")
    except VaultError as error:
        said = "".join(traceback.format_exception(error))
    shown = f"{secret} {secret!r} {[secret]} {said} {caplog.text}"
    assert "horse" not in shown
    assert VALUE.hex() not in shown
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("length", [0, 1, 15])
def test_a_short_secret_is_refused(length):
    with pytest.raises(VaultError, match="fewer than 16 bytes") as caught:
        Secret(b"s" * length)
    assert "sss" not in str(caught.value)
    assert Secret(b"s" * 16).same_as(Secret(b"s" * 16))


def test_same_as():
    assert not Secret(VALUE).same_as(Secret(VALUE + b"!"))
    assert not new_secret().same_as(new_secret())


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_file_is_read_without_its_line_end(tmp_path, end):
    (tmp_path / "key").write_bytes(VALUE + end)
    assert secret_from_file(tmp_path / "key").same_as(Secret(VALUE))


@pytest.mark.parametrize("content", [b"", b"\n", b"fifteen bytes!!\n"])
def test_a_short_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(VaultError, match="key: the key has fewer than 16 bytes") as caught:
        secret_from_file(tmp_path / "key")
    assert "fifteen" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(VaultError, match="cannot be read"):
        secret_from_file(tmp_path / "nothing")


def test_the_file_named_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(keys.KEY_FILE_VARIABLE, raising=False)
    assert secret_from_environment() is None
    assert default_secret().same_as(default_secret())
    assert as_secret(None).same_as(default_secret())
    (tmp_path / "key").write_bytes(VALUE)
    monkeypatch.setenv(keys.KEY_FILE_VARIABLE, str(tmp_path / "key"))
    assert as_secret(None).same_as(Secret(VALUE))


def test_as_secret_takes_bytes_and_secrets():
    secret = Secret(VALUE)
    assert as_secret(secret) is secret
    assert as_secret(VALUE).same_as(secret)
    with pytest.raises(VaultError):
        as_secret(b"short")


def test_a_written_secret_is_the_owners_alone(tmp_path):
    secret = new_secret()
    secret.write_to(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert secret_from_file(tmp_path / "key").same_as(secret)


def test_a_secret_is_not_written_over_another(tmp_path):
    (tmp_path / "key").write_bytes(VALUE)
    with pytest.raises(VaultError, match="cannot be written"):
        new_secret().write_to(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == VALUE


# --- who can read a key


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604])
def test_a_key_that_others_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(VALUE)
    path.chmod(mode)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))
    expected = f"{path}: this key can be read or changed by others (mode {mode:04o}); run: chmod 600 {path}"
    assert key_warning() == warning_about(path) == expected
    assert not is_ours_alone(path)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_key_for_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(VALUE)
    path.chmod(mode)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))
    assert key_warning() is None
    assert is_ours_alone(path)
    (tmp_path / "link").symlink_to(path)
    assert not is_ours_alone(tmp_path / "link")
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    assert not is_ours_alone(path)


def test_no_key_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    assert key_warning() is None
    assert warning_about(tmp_path / "none") is None, "reading it says what is wrong"


def test_a_key_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "victim")
    with pytest.raises(VaultError, match="symbolic link"):
        new_secret().write_to(tmp_path / "key")
    assert not (tmp_path / "victim").exists()
