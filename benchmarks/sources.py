"""Which source files a figure was measured on, and whether they changed since."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = ("shoal", "benchmarks")


def loaded_sources() -> list[str]:
    """Files of the library and the benchmarks that this process has loaded, relative to the project."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.partition(".")[0] in _PACKAGES and Path(file).resolve().is_relative_to(ROOT):
            found.add(Path(file).resolve().relative_to(ROOT).as_posix())
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or ROOT.parent).resolve()
    if main.is_relative_to(ROOT / "benchmarks"):
        found.add(main.relative_to(ROOT).as_posix())
    return sorted(found)


def digest(sources: Iterable[str]) -> str:
    """A digest of the files as they are now; a file that is gone counts as empty."""
    found = hashlib.sha256()
    for name in sorted(sources):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{name}\x00{len(content)}\x00".encode() + content)
    return found.hexdigest()
