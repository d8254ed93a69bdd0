"""Streams of data about people flow on while no one in them stands out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.methods.registry import METHODS

if TYPE_CHECKING:
    from shoal.auditor import attack, audit, audit_table
    from shoal.errors import ShoalError
    from shoal.frames import anonymize
    from shoal.hierarchies import Hierarchy
    from shoal.hierarchies.ontology.ontology import Ontology
    from shoal.hierarchies.places import Places
    from shoal.methods.flexible.flexible_k import FlexibleK
    from shoal.methods.registry import restore
    from shoal.methods.sets.km_anonymity import KmAnonymity, KmApriori
    from shoal.methods.sets.uniqueness import uniqueness
    from shoal.methods.tuples.castle import Castle
    from shoal.methods.tuples.fads import Fads
    from shoal.methods.tuples.fads_varied import FadsVaried
    from shoal.methods.tuples.fast import Fast
    from shoal.methods.tuples.iot_anonymization import IotAnonymization
    from shoal.methods.tuples.k_varp import KVarp
    from shoal.methods.tuples.least_loss import LeastLoss
    from shoal.methods.z.z_anonymity import ZAnonymity
    from shoal.models.z.target.target import KTarget
    from shoal.pipeline import Pipeline
    from shoal.schema import ROWS, Categorical, Numeric, Schema

__version__ = "0.2.0"
__all__ = [
    "ROWS",
    "Castle", "Categorical", "Fads", "FadsVaried", "Fast", "FlexibleK", "Hierarchy", "IotAnonymization", "KTarget",
    "KVarp", "KmAnonymity", "KmApriori", "LeastLoss", "Numeric", "Ontology", "Pipeline", "Places", "Schema",
    "ShoalError", "ZAnonymity", "anonymize", "attack", "audit", "audit_table", "restore", "uniqueness",
]  # fmt: skip

# Heavy parts load when first used, so that `import shoal` and `shoal --help` stay fast.
_PLACES = {entry.class_name: entry.module for entry in METHODS.values()} | {
    "Categorical": "shoal.schema",
    "Hierarchy": "shoal.hierarchies",
    "KTarget": "shoal.models.z.target.target",
    "Numeric": "shoal.schema",
    "Ontology": "shoal.hierarchies.ontology.ontology",
    "Pipeline": "shoal.pipeline",
    "Places": "shoal.hierarchies.places",
    "ROWS": "shoal.schema",
    "Schema": "shoal.schema",
    "ShoalError": "shoal.errors",
    "anonymize": "shoal.frames",
    "attack": "shoal.auditor",
    "audit": "shoal.auditor",
    "audit_table": "shoal.auditor",
    "restore": "shoal.methods.registry",
    "uniqueness": "shoal.methods.sets.uniqueness",
}


def __getattr__(name: str) -> Any:
    if name in ("models", "spark"):  # packages with names of their own
        return import_module(f"shoal.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
