"""Where the sampled defects have their table, source, tests, records and caches."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.mutants.generate import Defect, find_defects

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Places:
    """A tree with tests/mutants/packages.toml."""

    root: Path

    @cached_property
    def table(self) -> dict[str, Any]:
        """What packages.toml states."""
        return tomllib.loads((self.root / "tests/mutants/packages.toml").read_text())

    @property
    def source(self) -> Path:
        return self.root / self.table["source"]

    @property
    def recorded(self) -> Path:
        return self.root / "tests/mutants/killed.json"

    @property
    def cache(self) -> Path:
        return self.root / ".cache/mutants"

    @cached_property
    def reach(self) -> Path:
        """Named after the source, whose lines it is about."""
        digest = hashlib.sha256()
        for path in sorted(self.source.rglob("*.py")):
            digest.update(f"{path.relative_to(self.source)}\n".encode() + path.read_bytes())
        return self.cache / f"reach-{digest.hexdigest()[:12]}.db"

    def most(self) -> int:
        """How many defects of a package are tried."""
        return min(self.table["most_of_a_package"], self.table["most_of_all"] // len(self.table["packages"]))

    def files_of_tests(self) -> Iterator[str]:
        """Files of tests whose reach is measured, relative to the root."""
        for folder in self.table["tests"]:
            for path in sorted((self.root / folder).rglob("test_*.py")):
                yield str(path.relative_to(self.root))

    def defects(self, package: str) -> list[Defect]:
        """Every defect that can be planted in a package."""
        found = []
        for folder in self.table["packages"][package]:
            for path in sorted((self.source / folder).rglob("*.py")):
                found += find_defects(path.read_text(), str(path.relative_to(self.source)))
        return found
