"""Streams of data about people flow on while no one in them stands out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.anonymizers.castle import Castle
    from shoal.anonymizers.fads import Fads
    from shoal.anonymizers.fads_varied import FadsVaried
    from shoal.anonymizers.fast import Fast
    from shoal.anonymizers.flexible_k import FlexibleK
    from shoal.anonymizers.iot_anonymization import IotAnonymization
    from shoal.anonymizers.k_varp import KVarp
    from shoal.anonymizers.km_anonymity import KmAnonymity
    from shoal.anonymizers.km_apriori import KmApriori
    from shoal.anonymizers.km_uniqueness import uniqueness
    from shoal.anonymizers.least_loss import LeastLoss
    from shoal.anonymizers.restoring import restore
    from shoal.anonymizers.z_anonymity import ZAnonymity
    from shoal.auditor import audit
    from shoal.errors import ShoalError
    from shoal.hierarchies import Hierarchy
    from shoal.hierarchies.ontology import Ontology
    from shoal.hierarchies.places import Places
    from shoal.models.z_target import KTarget
    from shoal.pipeline import Pipeline
    from shoal.schema import Categorical, Numeric, Schema

__version__ = "0.1.0"
__all__ = [
    "Castle", "Categorical", "Fads", "FadsVaried", "Fast", "FlexibleK", "Hierarchy", "IotAnonymization", "KTarget",
    "KVarp", "KmAnonymity", "KmApriori", "LeastLoss", "Numeric", "Ontology", "Pipeline", "Places", "Schema",
    "ShoalError", "ZAnonymity", "audit", "restore", "uniqueness",
]  # fmt: skip

# Heavy parts load when first used, so that `import shoal` and `shoal --help` stay fast.
_PLACES = {
    "Castle": "shoal.anonymizers.castle",
    "Categorical": "shoal.schema",
    "Fads": "shoal.anonymizers.fads",
    "FadsVaried": "shoal.anonymizers.fads_varied",
    "Fast": "shoal.anonymizers.fast",
    "FlexibleK": "shoal.anonymizers.flexible_k",
    "Hierarchy": "shoal.hierarchies",
    "IotAnonymization": "shoal.anonymizers.iot_anonymization",
    "KTarget": "shoal.models.z_target",
    "KVarp": "shoal.anonymizers.k_varp",
    "KmAnonymity": "shoal.anonymizers.km_anonymity",
    "KmApriori": "shoal.anonymizers.km_apriori",
    "LeastLoss": "shoal.anonymizers.least_loss",
    "Numeric": "shoal.schema",
    "Ontology": "shoal.hierarchies.ontology",
    "Pipeline": "shoal.pipeline",
    "Places": "shoal.hierarchies.places",
    "Schema": "shoal.schema",
    "ShoalError": "shoal.errors",
    "ZAnonymity": "shoal.anonymizers.z_anonymity",
    "audit": "shoal.auditor",
    "restore": "shoal.anonymizers.restoring",
    "uniqueness": "shoal.anonymizers.km_uniqueness",
}


def __getattr__(name: str) -> Any:
    if name == "models":  # a room with names of its own
        return import_module("shoal.models")
    if name not in _PLACES:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
