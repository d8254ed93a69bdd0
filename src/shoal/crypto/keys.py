"""One secret, and the separate keys derived from it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from functools import lru_cache
from pathlib import Path
from typing import Final

from shoal.crypto.safe_open import create_file
from shoal.errors import PolicyError, VaultError

KEY_FILE_VARIABLE: Final = "SHOAL_KEY_FILE"
OLD_KEY_FILE_VARIABLE: Final = "SHOAL_OLD_KEY_FILE"
SHORTEST: Final = 16
_GENERATED: Final = 32
_FOR_OTHERS: Final = 0o077


class Secret:
    """Secret bytes that are not shown in a log, a traceback or a repr."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        if len(value) < SHORTEST:
            raise VaultError(f"the key has fewer than {SHORTEST} bytes; make one with: openssl rand -hex 32")
        self._value = bytes(value)

    def __repr__(self) -> str:
        return "Secret(…)"

    def subkey(self, purpose: str, context: bytes = b"") -> bytes:
        """Derive 32 bytes for one purpose; keys of different purposes are independent."""
        return hmac.digest(self._value, purpose.encode() + b"\x00" + context, hashlib.sha256)

    def same_as(self, other: Secret) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(self._value, other._value)

    def write_to(self, path: Path) -> None:
        """Write the secret to a new file that only its owner can read, durable before this returns."""
        try:
            with create_file(path, private=True, replace=False) as file:
                file.write(self._value + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise VaultError(
                f"{path}: the key cannot be written ({error.strerror}); make room, or check the folder"
            ) from None


def secret_from_file(path: str | Path) -> Secret:
    """Read a secret: all bytes of the file except a line end after them."""
    try:
        value = Path(path).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise VaultError(
            f"{path}: the key file cannot be read ({error.strerror}); check the path, or {KEY_FILE_VARIABLE}"
        ) from None
    if len(value) < SHORTEST:
        raise VaultError(f"{path}: the key has fewer than {SHORTEST} bytes; make one with: openssl rand -hex 32")
    return Secret(value)


def secret_from_environment() -> Secret | None:
    """Return the secret in the file named by SHOAL_KEY_FILE; None if the variable is not set."""
    path = os.environ.get(KEY_FILE_VARIABLE)
    return secret_from_file(path) if path else None


def old_secret_from_environment() -> Secret | None:
    """Return the secret in the file named by SHOAL_OLD_KEY_FILE, which opens checkpoints made with an earlier key."""
    path = os.environ.get(OLD_KEY_FILE_VARIABLE)
    return secret_from_file(path) if path else None


def warning_about(path: str | Path) -> str | None:
    """Return a warning if others than the owner can read or change a key file; else None."""
    try:
        mode = stat.S_IMODE(Path(path).stat().st_mode)
    except OSError:
        return None  # reading it reports the problem
    if not mode & _FOR_OTHERS:
        return None
    return f"{path}: this key can be read or changed by others (mode {mode:04o}); run: chmod 600 {path}"


def key_warning() -> str | None:
    """Return a warning if others can read or change the key of SHOAL_KEY_FILE; None if not, or if none is set."""
    path = os.environ.get(KEY_FILE_VARIABLE)
    return warning_about(path) if path else None


def is_ours_alone(path: Path) -> bool:
    """Return whether a file is regular, belongs to this user, and no other user can read or change it."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _FOR_OTHERS


def new_secret() -> Secret:
    """Return a new random secret: hexadecimal text, so that a file of it reads back unchanged."""
    return Secret(secrets.token_hex(_GENERATED).encode())


@lru_cache(maxsize=1)
def _secret_of_this_process() -> Secret:
    return new_secret()


def default_secret() -> Secret:
    """Return the secret of SHOAL_KEY_FILE, else a random one of this process."""
    return secret_from_environment() or _secret_of_this_process()


def as_secret(key: Secret | bytes | None) -> Secret:
    """Return a caller's secret, or the default one."""
    if key is None:
        return default_secret()
    if not isinstance(key, Secret | bytes | bytearray):
        raise PolicyError("key: must be bytes, at least 16 of them; leave it out to use SHOAL_KEY_FILE")
    return key if isinstance(key, Secret) else Secret(key)
