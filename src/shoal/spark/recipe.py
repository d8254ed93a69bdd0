"""A method as it travels to executors: its name and settings, never its key.

Executors read the key themselves, from the file that SHOAL_KEY_FILE names there. A plan, a log or a task description
contains only a fingerprint of the key: enough to compare two keys, not to recover one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.crypto.keys import KEY_FILE_VARIABLE, Secret, secret_from_environment
from shoal.errors import PolicyError, VaultError
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS, Family

_PURPOSE = "which key spark executors use"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make a method again, in another process with the same key."""

    method: str
    header: Mapping[str, Any]
    key_mark: str

    @classmethod
    def of(cls, method: Any) -> Recipe:
        """The recipe of a method; refuse a key that executors do not have."""
        secret = shared_secret()
        own = getattr(method, "_secret", secret)
        if not secret.same_as(own):
            raise PolicyError(
                f"key: on Spark the key comes from the file that {KEY_FILE_VARIABLE} names, here and on every "
                "executor; leave key out"
            )
        return cls(method.method, method.settings.to_header(), mark_of(secret))

    @property
    def family(self) -> Family:
        """The family of the method."""
        return METHODS[self.method].family

    def with_settings(self, **changes: Any) -> Recipe:
        """The same method with some settings changed."""
        return replace(self, header={**self.header, **changes})

    def settings(self) -> Any:
        """The checked settings."""
        return METHODS[self.method].load().settings_class.from_header(self.header)

    def secret(self) -> Secret:
        """The key of this process; refuse another than the driver's."""
        secret = shared_secret()
        if mark_of(secret) != self.key_mark:
            raise VaultError(
                f"the key in {KEY_FILE_VARIABLE} of an executor is not the driver's; put the same file on every machine"
            )
        return secret

    def make(self) -> StreamMethod:
        """The method, empty. The shard stores pending rows, so the warning about losing them is off."""
        made: Any = METHODS[self.method].load().from_header(self.header, self.secret())
        made._is_kept = True  # noqa: SLF001 - a method of an executor, not of a user
        found: StreamMethod = made
        return found


def mark_of(secret: Secret) -> str:
    """The fingerprint of a key and of those that replace it later."""
    return secret.subkey(_PURPOSE, repr(secret.later_marks).encode() if secret.later else b"").hex()[:32]


def shared_secret() -> Secret:
    """The key of this process; refuse to start without one: every executor would make one of its own."""
    secret = secret_from_environment()
    if secret is None:
        raise VaultError(
            f"{KEY_FILE_VARIABLE} is not set; on Spark every executor needs the same key: make one with openssl rand "
            f"-hex 32 > shoal.key, put it on every machine, and set {KEY_FILE_VARIABLE} here and in "
            f"spark.executorEnv.{KEY_FILE_VARIABLE}"
        )
    return secret
