"""The [sanitize] table: which columns identify a person, and where records, decoys and published rows are stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from shoal.methods.settings import Duration, Name, Names, PositiveDuration
from shoal.policy.fields import STANDARD, FilePlace, Location, Section, locate
from shoal.policy.methods import section_for
from shoal.policy.tables import ONLY_READ

Table = Mapping[str, Any]
MAID: Final = "maid"
"""The person column if the id is made of other columns."""
_OWN_STATE: Final = ("sink", "checkpoint", "trace")
_ONLY_FOR: Final = {"path": "sqlite", "url_env": "postgres", "url_file": "postgres", "schema_name": "postgres"}


def _schema_name(text: str) -> str:
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,55}", text):  # PostgreSQL cuts names, here with _sealed, to 63 bytes
        raise ValueError("must be a name of lowercase letters, digits and _, at most 56 of them")
    return text


class StoreSection(Section):
    """One database: an SQLite file, or PostgreSQL with its URL in the environment or in a file."""

    store: Literal["sqlite", "postgres"] = "sqlite"
    path: FilePlace | None = None
    url_env: Name | None = None
    url_file: FilePlace | None = None
    schema_name: Annotated[str, AfterValidator(_schema_name)] = "public"

    def plain_fields(self) -> dict[str, Any]:
        # Where a store is may change; what is in it may not.
        return {"store": self.store}


class SanitizeSection(Section):
    """The sanitization process around a method."""

    pii: Names = Field(description='list the columns that identify a person, such as ["account", "email"]')
    maid: Names = ()
    keep: PositiveDuration = Duration("7d")
    blend: bool = True
    sealed: FilePlace = Field(description="name the file of the sealed hashes")
    internal: StoreSection = Field(description="add a table [sanitize.internal]")
    external: StoreSection = Field(description="add a table [sanitize.external]")

    def plain_fields(self) -> dict[str, Any]:
        return {"pii": list(self.pii), "maid": list(self.maid), "blend": self.blend}

    @classmethod
    def cross_check(cls, table: Table) -> list[tuple[tuple[str, ...], str]]:
        found = [
            ((role, *steps), text)
            for role in ("internal", "external")
            for steps, text in _store_problems(table.get(role))
        ]
        schema = _schema_of(table.get("external"))
        if schema is not None and schema == _schema_of(table.get("internal")):
            text = "is that of [sanitize.internal], whose records must not be next to the published ones; name another"
            found.append((("external", "schema_name"), text))
        if table.get("pii") == []:
            found.append((("pii",), "names no column; name the columns that identify a person"))
        return found


def _schema_of(store: object) -> tuple[object, ...] | None:
    """Return the schema of PostgreSQL that a store is in, as far as the policy shows."""
    if not isinstance(store, Mapping) or store.get("store") != "postgres":
        return None
    return store.get("url_env"), store.get("url_file"), store.get("schema_name", "public")


def _store_problems(store: object) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(store, Mapping):
        return
    kind = store.get("store", "sqlite")
    if kind not in ("sqlite", "postgres"):
        return
    yield from (
        ((key,), f'is only for store = "{only}"; leave it out')
        for key, only in _ONLY_FOR.items()
        if key in store and kind != only
    )
    if "url" in store:
        yield ("url",), "may hold a password; name an environment variable in url_env, or a file in url_file"
    if kind == "sqlite" and "path" not in store:
        yield ("path",), "is missing; name the database file"
    if kind == "postgres" and ("url_env" in store) == ("url_file" in store):
        yield ("url_env",), "give either url_env (an environment variable) or url_file (a file) that holds the URL"


def with_maid(table: Table) -> dict[str, Any]:
    """The policy with a person column if the id is made of other columns."""
    stream, sanitize = table.get("stream"), table.get("sanitize")
    has_maid = isinstance(sanitize, Mapping) and bool(sanitize.get("maid"))
    if has_maid and isinstance(stream, Mapping) and "person" not in stream:
        return {**table, "stream": {**stream, "person": MAID}}
    return dict(table)


def sanitize_problems(table: Table) -> list[str]:
    """What cannot be combined with [sanitize]."""
    sanitize = table.get("sanitize")
    if not isinstance(sanitize, Mapping):
        return []
    return [*_section_problems(table), *_method_problems(table), *_column_problems(table, sanitize)]


def _section_problems(table: Table) -> Iterator[str]:
    for name in _OWN_STATE:
        if name in table:
            yield f"[{name}]: shoal sanitize keeps its own state and publishes to [sanitize.external]; leave it out"
    letters, source = table.get("dead_letters"), table.get("source")
    if isinstance(letters, Mapping) and letters.get("keep_rows"):
        yield "[dead_letters] keep_rows: dead letters of shoal sanitize never contain a record; leave it out"
    if isinstance(source, Mapping) and source.get("kind") in ONLY_READ:
        yield '[source] kind: shoal sanitize does not read these logs; write them as JSON lines, and set kind = "jsonl"'
    paths = source.get("path") if isinstance(source, Mapping) else None
    if STANDARD in (paths if isinstance(paths, list) else [paths]):
        yield "[source] path: standard input cannot be read again after a crash; name files"


def _method_problems(table: Table) -> Iterator[str]:
    anonymize = table.get("anonymize")
    method = section_for(anonymize.get("method")) if isinstance(anonymize, Mapping) else None
    if method is not None and not ("quasi" in method.model_fields and method.IS_STREAM):
        yield "[anonymize] method: shoal sanitize needs a method with quasi-identifiers, such as flexible-k"


def _column_problems(table: Table, sanitize: Table) -> Iterator[str]:
    """An identifying column may have no other role."""
    stream, anonymize = table.get("stream"), table.get("anonymize")
    used: dict[str, str] = {}
    if isinstance(stream, Mapping):
        used.update(dict.fromkeys(_texts(stream.get("carry")), "[stream] carry"))
        used.update(dict.fromkeys(_texts([stream.get("time")]), "[stream] time"))
    if isinstance(anonymize, Mapping):
        method = section_for(anonymize.get("method"))
        used.update({name: "[anonymize]" for _, name in (method.named_columns(anonymize) if method else ())})
    for key in ("pii", "maid"):
        for name in _texts(sanitize.get(key)):
            if name in used:
                where = used[name]
                yield f'[sanitize] {key}: the column "{name}" identifies a person and is in {where}; remove it there'
    person = stream.get("person") if isinstance(stream, Mapping) else None
    if person is not None and person != MAID and sanitize.get("maid"):
        yield "[sanitize] maid: [stream] person already identifies the person; leave one out"


def _texts(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def sanitize_places(table: Table, folder: Path) -> list[tuple[str, Location]]:
    """Files that the process writes, each with its key."""
    sanitize = table.get("sanitize")
    if not isinstance(sanitize, Mapping):
        return []
    stores = {role: sanitize.get(role) for role in ("internal", "external")}
    named = {"[sanitize] sealed": sanitize.get("sealed")} | {
        f"[sanitize.{role}] path": store.get("path") for role, store in stores.items() if isinstance(store, Mapping)
    }
    usable = {key: text for key, text in named.items() if isinstance(text, str) and text.strip() and "\0" not in text}
    return [(key, locate(text, folder)) for key, text in usable.items()]
