"""How attacks are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]
"""Called with what is attacked next."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How attacks are run."""

    knows: tuple[str, ...] | None
    targets: int
    seed: int
    progress: Progress
