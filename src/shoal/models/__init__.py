"""Models of what a release would look like, before anything is released."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.models.z.model import ZModel
    from shoal.models.z.rhythm import ZRhythm

__all__ = ["ZModel", "ZRhythm"]
_MODULES = {"ZModel": "shoal.models.z.model", "ZRhythm": "shoal.models.z.rhythm"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'shoal.models' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
