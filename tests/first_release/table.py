"""All files of the table: importing a module registers its files."""

from __future__ import annotations

from importlib import import_module

from tests.first_release.cases import CASES

MODULES = (
    "headers",
    "bare",
    "formats",
    "web",
    "people",
    "decoys",
    "surveys",
    "missing",
    "repeats",
    "pairs",
    "events",
    "things",
    "languages",
)

for module in MODULES:
    import_module(f"tests.first_release.files_{module}")

__all__ = ["CASES", "MODULES"]
