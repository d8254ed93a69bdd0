"""Every method of shoal, one entry each. Importing this module loads no method: `load` of an entry does."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from shoal.crypto.keys import Secret
    from shoal.methods.base import StreamMethod

Family = Literal["z", "tuples", "sets", "flexible"]


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One method: its name in policies, its family, the class that implements it and the page that describes it."""

    name: str
    family: Family
    class_name: str
    """Also its public name: ``shoal.Castle``."""
    module: str
    docs: str
    summary: str
    """What it is for, in one line."""

    @property
    def is_stream(self) -> bool:
        """Whether it decides records as they arrive; otherwise it decides all records at once."""
        return self.family != "sets"

    def load(self) -> Any:
        """The class; loads its kernels."""
        return getattr(import_module(self.module), self.class_name)


def _entry(name: str, family: Family, class_name: str, module: str, docs: str, summary: str) -> MethodEntry:
    return MethodEntry(name, family, class_name, f"shoal.methods.{family}.{module}", f"docs/{docs}.md", summary)


_ENTRIES: Final = (
    _entry("z-anonymity", "z", "ZAnonymity", "z_anonymity", "guarantees/z-anonymity",
           "publish an event at once if z people did so in a window"),
    _entry("least-loss", "tuples", "LeastLoss", "least_loss", "methods/least-loss",
           "crowds of k within a deadline; least loss, recommended"),
    _entry("fads", "tuples", "Fads", "fads", "methods/fads",
           "the same, faster, with more loss"),
    _entry("fads-varied", "tuples", "FadsVaried", "fads_varied", "methods/fads-varied",
           "FADS where rows lack different columns; for comparison"),
    _entry("fast", "tuples", "Fast", "fast", "methods/fast",
           "FADS on several cores"),
    _entry("k-varp", "tuples", "KVarp", "k_varp", "methods/k-varp",
           "rows in which most columns are missing, as from sensors"),
    _entry("iot-anonymization", "tuples", "IotAnonymization", "iot_anonymization", "methods/iot-anonymization",
           "the predecessor of K-VARP; for comparison"),
    _entry("castle", "tuples", "Castle", "castle", "methods/castle",
           "the classic for tuple streams; for comparison"),
    _entry("k^m", "sets", "KmAnonymity", "km_anonymity", "methods/k-m",
           "sets safe against m known items; samples where m is large"),
    _entry("k^m-apriori", "sets", "KmApriori", "km_anonymity", "methods/k-m",
           "the same, counts every itemset; for small m"),
    _entry("flexible-k", "flexible", "FlexibleK", "flexible_k", "methods/flexible-k",
           "every record is published, under labels of an ontology"),
)  # fmt: skip
METHODS: Final = {entry.name: entry for entry in _ENTRIES}


def methods_of(*families: Family) -> list[str]:
    """Names of the methods of some families, in the order of the registry."""
    return [name for name, entry in METHODS.items() if entry.family in families]


def restore(state: bytes, key: Secret | bytes | None = None) -> StreamMethod:
    """Open a snapshot with the key it was sealed under and continue from there.

    Parameters
    ----------
    state
        What ``snapshot()`` returned.
    key
        The key given to the method that made the snapshot; by default the one in ``SHOAL_KEY_FILE``, else this
        process's own.
    """
    from shoal.crypto.keys import as_secret
    from shoal.crypto.snapshots import open_state
    from shoal.errors import CheckpointError

    secret = as_secret(key)
    opened = open_state(secret, state)
    entry = METHODS.get(opened.header["method"])
    if entry is None:
        raise CheckpointError(
            f"the snapshot is of the method {opened.header['method']!r}, which this shoal does not have"
        )
    restored: StreamMethod = entry.load().from_state(opened, secret)
    return restored
