"""Who uses a checkpoint folder: one process at a time, and the last one to take it over.

A lock keeps a second process out. If the first one is frozen, or runs on a machine that shares the disk and is gone,
`--take-over` starts a new **generation**. A process compares the generation with the one it started in, before each
commit and again between the checkpoint and the moment anything becomes visible. If another process has taken over, it
stops.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import create_file, open_or_create, open_to_read
from shoal.errors import CheckpointError
from shoal.sinks.durable import output_error

LOCK_NAME: Final = "lock"
GENERATION_NAME: Final = "generation"


class Ownership:
    """The use of one folder by this process.

    Parameters
    ----------
    take_over
        Use the folder although another process does; that one notices it and stops.
    """

    def __init__(self, folder: Path, *, take_over: bool = False) -> None:
        self._folder = folder
        with output_error(folder / LOCK_NAME):
            handle = open_or_create(folder / LOCK_NAME)
        self._lock = os.fdopen(handle, "rb")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if not take_over:
                self._lock.close()
                raise CheckpointError(
                    f"{folder}: another run is using this checkpoint folder; wait for it, name another folder, or "
                    "start with --take-over if that run is stuck or on a machine that is gone"
                ) from None
        if take_over:
            self._start_generation()
        self._generation = self._current()

    def _start_generation(self) -> None:
        path = self._folder / GENERATION_NAME
        temporary = path.with_name(f"{GENERATION_NAME}-{secrets.token_hex(4)}.tmp")
        with output_error(path):
            with create_file(temporary, private=True) as file:
                file.write(secrets.token_hex(16).encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(self._folder)

    def _current(self) -> bytes:
        try:
            with open_to_read(self._folder / GENERATION_NAME) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise CheckpointError(
                f"{self._folder / GENERATION_NAME}: cannot be read ({error.strerror}); check the disk, and run again"
            ) from None

    def require(self) -> None:
        """Raise CheckpointError if another process has taken over."""
        if self._current() != self._generation:
            raise CheckpointError(
                f"{self._folder}: another process has taken over these checkpoints; this one stops, and the other one "
                "continues from the last checkpoint"
            )

    def release(self) -> None:
        """Unlock the folder for another run."""
        self._lock.close()
