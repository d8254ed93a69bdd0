"""The workspace of the sanitization process: the keys, the three stores and their sealed notes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from shoal.crypto.keys import KEY_FILE_VARIABLE, Secret, secret_from_environment
from shoal.crypto.private_files import only_one
from shoal.errors import PolicyError, StoreError, VaultError
from shoal.policy import Policy
from shoal.policy.sanitize import SanitizeSection, StoreSection
from shoal.sanitize.keyring import Keyring, new_keyring, read_keyring, write_keyring
from shoal.sanitize.stores.base import RESERVED, Layout, Store
from shoal.sanitize.stores.columns import kinds_of
from shoal.sanitize.stores.sqlite import SqliteStore

ID, BATCH, TAG, PERSON, PII = (RESERVED + name for name in ("id", "batch", "tag", "person", "pii"))
GROUPS: Final = Layout("shoal_internal_groups", (("name", "integer"),), ("name",))
MEMORY: Final = Layout("shoal_internal_memory", (("key", "bytes"), ("value", "bytes")), ("key",))
TEMPORARY: Final = Layout(
    "shoal_temporary_rows", (("batch", "integer"), ("run", "text"), ("content", "bytes")), ("batch",)
)
RUNS: Final = Layout("shoal_temporary_runs", (("run", "text"), ("made", "integer")), ("run",))
TRACES: Final = Layout(
    "shoal_external_traces", (("number", "integer"), ("ids", "bytes"), ("trace", "bytes")), ("number",)
)
PUBLISHED: Final = Layout("shoal_published", ((ID, "bytes"),), public=True)
"""Columns of the data follow; without a key, so that appending always costs the same."""
_MADE_UNDER: Final = ("stream", "anonymize", "sanitize")
_FILLED: Final = ("schema", "progress", "state", "snapshot")
"""Entries that a store has once it contains data."""


def master_key() -> Secret:
    """Return the key of SHOAL_KEY_FILE, which is required."""
    found = secret_from_environment()
    if found is None:
        raise VaultError(
            f"shoal sanitize needs a key: make one with openssl rand -hex 32 > key.txt, and set {KEY_FILE_VARIABLE} "
            "to the file"
        )
    return found


class Workspace:
    """Keys and stores, open; `with Workspace(policy) as workspace`. Only one process at a time may have them.

    Parameters
    ----------
    create
        False: open existing stores only; StoreError if there are none yet.
    """

    def __init__(self, policy: Policy, *, create: bool = True) -> None:
        if policy.sanitize is None:
            raise PolicyError("[sanitize]: is missing; add this section, or use: shoal run")
        self.policy = policy
        self.section: SanitizeSection = policy.sanitize
        self.sealed = self.section.sealed.path
        self.keys = self.sealed.with_name(self.sealed.name + ".keys")
        self._stack = ExitStack()
        self._create = create
        self.reach: Callable[[str], None] = lambda _: None
        """Called at every step; tests interrupt the process there."""

    def __enter__(self) -> Self:
        master = master_key()
        if self.keys.exists():
            read_keyring(self.keys, master)  # detect a wrong key before anything is changed
        elif not self._create:
            raise StoreError(f"{self.keys}: there are no stores yet; run shoal sanitize first")
        with ExitStack() as stack:
            stack.enter_context(only_one(self.sealed.with_name(self.sealed.name + ".lock")))
            self.internal = self._opened(stack, "internal", self.section.internal)
            self.temporary = self._opened(stack, "temporary", self.section.internal)
            self.external = self._opened(stack, "external", self.section.external)
            self.ring = self._ring(master)
            self._make_tables()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _ring(self, master: Secret) -> Keyring:
        made = [store for store in self._stores if store.check_version()]
        if self.keys.exists():
            ring = read_keyring(self.keys, master)
            is_empty = not any(store.get(name) for store in made for name in _FILLED)
            for store in made:
                self._check_owner(store, ring, is_empty=is_empty)
            self._check_together(made)
            return ring
        if made:
            raise VaultError(f"{self.keys}: the working keys of these stores are missing; restore the file")
        ring = new_keyring()
        write_keyring(self.keys, ring, master)
        return ring

    def _check_together(self, made: list[Store]) -> None:
        """A single new store would start over: records would be published again, or new ones never."""
        for store, other, mark in (
            (self.internal, self.external, "state"),
            (self.external, self.internal, "progress"),
        ):
            if store not in made and other in made and other.get(mark) is not None:
                is_half = store is self.external and store.has(PUBLISHED)
                raise _is_lost(f"the sealed part of {store.name}" if is_half else store.name, other.name)
        has_rows = self.external in made and self.external.get("schema") is not None
        if has_rows and not self.external.has(PUBLISHED):
            raise _is_lost(self.external.name, "its sealed part")

    def _opened(self, stack: ExitStack, role: str, section: StoreSection) -> Store:
        store = _open_store(role, section, self.sealed)
        stack.callback(store.close)
        return store

    @property
    def _stores(self) -> tuple[Store, ...]:
        return self.internal, self.temporary, self.external

    def _check_owner(self, store: Store, ring: Keyring, *, is_empty: bool) -> None:
        if store.get("keys") != ring.name.encode():
            raise StoreError(
                f"{store.name}: belongs to other keys than {self.keys}; name another store, or its own keys"
            )
        if store.get("policy") == self._policy_mark:
            return
        if not is_empty:
            raise StoreError(
                f"{store.name}: was filled under another policy ([stream], [anonymize] or [sanitize] have changed); "
                "use that policy, or new stores"
            )
        if self._create:  # the first run failed before it stored anything, and the policy was fixed
            with store.transaction():
                store.put("policy", self._policy_mark)

    @property
    def _policy_mark(self) -> bytes:
        return self.policy.fingerprint(*_MADE_UNDER).encode()

    def _make_tables(self) -> None:
        tables = ((GROUPS, MEMORY), (TEMPORARY, RUNS), (TRACES,))
        for store, own in zip(self._stores, tables, strict=True):
            if not store.check_version():
                with store.transaction():
                    store.create(own)
                    store.put("keys", self.ring.name.encode())
                    store.put("policy", self._policy_mark)

    # ---- what stores say of themselves, sealed

    def note(self, store: Store, name: str) -> dict[str, Any]:
        """Read a sealed note; empty if there is none yet."""
        data = store.get(name)
        found: dict[str, Any] = json.loads(self.ring.unseal(data, name, name=store.name)) if data else {}
        return found

    def write_note(self, store: Store, name: str, content: dict[str, Any]) -> None:
        """Seal a note; call it in a transaction."""
        store.put(name, self.ring.seal(json.dumps(content, sort_keys=True).encode(), name))

    # ---- tables whose columns the data decide

    def records(self, schema: pa.Schema) -> Layout:
        """Return the layout of the internal store's real records and decoys."""
        own = ((BATCH, "integer"), (ID, "bytes"), (TAG, "bytes"), (PERSON, "bytes"), (PII, "bytes"))
        return Layout("shoal_internal_records", (*own, *_free(schema)), (BATCH, ID))  # type: ignore[arg-type]

    def published(self, schema: pa.Schema) -> Layout:
        """Return the layout of the external store's rows."""
        return replace(PUBLISHED, columns=(*PUBLISHED.columns, *_free(schema)))

    def schema_of(self, store: Store) -> pa.Schema | None:
        """Return the schema of the stored data; None if there is none yet."""
        data = store.get("schema")
        return pa.ipc.read_schema(pa.py_buffer(data)) if data else None


def _free(schema: pa.Schema) -> tuple[Any, ...]:
    taken = [name for name in schema.names if name.lower().startswith(RESERVED)]
    if taken:
        raise PolicyError(f"column {taken[0]!r}: names that begin with {RESERVED} are used by the stores; rename it")
    return kinds_of(schema)


def _is_lost(name: str, other: str) -> StoreError:
    return StoreError(
        f"{name}: is empty or new, but {other} belongs to one that was filled; "
        "restore the old one, or start over with new stores and a new [sanitize] sealed"
    )


def _open_store(role: str, section: StoreSection, sealed: Path) -> Store:
    """Open a store; the sealed tables of the external one are in a file next to `sealed`, or in a second schema."""
    is_external = role == "external"
    if section.store == "sqlite":
        assert section.path is not None, "the policy was checked"
        path = section.path.path
        own = path.with_name(path.name + ".temporary") if role == "temporary" else path
        traces = sealed.with_name(sealed.name + ".traces") if is_external else None
        return SqliteStore(role, own, private=not is_external, sealed=traces)
    from shoal.sanitize.stores.postgres import PostgresStore  # psycopg is an extra

    url, shown = _url(section)
    schema = section.schema_name
    return PostgresStore(role, url, shown=shown, schema=schema, sealed=f"{schema}_sealed" if is_external else None)


def _url(section: StoreSection) -> tuple[str, str]:
    """Return the URL of a database and the name shown instead of it."""
    if section.url_env is not None:
        url = os.environ.get(section.url_env)
        if not url:
            raise StoreError(f"{section.url_env}: this environment variable has no URL; set it")
        return url, section.url_env
    assert section.url_file is not None, "the policy was checked"
    path: Path = section.url_file.path
    try:
        return path.read_text().strip(), section.url_file.text
    except OSError as error:
        raise StoreError(f"{path}: the URL cannot be read ({error.strerror})") from None
