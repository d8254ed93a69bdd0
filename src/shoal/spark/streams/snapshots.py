"""Snapshots of shards: the sealed snapshot of a method, and what a shard keeps next to it, which is sealed apart.

To seal the snapshot of the method once more would cost as much as to make it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy.typing as npt

from shoal.crypto.snapshots import open_state, seal_state
from shoal.errors import CheckpointError
from shoal.spark.recipe import Recipe

_HEAD: Final = struct.Struct("<8sQ")
_MAGIC: Final = b"SHOALSH1"
Arrays = Mapping[str, npt.NDArray[Any]]


def dump_shard(recipe: Recipe, snapshot: bytes, arrays: Arrays) -> bytes:
    """Join the sealed snapshot of a method with the arrays of a shard, sealed."""
    more = seal_state(recipe.secret(), {}, arrays)
    return b"".join((_HEAD.pack(_MAGIC, len(more)), more, snapshot))


def open_shard(recipe: Recipe, data: bytes) -> tuple[bytes, Arrays]:
    """The sealed snapshot and the arrays that dump_shard joined."""
    magic, length = _HEAD.unpack_from(data) if len(data) >= _HEAD.size else (b"", 0)
    if magic != _MAGIC:
        raise CheckpointError(
            "the state of a shard is damaged or of another version of shoal; restore the folder of the state, continue "
            "with the shoal that wrote it, or start with a new folder"
        )
    stop = _HEAD.size + length
    return data[stop:], open_state(recipe.secret(), data[_HEAD.size : stop]).arrays
