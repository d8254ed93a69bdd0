"""From a snapshot back to the anonymizer that made it, whichever method it was."""

from __future__ import annotations

from typing import Any, Final

from shoal.crypto.keys import Secret, as_secret
from shoal.crypto.snapshots import open_state
from shoal.errors import CheckpointError
from shoal.methods.base import StreamMethod
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.methods.tuples.castle import Castle
from shoal.methods.tuples.fads import Fads
from shoal.methods.tuples.fads_varied import FadsVaried
from shoal.methods.tuples.fast import Fast
from shoal.methods.tuples.iot_anonymization import IotAnonymization
from shoal.methods.tuples.k_varp import KVarp
from shoal.methods.tuples.least_loss import LeastLoss
from shoal.methods.z.z_anonymity import ZAnonymity

METHODS: Final[dict[str, Any]] = {
    made.method: made
    for made in (ZAnonymity, Fads, FadsVaried, Fast, KVarp, IotAnonymization, Castle, LeastLoss, FlexibleK)
}


def restore(state: bytes, key: Secret | bytes | None = None) -> StreamMethod:
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
    anonymizer: StreamMethod = method.from_state(opened, secret)
    return anonymizer
