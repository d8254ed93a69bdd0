"""The [stream] table: who, when, and what is passed on."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from shoal.policy.fields import Name, Names, Section

ROW: Final = "row"
"""As the name of the person column: each row is one person, unless the input has a column of this name."""


class StreamSection(Section):
    """Who, when, and what is passed on unchanged. Not every method needs to know who or when."""

    person: Name | None = Field(default=None, description="name the column that says who")
    time: Name | None = Field(default=None, description="name the column that says when")
    time_unit: Literal["s", "ms", "us", "ns"] = "s"
    carry: Names = ()
