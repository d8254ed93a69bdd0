"""Fill the tables of policy keys from the settings classes: python -m tests.docs.settings_tables

A table is between <!-- settings: METHOD, METHOD --> and <!-- end settings -->, or between
<!-- settings: [source] KIND, KIND --> and the same end, with [source] or [sink]. A key that only some of them
have names them.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic.fields import FieldInfo

from shoal.policy.fields import Section
from shoal.policy.live.systems import SINKS, SOURCES
from shoal.policy.methods import section_for
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "policy.md"
_BLOCK = re.compile(r"(<!-- settings: (.*?) -->\n).*?(<!-- end settings -->)", re.DOTALL)

_NAMED = re.compile(r"(?:\[(source|sink)\] )?(.*)")
_ELSEWHERE = ("method", "quasi", "kind")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value: Any = info.get_default(call_default_factory=True)
    value = getattr(value, "given", value)
    if value is None or value in ((), {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _class(section: str, name: str) -> type[Section]:
    found = {"source": SOURCES.get, "sink": SINKS.get, "anonymize": section_for}[section](name)
    assert found is not None
    return found


def table(methods: list[str], section: str = "anonymize") -> str:
    """Keys, meanings and defaults of some methods or systems; those that all have come first."""
    fields = {name: _class(section, name).model_fields for name in methods}
    keys = list(dict.fromkeys(key for own in fields.values() for key in own if key not in _ELSEWHERE))
    # One row for each meaning: systems may use a word in their own way.
    rows: dict[tuple[str, str, str], list[str]] = {}
    for key in keys:
        for name in methods:
            if key in fields[name]:
                info = fields[name][key]
                rows.setdefault((key, str(info.description), _default(info)), []).append(name)
    lines = [f"| key of `[{section}]` | meaning | default |", "|---|---|---|"]
    for (key, meaning, default), owners in sorted(rows.items(), key=lambda row: len(row[1]) < len(methods)):
        only = "" if len(owners) == len(methods) else ", ".join(f"`{name}`" for name in owners) + ": "
        text = meaning.replace("|", "\\|").rstrip(".") + "."
        lines.append(f"| `{key}` | {only}{text[0].upper()}{text[1:]} | {default} |")
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """The page with every table as the settings classes describe it."""

    def made(found: re.Match[str]) -> str:
        section, names = _NAMED.fullmatch(found[2]).groups()  # type: ignore[union-attr]
        return found[1] + table(names.split(", "), section or "anonymize") + found[3]

    return _BLOCK.sub(made, text)


def described(text: str) -> set[str]:
    """Methods that have a table."""
    return {name for found in _BLOCK.finditer(text) if found[2][0] != "[" for name in found[2].split(", ")}


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
