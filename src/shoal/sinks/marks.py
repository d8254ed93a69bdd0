"""What a checkpoint records of a file: its length and the digest of its bytes, so that a resumed run can check it.

The digest costs processor time while rows are written (SHA-256: about a second for a gigabyte), and a resumed run reads
all finished files back. Runs without a checkpoint do neither.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from shoal.crypto.safe_open import is_regular, open_to_read
from shoal.errors import CheckpointError

_CHUNK: Final = 1 << 20
_DIGITS: Final = 32
ADVICE: Final = "restore the file, or start over with a new checkpoint folder"


@dataclass(frozen=True, slots=True)
class Mark:
    """A committed length, and the digest of the bytes up to it (None if it was not computed)."""

    length: int
    digest: str | None = None


class Digest:
    """A digest that grows with a file."""

    def __init__(self) -> None:
        self._state: Any = hashlib.sha256()

    def update(self, data: Any) -> None:
        """Add bytes."""
        self._state.update(data)

    def text(self) -> str:
        """The digest of all bytes so far."""
        return str(self._state.hexdigest())[:_DIGITS]


def verified(file: BinaryIO, mark: Mark, path: Path) -> Digest:
    """Read the marked bytes of an open file; CheckpointError if they differ from the checkpoint's."""
    digest, left = Digest(), mark.length
    while left and (data := file.read(min(left, _CHUNK))):
        digest.update(data)
        left -= len(data)
    if left:
        raise wrong_length(path, mark.length - left, mark)
    if mark.digest is not None and digest.text() != mark.digest:
        raise CheckpointError(f"{path}: was altered since the checkpoint was written (its digest differs); {ADVICE}")
    return digest


def wrong_length(path: Path, length: int, mark: Mark) -> CheckpointError:
    """The error for a file that is shorter or longer than it was."""
    return CheckpointError(f"{path}: has {length} bytes where the checkpoint has {mark.length}; {ADVICE}")


def verify_whole(path: Path, mark: Mark) -> None:
    """Check that a finished file exists with exactly the marked bytes."""
    if not is_regular(path):
        raise CheckpointError(f"{path}: is missing but the checkpoint refers to it; {ADVICE}")
    with open_to_read(path) as file:
        length = path.stat().st_size
        if length != mark.length:
            raise wrong_length(path, length, mark)
        verified(file, mark, path)
