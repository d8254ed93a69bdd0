"""The [anonymize] table: the settings of a method, and what a policy file adds for its family."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from shoal.methods.registry import METHODS
from shoal.policy.flexible import FlexibleSection
from shoal.policy.method_base import MethodSection
from shoal.policy.sets import SET_SECTIONS
from shoal.policy.tuples import TupleSection
from shoal.policy.z import ZAnonymitySection

_STATIC: Final[tuple[type[MethodSection], ...]] = (ZAnonymitySection, *SET_SECTIONS, FlexibleSection)
_SECTIONS: Final = {section.METHOD: section for section in _STATIC}


def section_for(method: object) -> type[MethodSection] | None:
    """The table of a method; None where no method has this name."""
    return _section(method) if isinstance(method, str) and method in METHODS else None


@cache
def _section(method: str) -> Any:
    if method in _SECTIONS:
        return _SECTIONS[method]
    own = METHODS[method].load().settings_class
    return type(own)(own.__name__, (TupleSection, own), {"__module__": own.__module__, "METHOD": method})
