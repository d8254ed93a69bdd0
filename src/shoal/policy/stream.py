"""The [stream] table: who, when, and what is passed on."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from shoal.methods.settings import Name, Names
from shoal.policy.fields import Section

ROW: Final = "row"
"""As the name of the person column: each row is one person, unless the input has a column of this name."""
_LATER_KEYS: Final = {"time_unit": None, "carry_identifying": False}


class StreamSection(Section):
    """Who, when, and what is passed on unchanged. Not every method needs to know who or when."""

    person: Name | None = Field(default=None, description="name the column that says who")
    time: Name | None = Field(default=None, description="name the column that says when")
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    carry: Names = ()
    carry_identifying: bool = False
    """Whether carried columns may single people out."""

    def plain_fields(self) -> dict[str, Any]:
        # A key left at its default does not count, so that checkpoints made before the key existed stay valid.
        said = super().plain_fields()
        return {name: value for name, value in said.items() if name not in _LATER_KEYS or value != _LATER_KEYS[name]}
