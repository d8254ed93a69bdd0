"""Streams of data about people flow on while no one in them stands out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.anonymizers.restoring import restore
    from shoal.anonymizers.z_anonymity import ZAnonymity
    from shoal.auditor import audit
    from shoal.errors import ShoalError
    from shoal.hierarchies import Hierarchy
    from shoal.pipeline import Pipeline

__version__ = "0.1.0"
__all__ = ["Hierarchy", "Pipeline", "ShoalError", "ZAnonymity", "audit", "restore"]

# Heavy parts load when first used, so that `import shoal` and `shoal --help` stay fast.
_PLACES = {
    "Hierarchy": "shoal.hierarchies",
    "Pipeline": "shoal.pipeline",
    "ShoalError": "shoal.errors",
    "ZAnonymity": "shoal.anonymizers.z_anonymity",
    "audit": "shoal.auditor",
    "restore": "shoal.anonymizers.restoring",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
