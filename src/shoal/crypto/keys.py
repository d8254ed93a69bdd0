"""One secret, and the separate keys derived from it.

A key file may name further keys, each with the time from which it counts: pseudonyms of epochs that start then, or
later, are made with it. Everything else (sealed files, tables in memory) stays with the first key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from shoal.crypto.safe_open import create_file
from shoal.errors import PolicyError, VaultError

KEY_FILE_VARIABLE: Final = "SHOAL_KEY_FILE"
OLD_KEY_FILE_VARIABLE: Final = "SHOAL_OLD_KEY_FILE"
SHORTEST: Final = 16
_GENERATED: Final = 32
_FOR_OTHERS: Final = 0o077
_SEVERAL: Final = b"shoal-keys"
"""The first line of a file with several keys."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LaterKey(NamedTuple):
    """A key that counts from a time (ns since 1970) on."""

    start_ns: int
    secret: Secret


class Secret:
    """Secret bytes that are not shown in a log, a traceback or a repr.

    Parameters
    ----------
    later
        Keys that replace this one for pseudonyms, in the order of their times.
    """

    __slots__ = ("_value", "later")

    def __init__(self, value: bytes, later: tuple[LaterKey, ...] = ()) -> None:
        if len(value) < SHORTEST:
            raise VaultError(f"the key has fewer than {SHORTEST} bytes; make one with: openssl rand -hex 32")
        self._value, self.later = bytes(value), later

    def at(self, time_ns: int) -> Secret:
        """The key that counts at a time."""
        return next((one.secret for one in reversed(self.later) if one.start_ns <= time_ns), self)

    @property
    def mark(self) -> str:
        """What identifies this key, without those after it, and does not reveal it."""
        return self.subkey("mark of a key").hex()[:32]

    @property
    def later_marks(self) -> dict[str, str]:
        """The same for each key after it, by the time (ns, as text) from which it counts."""
        return {str(one.start_ns): one.secret.mark for one in self.later}

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
    """Read a secret: all bytes of the file except a line end after them, or several keys below ``shoal-keys``."""
    try:
        value = Path(path).read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise VaultError(
            f"{path}: the key file cannot be read ({error.strerror}); check the path, or {KEY_FILE_VARIABLE}"
        ) from None
    first, *lines = value.splitlines() or [b""]
    if first.strip() == _SEVERAL:
        return _several(path, lines)
    if len(value) < SHORTEST:
        raise VaultError(f"{path}: the key has fewer than {SHORTEST} bytes; make one with: openssl rand -hex 32")
    return Secret(value)


def _several(path: str | Path, lines: list[bytes]) -> Secret:
    """The keys of a file with several: the first one alone on its line, each other one behind the time it starts at."""
    words = [(number, line.split()) for number, line in enumerate(lines, 2) if line.strip()]
    if not words or len(words[0][1]) != 1:
        raise VaultError(f"{path}: behind the line {_SEVERAL.decode()!r} must be the first key, alone on its line")
    for number, found in words[1:]:
        if len(found) != 2:
            raise VaultError(f"{path}: line {number}: write the time from which the key counts, a space, and the key")
    for number, found in words:
        if len(found[-1]) < SHORTEST:
            raise VaultError(
                f"{path}: line {number}: the key has fewer than {SHORTEST} bytes; use openssl rand -hex 32"
            )
    later = tuple(LaterKey(_start_ns(path, number, time), Secret(value)) for number, (time, value) in words[1:])
    if any(before.start_ns >= after.start_ns for before, after in pairwise(later)):
        raise VaultError(f"{path}: the times of the keys must grow from line to line")
    return Secret(words[0][1][0], later)


def _start_ns(path: str | Path, number: int, text: bytes) -> int:
    try:
        found = datetime.fromisoformat(text.decode())
    except ValueError:
        found = datetime.min
    if found.tzinfo is None:
        raise VaultError(f"{path}: line {number}: is not a time with its zone; write it like 2027-01-01T00:00:00Z")
    return (found - _EPOCH) // timedelta(microseconds=1) * 1_000


def moment(time_ns: int) -> str:
    """A time as it is written in a key file."""
    return (_EPOCH + timedelta(microseconds=time_ns // 1_000)).isoformat().replace("+00:00", "Z")


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
