"""What can be wrong with the parameters of z-anonymity taken together, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Given

_KEEPING_LEVEL: Final = (None, "drop", "blank")  # a misspelt one is reported as such
_UNUSED: Final = 'is used only with on_private = "generalize"; set that, or leave the hierarchy out'
_UNUSED_RULE: Final = 'is used only with on_private = "generalize"; set that, or leave it out'
_NEEDED: Final = {
    "z": "is missing; give the number of people that must share a value, or a target that z follows",
    "window": 'is missing; give how far back people count, such as "1h"',
}
_COMBINED: Final = (
    ("k", "combine", "is missing; give how many people must share what is released of a person in an epoch"),
    ("combine", "k", 'is missing; k goes with combine = "k", which keeps rows waiting for an epoch'),
)


class Roles(NamedTuple):
    """The columns besides the attributes."""

    person: str
    time: str
    carry: tuple[str, ...]


def role_problems(roles: Roles, attributes: Mapping[str, Given]) -> Iterator[Problem]:
    for role, name in (("person", roles.person), ("time", roles.time), *(("carry", name) for name in roles.carry)):
        if not isinstance(name, str) or not name:
            yield (role,), "must be the name of a column"
    names = [roles.time, roles.person, *attributes, *roles.carry]
    for name in sorted({name for name in names if isinstance(name, str) and names.count(name) > 1}):
        yield (f"column {name!r}",), "has two roles; a column is person, time, attribute or carried, once"


def own_tables(given: Given) -> dict[str, Given]:
    """Attributes and what they set themselves; what is not a table is reported elsewhere."""
    attribute = given.get("attribute")
    if isinstance(attribute, str):
        return {attribute: {}}
    if not isinstance(attribute, Mapping):
        return {}
    return {name: own for name, own in attribute.items() if isinstance(own, Mapping)}


def _target_problems(given: Given, tables: Mapping[str, Given]) -> Iterator[Problem]:
    """What cannot be combined with a z that follows the stream."""
    places: dict[tuple[str, ...], Given] = {(): given} | {("attribute", name): own for name, own in tables.items()}
    for place, holder in places.items():
        if "z" in holder:
            yield (
                (*place, "z"),
                "cannot be combined with a target, which z then follows; leave one of them out",
            )
        if holder.get("on_private") == "generalize":
            yield (*place, "on_private"), 'must be "drop" or "blank" with a target, which needs values as they are'
    if "combine" in given:
        yield ("combine",), "promises what a target aims at; leave one of them out"


def _column_problems(given: Given, own: Given, *, alone: bool) -> Iterator[tuple[str, str]]:
    """What one attribute lacks; `own` wins over what is given for all."""
    where = "" if alone else ", here or for all attributes"
    for key, text in _NEEDED.items():
        if key not in own and key not in given and not (key == "z" and "target" in given):
            yield key, text + where
    on_private = _effective(given, own, "on_private")
    if on_private == "generalize" and "hierarchy" not in own and "hierarchy" not in given:
        yield "hierarchy", f'is missing; on_private = "generalize" needs one{where}'
    if on_private in _KEEPING_LEVEL:
        yield from ((key, text) for key, text in (("hierarchy", _UNUSED), ("residual", _UNUSED_RULE)) if key in own)


def _passes_over(given: Given, own: Given) -> bool:
    """Whether the column has no use for the hierarchy given for all."""
    return "hierarchy" in own or _keeps_level(given, own)


def _keeps_level(given: Given, own: Given) -> bool:
    return _effective(given, own, "on_private") in _KEEPING_LEVEL


def _effective(given: Given, own: Given, key: str) -> object:
    return own.get(key, given.get(key))


def problems_together(given: Given) -> Iterator[Problem]:
    """What is missing, unused or contradictory."""
    tables = own_tables(given)
    alone = isinstance(given.get("attribute"), str)
    for name, own in tables.items():
        place = () if alone else ("attribute", name)
        yield from (((*place, key), text) for key, text in _column_problems(given, own, alone=alone))
    if "hierarchy" in given and tables and all(_passes_over(given, own) for own in tables.values()):
        yield ("hierarchy",), _UNUSED
    if "residual" in given and tables and all(_keeps_level(given, own) for own in tables.values()):
        yield ("residual",), _UNUSED_RULE
    yield from (((key,), text) for key, other, text in _COMBINED if key not in given and other in given)
    if "target" in given:
        yield from _target_problems(given, tables)
