"""A schema registry with Confluent's HTTP interface: schemas by number."""

from __future__ import annotations

import base64
import random
import struct
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson

from shoal.avro.types import UnusableSchema
from shoal.errors import RunError

HEADER: Final = struct.Struct(">bI")
"""What precedes every message: a zero byte and the number of its schema."""
_TIMEOUT: Final = 5.0
_TRIES: Final = 3
_FIRST_WAIT: Final = 0.1
_NOT_FOUND: Final = 404
_BUSY: Final = 429
_FAILED: Final = 500
_CONTENT: Final = "application/vnd.schemaregistry.v1+json"


class RegistryUnreachable(RunError):
    """The registry does not answer now. Nothing was decoded or registered: the call may be repeated."""


class RegistryRefused(RunError):
    """The registry answers, but not with what is needed."""


class SchemaRegistry:
    """Fetches schemas by number, and registers new ones. Schemas never change, so each is fetched once.

    A call tries three times, within seconds. After that it raises :class:`RegistryUnreachable`: the caller knows
    how long to keep trying.

    Parameters
    ----------
    url
        Such as ``http://localhost:8081``.
    credentials
        ``user:password``, if the registry asks for them. They appear in no message.
    wait
        Called between attempts with a number of seconds.
    """

    def __init__(self, url: str, *, credentials: str | None = None, wait: Callable[[float], None] = time.sleep) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise RegistryRefused("registry: must be a URL that begins with http:// or https://")
        self._url = url.rstrip("/")
        self._credentials = credentials
        self._wait = wait
        self._schemas: dict[int, Any] = {}

    def __repr__(self) -> str:
        return f"SchemaRegistry({self._url!r})"

    def schema(self, number: int) -> Any | None:
        """The schema with this number, as Avro describes schemas; None if the registry has no such number.

        UnusableSchema if it is not complete in itself.
        """
        if number not in self._schemas:
            answer = self._call(f"/schemas/ids/{number}")
            if answer is not None and answer.get("schemaType", "AVRO") != "AVRO":
                answer = None  # such as Protobuf: no message in Avro can have this number
            self._schemas[number] = None if answer is None else self._described(answer)
        return self._schemas[number]

    def register(self, subject: str, schema: Any) -> int:
        """Register a schema under a subject; returns its number, the same one if it is there already."""
        body = orjson.dumps({"schema": orjson.dumps(schema).decode()})
        answer = self._call(f"/subjects/{quote(subject, safe='')}/versions", body)
        number = None if answer is None else answer.get("id")
        if not isinstance(number, int):
            raise self._refused("its answer has no id; check that the URL is that of a schema registry")
        return number

    def check(self) -> None:
        """Raise RegistryUnreachable or RegistryRefused if it does not answer, or not to these credentials."""
        self._call("/config")

    def _described(self, answer: dict[str, Any]) -> Any:
        if answer.get("references"):
            raise UnusableSchema("refers to other schemas, which is not supported; register it as one schema")
        try:
            return orjson.loads(answer["schema"])
        except (KeyError, TypeError, ValueError):
            raise self._refused("its answer has no schema; check that the URL is that of a schema registry") from None

    def _call(self, path: str, body: bytes | None = None) -> dict[str, Any] | None:
        """The answer as JSON; None for HTTP 404."""
        reason = ""
        for attempt in range(_TRIES):
            if attempt:
                self._wait(_FIRST_WAIT * 4**attempt * random.uniform(0.5, 1.0))
            try:
                return self._answer(path, body)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == _NOT_FOUND and body is None:
                        return None
                    if error.code < _FAILED and error.code != _BUSY:
                        raise self._refused(f"HTTP {error.code}{_meaning(error.code)}") from None
                    reason = f"HTTP {error.code}"
            except (OSError, ValueError, HTTPException) as error:
                inner = getattr(error, "reason", error)
                reason = getattr(inner, "strerror", None) or type(inner).__name__
        raise RegistryUnreachable(
            f"registry {self._url}: does not answer ({reason}); check the URL and that the registry runs"
        )

    def _answer(self, path: str, body: bytes | None) -> dict[str, Any]:
        request = urllib.request.Request(self._url + path, data=body, headers={"Accept": _CONTENT})
        if body is not None:
            request.add_header("Content-Type", _CONTENT)
        if self._credentials is not None:
            encoded = base64.b64encode(self._credentials.encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {encoded}")
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            found = orjson.loads(answer.read())
        if not isinstance(found, dict):
            raise ValueError
        return found

    def _refused(self, why: str) -> RegistryRefused:
        return RegistryRefused(f"registry {self._url}: {why}")


def _meaning(code: int) -> str:
    meanings = {
        401: ": it asks for credentials; name them in [source.secrets] or [sink.secrets] as registry.auth",
        403: ": these credentials may not do this; ask its administrator",
        404: ": there is no registry under this URL; check it",
        409: ": the subject has a schema that this one is not compatible with; choose another topic, or change the "
        "compatibility of the subject",
        422: ": it does not accept this schema; check that it accepts Avro",
    }
    return meanings.get(code, "")
