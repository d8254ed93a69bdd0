"""Fill the tables of policy keys from the settings classes: python -m tests.docs.settings_tables

A table is between <!-- settings: METHOD, METHOD --> and <!-- end settings -->. A key that only some of the methods
have names them.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic.fields import FieldInfo

from shoal.policy.methods import section_for
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "policy.md"
_BLOCK = re.compile(r"(<!-- settings: (.*?) -->\n).*?(<!-- end settings -->)", re.DOTALL)

_ELSEWHERE = ("method", "quasi")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value: Any = info.get_default(call_default_factory=True)
    value = getattr(value, "given", value)
    if value is None or value in ((), {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def table(methods: list[str]) -> str:
    """Keys, meanings and defaults of some methods; those that all have come first."""
    fields = {name: section_for(name).model_fields for name in methods}
    keys = list(dict.fromkeys(key for own in fields.values() for key in own if key not in _ELSEWHERE))
    owners = {key: [name for name in methods if key in fields[name]] for key in keys}
    lines = ["| key of `[anonymize]` | meaning | default |", "|---|---|---|"]
    for key in sorted(keys, key=lambda key: len(owners[key]) < len(methods)):
        info = fields[owners[key][0]][key]
        only = "" if len(owners[key]) == len(methods) else ", ".join(f"`{name}`" for name in owners[key]) + ": "
        text = str(info.description).replace("|", "\\|").rstrip(".") + "."
        lines.append(f"| `{key}` | {only}{text[0].upper()}{text[1:]} | {_default(info)} |")
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """The page with every table as the settings classes describe it."""
    return _BLOCK.sub(lambda found: found[1] + table(found[2].split(", ")) + found[3], text)


def described(text: str) -> set[str]:
    """Methods that have a table."""
    return {name for found in _BLOCK.finditer(text) for name in found[2].split(", ")}


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
