"""Panels: each unit, be it a person, a firm or a tree, has one row at each of several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shoal.inspection.columns.column_names import words, words_of
from shoal.inspection.person.person_names import is_trait_name
from shoal.inspection.person.person_values import HANDFUL, Column

_PERIODS: Final = words("""
    time year month week day wave period round visit trial date quarter annee mon jahr monat welle ano anno
""")
_MOST_PAIRS: Final = 0.74
"""The share of all pairs of a unit and a time that must be there: 1 if nobody ever misses a time."""


def is_period_name(name: str) -> bool:
    """Whether a column may say when, by its name."""
    return bool(_PERIODS.intersection(words_of(name)))


def unit_of_panel(columns: Sequence[Column], time: str | None) -> Column | None:
    """Of two columns that together tell all rows apart, the one with more values, unless it says when.

    Tables of counts by age and sex look the same, so traits of people are no units.
    """
    able = [one for one in columns if not is_trait_name(one.name) and _may_cross(one, time)]
    for one in sorted(able, key=lambda one: -one.repeats.distinct):
        if one.repeats.distinct >= HANDFUL and not _says_when(one, time):
            for other in able:
                is_smaller = other.repeats.distinct <= one.repeats.distinct or _says_when(other, time)
                if other is not one and is_smaller and one.is_crossed_with(other, share=_MOST_PAIRS):
                    return one
    return None


def _may_cross(one: Column, time: str | None) -> bool:
    """Whether a column repeats, and is no measurement and no text of any length."""
    is_discrete = one.facts.kind == "text" or one.is_whole or _says_when(one, time)
    repeats = 2 <= one.repeats.distinct <= one.repeats.known / 2
    return is_discrete and repeats and not one.facts.missing and one.facts.shape not in ("free", "set")


def _says_when(one: Column, time: str | None) -> bool:
    return one.name == time or one.facts.kind == "moment" or one.facts.shape == "date" or is_period_name(one.name)
