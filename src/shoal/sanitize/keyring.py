"""The working keys of a sanitization process, in a file that only the master key opens.

The working keys are made once and never change: people are recognized by them. The master key (SHOAL_KEY_FILE) only
wraps them, so that it can be rotated in one step without sealing anything else again.
"""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shoal.crypto.keys import Secret, new_secret
from shoal.crypto.private_files import destroy, replace_private
from shoal.crypto.sealing import SealBroken, WrongKey, seal, unseal
from shoal.errors import VaultError

_PURPOSE: Final = "keyring"
_VERSION: Final = 1


@dataclass(frozen=True)
class Keyring:
    """The working keys, and a random name for them."""

    name: str
    secret: Secret
    """All working keys are derived from this one."""

    def key(self, purpose: str) -> bytes:
        """Return 32 bytes for one purpose."""
        return self.secret.subkey("sanitize", purpose.encode())

    def sealer(self, purpose: str) -> Secret:
        """Return a separate secret to seal with."""
        return Secret(self.key("seal " + purpose))

    def seal(self, data: bytes, purpose: str) -> bytes:
        """Seal under the working keys."""
        return seal(self.secret, data, purpose=purpose)

    def unseal(self, data: bytes, purpose: str, *, name: object) -> bytes:
        """Open bytes sealed under the working keys; errors begin with ``name``."""
        try:
            return unseal(self.secret, data, purpose=purpose)
        except (SealBroken, WrongKey) as error:
            raise VaultError(f"{name}: {error}") from None


def new_keyring() -> Keyring:
    """Return new working keys."""
    return Keyring(secrets.token_hex(8), new_secret())


def write_keyring(path: Path, ring: Keyring, master: Secret) -> None:
    """Wrap the working keys under a master key, replacing the file."""
    inner = base64.b64encode(_raw(ring.secret)).decode()
    content = json.dumps({"version": _VERSION, "name": ring.name, "secret": inner}).encode()
    replace_private(path, seal(master, content, purpose=_PURPOSE))


def read_keyring(path: Path, master: Secret) -> Keyring:
    """Open the working keys; VaultError under a wrong master key."""
    try:
        content = json.loads(unseal(master, path.read_bytes(), purpose=_PURPOSE))
    except OSError as error:
        raise VaultError(f"{path}: the working keys cannot be read ({error.strerror})") from None
    except (SealBroken, WrongKey) as error:
        raise VaultError(f"{path}: {error}") from None
    if content["version"] != _VERSION:
        raise VaultError(f"{path}: was made by a newer shoal; use that one. Nothing was changed")
    return Keyring(content["name"], Secret(base64.b64decode(content["secret"])))


def rotate_keyring(path: Path, old: Secret, new: Secret) -> None:
    """Wrap the working keys under another master key; the file is replaced atomically."""
    if old.same_as(new):
        raise VaultError("the new key is the old one; make another with: openssl rand -hex 32")
    write_keyring(path, read_keyring(path, old), new)


# ---- keys of runs


def run_key_path(folder: Path, stem: str, run: str) -> Path:
    """Return the path of a run's key."""
    return folder / f"{stem}.run-{run}.key"


def make_run_key(path: Path, ring: Keyring) -> Secret:
    """Make a key for the temporary rows of one run, sealed under the working keys."""
    secret = new_secret()
    replace_private(path, ring.seal(_raw(secret), "run key"))
    return secret


def read_run_key(path: Path, ring: Keyring) -> Secret:
    """Read the key of a run that is not cleared yet."""
    try:
        data = path.read_bytes()
    except OSError:
        raise VaultError(f"{path}: the key of this run is missing; its temporary rows are unreadable") from None
    return Secret(ring.unseal(data, "run key", name=path))


def destroy_run_key(path: Path) -> None:
    """Overwrite and remove the key of a run."""
    destroy(path)


def _raw(secret: Secret) -> bytes:
    return secret._value  # noqa: SLF001 - only this module reads the raw secret
