"""The [anonymize] table: the settings of a method, and what a policy file adds for its family."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from shoal.methods.registry import METHODS, Family
from shoal.policy.flexible import FlexibleSection
from shoal.policy.method_base import MethodSection
from shoal.policy.sets import SetSection
from shoal.policy.tuples import TupleSection
from shoal.policy.z import ZAnonymitySection

_FAMILIES: Final[dict[Family, type[MethodSection]]] = {
    "z": ZAnonymitySection, "tuples": TupleSection, "sets": SetSection, "flexible": FlexibleSection,
}  # fmt: skip


def section_for(method: object) -> type[MethodSection] | None:
    """The table of a method; None where no method has this name."""
    return _section(method) if isinstance(method, str) and method in METHODS else None


@cache
def _section(method: str) -> Any:
    family, own = _FAMILIES[METHODS[method].family], METHODS[method].load().settings_class
    bases = (family, own) if issubclass(family, own) else (own, family)  # what a method redefines wins
    return type(own)(own.__name__, bases, {"__module__": own.__module__, "METHOD": method, "SETTINGS": own})
