"""Read a policy without the publisher's code: its tables, and single values of them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.errors import PolicyError

METHODS: Final[dict[str, str]] = {
    "z-anonymity": "z",
    "fads": "tuples",
    "fads-varied": "tuples",
    "fast": "tuples",
    "k-varp": "tuples",
    "iot-anonymization": "tuples",
    "castle": "tuples",
    "least-loss": "tuples",
    "flexible-k": "flexible",
    "k^m": "sets",
    "k^m-apriori": "sets",
}
"""By method: its family."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as written, and the folder its relative paths start from."""

    content: Mapping[str, Any]
    folder: Path

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a table of the policy; an empty one if the policy has none of that name."""
        found = self.content.get(name, {})
        if not isinstance(found, Mapping):
            raise PolicyError(f"[{name}]: not a table")
        return found

    def located(self, path: Any) -> Any:
        """A path of the policy, which starts from its folder; anything else as it is."""
        return self.folder / path if isinstance(path, str | Path) else path


def read_policy(policy: Any) -> Policy:
    """Read a policy from a path, or take its content: a mapping, or that of a method, which describes itself."""
    policy = getattr(policy, "policy", policy)
    if isinstance(policy, Mapping):
        return Policy(policy, Path())
    if not isinstance(policy, str | Path):
        raise PolicyError("policy: give the policy's path, its content or the method; without it no promise is known")
    path = Path(policy)
    try:
        return Policy(tomllib.loads(path.read_text(encoding="utf-8")), path.parent)
    except OSError as error:
        raise PolicyError(f"{path}: the policy cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise PolicyError(f"{path}: not TOML; check the file") from None


def words_of(content: Any) -> Iterator[str]:
    """Yield every name and every text of a policy; a column that is not among them is not needed."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for name, inner in content.items():
            yield str(name)
            yield from words_of(inner)
    elif isinstance(content, list | tuple):
        for inner in content:
            yield from words_of(inner)


def column_of(section: Mapping[str, Any], key: str) -> str:
    """Return the column that a key of ``[stream]`` names."""
    name = section.get(key)
    if not isinstance(name, str):
        raise PolicyError(f"[stream] {key}: name the column")
    return name


def names_of(given: Any) -> tuple[str, ...]:
    """Return names given as one or as a list."""
    return (given,) if isinstance(given, str) else tuple(str(name) for name in given)


def whole_of(rules: Mapping[str, Any], key: str, default: int | None = None, *, least: int = 1, where: str = "") -> int:
    """Return a whole number, not below ``least``; without a default it must be given."""
    found = default if rules.get(key) is None else rules[key]
    if isinstance(found, bool) or not isinstance(found, int) or found < least:
        raise PolicyError(f"{where}{key}: must be a whole number from {least}")
    return found


def share_of(rules: Mapping[str, Any], key: str, default: float | None = None, *, where: str = "") -> float:
    """Return a number above 0, up to 1; without a default it must be given."""
    found = rules.get(key, default)
    if not is_number(found) or not 0 < found <= 1:
        raise PolicyError(f"{where}{key}: must be a share above 0, up to 1")
    return float(found)


def is_number(value: Any) -> bool:
    """Return whether a value of a policy is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
