"""Settings of client libraries by their own names, and secrets among them: named in a policy, never written there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, PlainValidator, ValidationInfo

from shoal.errors import PolicyError

_SECRET_WORDS: Final = (
    r"(api)?keys?|key_?files?|secrets?|tokens?|salt|pepper|passwords?|passwd|pwd|passphrases?|credentials?"
)
_CLIENT_WORDS: Final = r"jaas|user\.info|oauthbearer\.config|pem|seed"
_NAMES_A_FILE: Final = re.compile(r"(location|file|path|keytab|user_credentials|nkeys_seed)$")
_HOW: Final = 'must be "env:" and the name of an environment variable, or "file:" and a path'
REGISTRY: Final = "registry.auth"
"""Among the secrets: ``user:password`` for the schema registry."""


def is_secret_name(name: str) -> bool:
    """Whether a key looks as if its value were secret."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.search(rf"(?<![a-z])({_SECRET_WORDS})(?![a-z])", words) is not None


def is_secret_setting(name: str) -> bool:
    """Whether a setting of a client library is secret; one that names a file with a secret is not."""
    if _NAMES_A_FILE.search(name.lower()):
        return False
    return is_secret_name(name) or re.search(rf"(?<![a-z])({_CLIENT_WORDS})(?![a-z])", name.lower()) is not None


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a secret is; it is read when a run starts."""

    place: Literal["env", "file"]
    name: str
    """Of the environment variable, or the path as written."""
    path: Path

    def read(self, key: str) -> str:
        """The secret; `key` is the policy's key, for errors."""
        if self.place == "env":
            found = os.environ.get(self.name)
            if not found:
                raise PolicyError(f"{key}: the environment variable {self.name} is not set; set it")
            return found
        try:
            text = self.path.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise PolicyError(f"{key}: {self.name} cannot be read ({error.strerror}); check the path") from None
        except UnicodeDecodeError:
            raise PolicyError(f"{key}: {self.name} is not UTF-8 text; write the secret as text") from None
        if not text:
            raise PolicyError(f"{key}: {self.name} is empty; write the secret into it")
        return text


def _reference(value: object, info: ValidationInfo) -> SecretReference:
    place, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not colon or place not in ("env", "file") or not name.strip() or "\0" in name:
        raise ValueError(_HOW)
    folder = (info.context or {}).get("folder", Path())
    return SecretReference("env" if place == "env" else "file", name, folder / name)


def _without_login(text: str) -> str:
    """An address, which messages and checkpoints repeat; one with a password or other settings is refused."""
    if not text.strip():
        raise ValueError("must not be empty")
    if "@" in text:
        raise ValueError("has a user or a password in it; put them into client and secrets")
    if "?" in text:
        raise ValueError("has settings in it, behind a question mark; put them into client and secrets")
    return text


def _client_value(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("must be text, a number, true or false")
    return value


ClientValue = Annotated[Any, PlainValidator(_client_value)]
Secret = Annotated[SecretReference, PlainValidator(_reference)]
Address = Annotated[str, AfterValidator(_without_login)]


def client_problems(
    client: object, secrets: object, reserved: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings that belong elsewhere: secrets, and what the policy has a key for."""
    for name in secrets if isinstance(secrets, Mapping) else ():
        if name in reserved:
            yield ("secrets", name), reserved[name]
    for name in client if isinstance(client, Mapping) else ():
        if is_secret_setting(str(name)):
            yield (
                ("client", name),
                f'secrets do not belong in a policy; write it below secrets, as "{name}" = "env:NAME" or "file:PATH"',
            )
        elif name in reserved:
            yield ("client", name), reserved[name]
        elif isinstance(secrets, Mapping) and name in secrets:
            yield ("client", name), "is among the secrets too; leave one out"


def read_secrets(secrets: Mapping[str, SecretReference], section: str) -> dict[str, str]:
    """All secrets of a section."""
    return {name: reference.read(f'[{section}.secrets] "{name}"') for name, reference in secrets.items()}
