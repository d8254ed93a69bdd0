"""Which records a micro-batch reads: recorded before any of them is read, so that it reads the same ones again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from shoal.crypto.private_files import replace_private
from shoal.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of micro-batches, in the folder of the state."""

    folder: Path

    def read(self, batch: int) -> dict[str, Any] | None:
        """The plan of a micro-batch; None if it was not planned yet."""
        path = self.path(batch)
        try:
            plan: dict[str, Any] = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise CheckpointError(
                f"{path}: is damaged; restore the folder from a backup, or start with a new one"
            ) from None
        return plan

    def write(self, batch: int, plan: dict[str, Any]) -> None:
        """Record the plan of a micro-batch, and forget those before it, which are done."""
        replace_private(self.path(batch), orjson.dumps(plan))
        for path in self.folder.glob("plan-*.json"):
            if path.name < self.path(batch).name:
                path.unlink(missing_ok=True)

    def path(self, batch: int) -> Path:
        """The file of a plan."""
        return self.folder / f"plan-{batch:09d}.json"
