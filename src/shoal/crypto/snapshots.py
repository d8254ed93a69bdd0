"""Encode named arrays and a header as bytes: versioned, checksummed, reproducible, no pickle."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.crypto.keys import Secret
from shoal.crypto.sealing import seal, unseal
from shoal.errors import CheckpointError

VERSION: Final = 4
_MAGIC: Final = b"SHOALSNAP"
_HEAD: Final = struct.Struct("<9sHQ")
_PURPOSE: Final = "snapshot"

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class State:
    """The content of a snapshot."""

    header: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def pack_state(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Encode a header and named arrays as bytes."""
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps({"header": header, "arrays": listed}, sort_keys=True).encode()
    parts = [_HEAD.pack(_MAGIC, VERSION, len(text)), text]
    parts += [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def unpack_state(data: bytes) -> State:
    """Read what pack_state wrote; raise CheckpointError on anything else."""
    body, checksum = data[:-32], data[-32:]
    if len(data) < _HEAD.size + 32 or hashlib.sha256(body).digest() != checksum:
        raise CheckpointError("the snapshot is torn or altered: its checksum does not fit")
    magic, version, length = _HEAD.unpack_from(body)
    if magic != _MAGIC or version != VERSION:
        raise CheckpointError(
            f"the snapshot has format version {version}; this shoal reads version {VERSION}; "
            "start without it, or continue with the shoal that wrote it"
        )
    content = json.loads(body[_HEAD.size : _HEAD.size + length])
    return State(content["header"], _read_arrays(body, _HEAD.size + length, content["arrays"]))


def _read_arrays(body: bytes, start: int, listed: list[list[Any]]) -> dict[str, npt.NDArray[Any]]:
    arrays = {}
    for name, kind, shape in listed:
        count = int(np.prod(shape))
        array = np.frombuffer(body, dtype=kind, count=count, offset=start)
        arrays[name] = array.reshape(shape)
        start += array.nbytes
    return arrays


def seal_state(secret: Secret, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return a sealed snapshot."""
    return seal(secret, pack_state(header, arrays), purpose=_PURPOSE)


def open_state(secret: Secret, data: bytes) -> State:
    """Open a sealed snapshot."""
    return unpack_state(unseal(secret, data, purpose=_PURPOSE))
