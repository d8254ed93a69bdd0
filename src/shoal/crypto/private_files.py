"""Write small private files atomically, and destroy them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.crypto.safe_open import create_file, is_regular, open_existing, open_or_create
from shoal.errors import VaultError


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that its names survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_private(path: Path, data: bytes) -> None:
    """Replace a file, owner-only, durable before this returns."""
    with vault_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".tmp")
        with create_file(temporary, private=True) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)


def destroy(path: Path) -> None:
    """Overwrite a file, then remove it. A disk that writes elsewhere may still have the old bytes."""
    with vault_errors(path):
        if not is_regular(path):
            return
        size = path.stat().st_size
        with open_existing(path, private=True) as file:
            file.write(os.urandom(size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(path.parent)


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Lock a file; raise VaultError if another process has locked it."""
    with vault_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open_or_create(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise VaultError(f"{path}: another process is at work here; wait for it") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def vault_errors(path: Path) -> Iterator[None]:
    """Turn any OSError into a VaultError: one sentence with the path."""
    try:
        yield
    except OSError as error:
        raise VaultError(f"{path}: cannot be used ({error.strerror}); check the folder and the disk") from None
