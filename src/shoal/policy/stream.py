"""The [stream] table: who, when, and what is passed on."""

from __future__ import annotations

from pydantic import Field

from shoal.policy.fields import Name, Names, Section


class StreamSection(Section):
    """Who, when, and what is passed on unchanged. Not every method needs to know who or when."""

    person: Name | None = Field(default=None, description="name the column that says who")
    time: Name | None = Field(default=None, description="name the column that says when")
    carry: Names = ()
