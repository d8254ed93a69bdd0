"""The memory of decoys across batches, sealed per person under keys that do not reveal the person."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shoal.sanitize.decoys.decoys import Known
from shoal.sanitize.keyring import Keyring
from shoal.sanitize.pii import Names
from shoal.sanitize.stores.base import ARROW, Store
from shoal.sanitize.stores.columns import from_plain, kinds_of, to_plain
from shoal.sanitize.tags import as_blocks, one_way
from shoal.sanitize.workspace import MEMORY

_PIECE: Final = 512
"""Sealed data is padded to a multiple of this length, or its length would identify people."""
_KEPT: Final = 3
"""How many of a person's latest records are remembered."""


class StoredMemory:
    """Donors and a few records of every person, in the internal store; `save` writes in the batch's transaction."""

    def __init__(self, store: Store, ring: Keyring, schema: pa.Schema) -> None:
        self._store = store
        self._name_key = ring.key("memory name")
        self._cipher = AESGCM(ring.key("memory"))
        self._schema = schema
        self._read: dict[bytes, Any] = {}
        self._fresh: dict[bytes, Any] = {}

    def recall(self, people: Sequence[bytes]) -> Known:
        """Return the donors of these people, and records of those donors who are not among them."""
        self._read = self._lookup(people)
        donors = {person: tuple(map(bytes.fromhex, own["donors"])) for person, own in self._read.items()}
        here = set(people)
        absent = list(dict.fromkeys(donor for own in donors.values() for donor in own if donor not in here))
        found = self._lookup(absent)
        owners = [donor for donor in absent if donor in found for _ in found[donor]["records"]]
        rows = [row for donor in absent if donor in found for row in found[donor]["records"]]
        return Known(donors, tuple(owners), self._table(rows))

    def remember(self, donors: Mapping[bytes, tuple[bytes, ...]], who: Names, records: pa.Table) -> None:
        """Store donors, and the latest records of every person."""
        order = np.argsort(who, kind="stable")
        is_last = np.append(who[order][1:] != who[order][:-1], True)
        ends = np.flatnonzero(is_last) + 1
        starts = np.append(0, ends[:-1])
        chosen = [order[max(start, end - _KEPT) : end] for start, end in zip(starts, ends, strict=True)]
        rows = to_plain(records.take(pa.array(np.concatenate(chosen)))) if chosen else to_plain(records)
        values = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        at = 0
        for part, start in zip(chosen, starts, strict=True):
            person = who[order[start]].ljust(16, b"\0")
            kept = donors[person] if person in donors else tuple(map(bytes.fromhex, self._read[person]["donors"]))
            own = {"donors": [donor.hex() for donor in kept], "records": values[at : at + len(part)]}
            self._fresh[person] = own
            at += len(part)

    def save(self) -> None:
        """Write new entries; call it in a transaction."""
        people = list(self._fresh)
        rows = [
            (name, self._sealed(name, json.dumps(self._fresh[person]).encode()))
            for name, person in zip(self._names(people), people, strict=True)
        ]
        self._store.upsert(MEMORY, sorted(rows))
        self._fresh = {}

    def _lookup(self, people: Sequence[bytes]) -> dict[bytes, Any]:
        names = self._names(people)
        person_of = dict(zip(names, people, strict=True))
        rows = [(bytes(name), bytes(value)) for name, value in self._store.lookup(MEMORY, sorted(names))]
        return {person_of[name]: json.loads(self._cipher.decrypt(value[:12], value[12:], name)) for name, value in rows}

    def _names(self, people: Sequence[bytes]) -> list[bytes]:
        made = one_way(self._name_key, as_blocks(b"".join(people))).tobytes()
        return [made[at : at + 16] for at in range(0, len(made), 16)]

    def _sealed(self, name: bytes, data: bytes) -> bytes:
        nonce = os.urandom(12)
        padded = data.ljust(-(-len(data) // _PIECE) * _PIECE)  # JSON may end in spaces
        return nonce + self._cipher.encrypt(nonce, padded, name)

    def _table(self, rows: list[list[Any]]) -> pa.Table:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds_of(self._schema))
        plain = {
            name: pa.array(column, type=ARROW[kind])
            for (name, kind), column in zip(kinds_of(self._schema), columns, strict=True)
        }
        return from_plain(pa.table(plain), self._schema)
