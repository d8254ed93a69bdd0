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
SHORTEST: Final = 16
_GENERATED: Final = 32
_FOR_OTHERS: Final = 0o077


class Secret:
    """Secret bytes that do not show themselves in a log, a traceback or a repr."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        if len(value) < SHORTEST:
            raise VaultError(f"the key has fewer than {SHORTEST} bytes; make one with: openssl rand -hex 32")
        self._value = bytes(value)

    def __repr__(self) -> str:
        return "Secret(…)"

    def subkey(self, purpose: str, context: bytes = b"") -> bytes:
        """Derive 32 bytes for one purpose; keys of two purposes tell nothing of each other."""
        return hmac.digest(self._value, purpose.encode() + b"\x00" + context, hashlib.sha256)

    def same_as(self, other: Secret) -> bool:
        """Compare without telling by the time it takes where they differ."""
        return hmac.compare_digest(self._value, other._value)

    def write_to(self, path: Path) -> None:
        """Keep the secret in a new file only its owner can read, durable before this returns."""
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
    """Read a secret: all bytes of the file but a line end after them."""
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
    """The secret in the file named by SHOAL_KEY_FILE; None where the variable is not set."""
    path = os.environ.get(KEY_FILE_VARIABLE)
    return secret_from_file(path) if path else None


def warning_about(path: str | Path) -> str | None:
    """A sentence where a key file can be read by others than its owner; None where all is well."""
    try:
        mode = stat.S_IMODE(Path(path).stat().st_mode)
    except OSError:
        return None  # reading it will say what is wrong
    if not mode & _FOR_OTHERS:
        return None
    return f"{path}: this key can be read or changed by others (mode {mode:04o}); run: chmod 600 {path}"


def key_warning() -> str | None:
    """A sentence where the key of SHOAL_KEY_FILE can be read by others; None where all is well or none is set."""
    path = os.environ.get(KEY_FILE_VARIABLE)
    return warning_about(path) if path else None


def is_ours_alone(path: Path) -> bool:
    """Whether a file is a regular one, belongs to this user, and nobody else can read or change it."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _FOR_OTHERS


def new_secret() -> Secret:
    """A fresh random secret: hexadecimal text, so that a file of it reads back as it is."""
    return Secret(secrets.token_hex(_GENERATED).encode())


@lru_cache(maxsize=1)
def _secret_of_this_process() -> Secret:
    return new_secret()


def default_secret() -> Secret:
    """The secret of SHOAL_KEY_FILE, else one made up for this process and gone with it."""
    return secret_from_environment() or _secret_of_this_process()


def as_secret(key: Secret | bytes | None) -> Secret:
    """A secret given by a caller, or the default one."""
    if key is None:
        return default_secret()
    if not isinstance(key, Secret | bytes | bytearray):
        raise PolicyError("key: must be bytes, at least 16 of them; leave it out to use SHOAL_KEY_FILE")
    return key if isinstance(key, Secret) else Secret(key)
