"""From a snapshot back to the anonymizer that made it, whichever method it was."""

from __future__ import annotations

from typing import Any, Final

from shoal.anonymizers.base import Anonymizer
from shoal.anonymizers.castle import Castle
from shoal.anonymizers.fads import Fads
from shoal.anonymizers.fads_varied import FadsVaried
from shoal.anonymizers.fast import Fast
from shoal.anonymizers.flexible_k import FlexibleK
from shoal.anonymizers.iot_anonymization import IotAnonymization
from shoal.anonymizers.k_varp import KVarp
from shoal.anonymizers.least_loss import LeastLoss
from shoal.anonymizers.z_anonymity import ZAnonymity
from shoal.errors import CheckpointError
from shoal.vault.keys import Secret, as_secret
from shoal.vault.snapshots import open_state

METHODS: Final[dict[str, Any]] = {
    made.method: made
    for made in (ZAnonymity, Fads, FadsVaried, Fast, KVarp, IotAnonymization, Castle, LeastLoss, FlexibleK)
}


def restore(state: bytes, key: Secret | bytes | None = None) -> Anonymizer:
    """Open a snapshot with the key it was sealed under and go on from there.

    Parameters
    ----------
    state
        What ``snapshot()`` returned.
    key
        The key given when the anonymizer was made; by default that of ``SHOAL_KEY_FILE``, else this process's.
    """
    secret = as_secret(key)
    opened = open_state(secret, state)
    method = METHODS.get(opened.header["method"])
    if method is None:
        raise CheckpointError(
            f"the snapshot is of the method {opened.header['method']!r}, which this shoal does not have"
        )
    anonymizer: Anonymizer = method.from_state(opened, secret)
    return anonymizer
