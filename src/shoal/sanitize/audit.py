"""An audit of everything in the external store, from the stores and the sealed traces."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import ShoalError, VaultError
from shoal.sanitize.pii import SealedHashes, as_names
from shoal.sanitize.publish import Verifier, real_records
from shoal.sanitize.stores.columns import column_blocks, from_plain, hex_column
from shoal.sanitize.workspace import ID, PERSON, TRACES, House


def audit_stores(house: House, consumed: int) -> str:
    """One line: passed, what is broken, or why it could not be audited."""
    if house.schema_of(house.external) is None or house.policy.file is None or not _has_traces(house):
        return "not audited: nothing is published yet"
    from shoal.auditor import audit

    release = _release(house)
    if release is None:
        return "BROKEN: rows of shoal_published were deleted, or added by somebody else"
    try:
        report = audit(release, truth=_truth(house, consumed), trace=_traces(house), policy=_policy(house))
    except VaultError:
        return "BROKEN: the stores cannot be audited, for one of them was altered or lost a part; restore it"
    except ShoalError as error:
        return f"not audited: {str(error).splitlines()[0]}"
    if report.ok:
        return "passed"
    return "BROKEN: " + ", ".join(sorted({found.code for found in report.violations}))


def _has_traces(house: House) -> bool:
    """Not as long as every record waits."""
    return bool(house.external.execute(f"SELECT number FROM {TRACES.name} LIMIT 1"))


def _policy(house: House) -> dict[str, Any]:
    """The policy as written, with the person column that the stores have and paths from anywhere."""
    file = house.policy.file
    assert file is not None, "asked before"
    written = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    stream = {**written["stream"], "person": house.policy.stream.person}
    return {"stream": stream, "anonymize": _absolute(written["anonymize"], file.parent)}


def _absolute(content: Any, folder: Path) -> Any:
    if isinstance(content, dict):
        return {
            key: str(folder / below) if key == "path" and isinstance(below, str) else _absolute(below, folder)
            for key, below in content.items()
        }
    return content


def _release(house: House) -> pa.Table | None:
    """Published rows in the order they were decided in, as the sealed traces tell; None where these tell of others."""
    schema = house.schema_of(house.external)
    assert schema is not None, "asked before"
    layout = house.published(schema)
    rows = house.external.read(layout, layout.names)
    there = as_names(column_blocks(rows.column(ID)))
    sealed = house.external.execute(f"SELECT ids FROM {TRACES.name} ORDER BY number")
    ids = b"".join(house.ring.unseal(bytes(data), "trace", name=house.external.name) for (data,) in sealed)
    told = as_names(np.frombuffer(ids, dtype=np.uint8).reshape(-1, 16))
    if not np.array_equal(np.sort(there), np.sort(told)):
        return None
    at, wanted = np.argsort(there), np.argsort(np.argsort(told))
    return from_plain(rows, schema).take(pa.array(at[wanted]))


def _traces(house: House) -> pa.Table:
    sealed = house.external.execute(f"SELECT trace FROM {TRACES.name} ORDER BY number")
    opened = (house.ring.unseal(bytes(data), "trace", name=house.external.name) for (data,) in sealed)
    return pa.concat_tables([pa.ipc.open_stream(pa.py_buffer(data)).read_all() for data in opened])


def _truth(house: House, consumed: int) -> pa.Table:
    """Real records in the order they arrived in."""
    schema: Any = house.schema_of(house.internal)
    verifier = Verifier(house, SealedHashes(house.sealed, house.ring).hashes)
    parts = []
    for batch in range(1, consumed + 1):
        rows, _ = real_records(house, verifier, schema, batch)
        person = hex_column(column_blocks(rows.column(PERSON)))
        parts.append(from_plain(rows, schema).append_column(str(house.policy.stream.person), person))
    return pa.concat_tables(parts)
