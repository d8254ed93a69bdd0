"""The [anonymize] table: the settings of a method, and what a policy file adds for its family."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from shoal.methods.registry import METHODS, Family
from shoal.methods.settings import Settings
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
    namespace = {"__module__": own.__module__, "METHOD": method, "SETTINGS": own, **_redefined(own, family)}
    return type(own)(own.__name__, (family, own), namespace)


def _redefined(own: type[Settings], family: type[MethodSection]) -> dict[str, Any]:
    """Fields that take other values in a method than in its family, for a namespace: pydantic prefers the family's."""
    if issubclass(family, own):
        return {}
    ours, theirs = own.model_fields, family.model_fields
    fields = {name: ours[name] for name in ours if name in theirs and ours[name].annotation != theirs[name].annotation}
    return {"__annotations__": {name: field.annotation for name, field in fields.items()}, **fields}
