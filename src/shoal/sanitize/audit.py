"""Audit everything in the external store, using the stores and the sealed traces."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import ShoalError, VaultError
from shoal.sanitize.pii import SealedHashes, as_names
from shoal.sanitize.publish import Verifier, real_records
from shoal.sanitize.stores.columns import column_blocks, from_plain, hex_column
from shoal.sanitize.workspace import ID, PERSON, TRACES, Workspace


def audit_stores(workspace: Workspace, consumed: int) -> str:
    """Return one line: passed, the broken promises, or why the stores could not be audited."""
    store = workspace.external
    has_traces = store.execute(f"SELECT number FROM {store.place(TRACES)} LIMIT 1")  # something was decided
    if workspace.schema_of(store) is None or workspace.policy.file is None or not has_traces:
        return "not audited: nothing is published yet"
    from shoal.auditor import audit

    release = _release(workspace)
    if release is None:
        return "BROKEN: rows of shoal_published were deleted, or added by another program"
    try:
        report = audit(release, truth=_truth(workspace, consumed), trace=_traces(workspace), policy=_policy(workspace))
    except VaultError:
        return "BROKEN: the stores cannot be audited: one of them was altered or lost a part; restore it"
    except ShoalError as error:
        return f"not audited: {str(error).splitlines()[0]}"
    if report.ok:
        return "passed"
    return "BROKEN: " + ", ".join(sorted({found.code for found in report.violations}))


def _policy(workspace: Workspace) -> dict[str, Any]:
    """Return the policy as written, with the stores' person column and absolute paths."""
    file = workspace.policy.file
    assert file is not None, "checked before"
    written = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    stream = {**written["stream"], "person": workspace.policy.stream.person}
    return {"stream": stream, "anonymize": _absolute(written["anonymize"], file.parent)}


def _absolute(content: Any, folder: Path) -> Any:
    if isinstance(content, dict):
        return {
            key: str(folder / below) if key == "path" and isinstance(below, str) else _absolute(below, folder)
            for key, below in content.items()
        }
    return content


def _release(workspace: Workspace) -> pa.Table | None:
    """Return published rows in the order of the sealed traces; None if the traces list other rows."""
    schema = workspace.schema_of(workspace.external)
    assert schema is not None, "checked before"
    layout = workspace.published(schema)
    rows = workspace.external.read(layout, layout.names)
    there = as_names(column_blocks(rows.column(ID)))
    ids = b"".join(_unsealed(workspace, "ids"))
    traced = as_names(np.frombuffer(ids, dtype=np.uint8).reshape(-1, 16))
    if not np.array_equal(np.sort(there), np.sort(traced)):
        return None
    at, wanted = np.argsort(there), np.argsort(np.argsort(traced))
    return from_plain(rows, schema).take(pa.array(at[wanted]))


def _traces(workspace: Workspace) -> pa.Table:
    opened = _unsealed(workspace, "trace")
    return pa.concat_tables([pa.ipc.open_stream(pa.py_buffer(data)).read_all() for data in opened])


def _unsealed(workspace: Workspace, column: str) -> Iterator[bytes]:
    store = workspace.external
    for (data,) in store.execute(f"SELECT {column} FROM {store.place(TRACES)} ORDER BY number"):
        yield workspace.ring.unseal(bytes(data), "trace", name=store.name)


def _truth(workspace: Workspace, consumed: int) -> pa.Table:
    """Return real records in order of arrival."""
    schema: Any = workspace.schema_of(workspace.internal)
    verifier = Verifier(workspace, SealedHashes(workspace.sealed, workspace.ring).hashes)
    parts = []
    for batch in range(1, consumed + 1):
        rows, _ = real_records(workspace, verifier, schema, batch)
        person = hex_column(column_blocks(rows.column(PERSON)))
        parts.append(from_plain(rows, schema).append_column(str(workspace.policy.stream.person), person))
    return pa.concat_tables(parts)
