"""Values as TOML text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def toml_key(name: str) -> str:
    """A name as a key: bare if TOML allows that, else quoted."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def toml(value: Any) -> str:
    """A text, number, list or table within one line.

    >>> toml({"path": "a b.csv", "nulls": ["?"], "site name": 3})
    '{path = "a b.csv", nulls = ["?"], "site name" = 3}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_key(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    # a JSON string is a TOML string, except for DEL
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
