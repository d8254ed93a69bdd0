"""What a family of methods makes of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shoal.inspection.columns.roles import Role


@dataclass(slots=True)
class Draft:
    """Roles and the section [anonymize], and what there is to say about them."""

    roles: list[Role]
    """Of the columns that the family looked at."""
    anonymize: dict[str, Any]
    trees: dict[str, str] = field(default_factory=dict)
    """How the tree of a column was found."""
    ends: dict[str, str] = field(default_factory=dict)
    """What the ends of the ranges of a column give away."""
    costs: dict[str, float] = field(default_factory=dict)
    """What different values of a sensitive column in each group cost, as a share of the rows."""
    missing: str = ""
    """Why rows show what they show of missing values; nothing if no value is missing."""
