"""The auditor's inputs: the policy and how its values are read, the release, the truth and the trace."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.auditor.reading.rows import Rows
from shoal.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as written, and the folder its relative paths start from."""

    content: Mapping[str, Any]
    folder: Path

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a table of the policy, empty when it is not there."""
        found = self.content.get(name, {})
        if not isinstance(found, Mapping):
            raise PolicyError(f"[{name}]: not a table")
        return found


@dataclass(frozen=True, slots=True)
class Evidence:
    """The policy and the release; the truth and the trace where they are at hand."""

    policy: Policy
    release: Rows
    truth: Rows | None
    trace: Rows | None
    odd_rows: int = 0
    """Rows of the release's text files that are written otherwise than the others."""


def read_policy(policy: Any) -> Policy:
    """Read a policy from a path or take it as a mapping."""
    if isinstance(policy, Mapping):
        return Policy(policy, Path())
    if not isinstance(policy, str | Path):
        raise PolicyError("policy: give the policy's path or its content; without it no promise is known")
    path = Path(policy)
    try:
        return Policy(tomllib.loads(path.read_text(encoding="utf-8")), path.parent)
    except OSError as error:
        raise PolicyError(f"{path}: the policy cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise PolicyError(f"{path}: not TOML; check the file") from None


def words_of(content: Any) -> Iterator[str]:
    """Yield every name and every text of a policy: a column that is none of them is not needed."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for name, inner in content.items():
            yield str(name)
            yield from words_of(inner)
    elif isinstance(content, list | tuple):
        for inner in content:
            yield from words_of(inner)


def person_of(stream: Mapping[str, Any]) -> str:
    """Return the column that tells people apart."""
    if not isinstance(stream.get("person"), str):
        raise PolicyError("[stream] person: name the column")
    return str(stream["person"])


def names_of(given: Any) -> tuple[str, ...]:
    """Return names given as one or as a list."""
    return (given,) if isinstance(given, str) else tuple(str(name) for name in given)


def whole_of(rules: Mapping[str, Any], key: str, default: int) -> int:
    """Return a whole number from 1."""
    found = rules.get(key)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise PolicyError(f"{key}: must be a whole number from 1")
    return found


def is_number(value: Any) -> bool:
    """Tell whether a value of a policy is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
