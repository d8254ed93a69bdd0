"""Whether one message can unfold without end by its Avro schema: that would end the process, and no record is refused.

The package that reads Avro goes as deep as a message says, until the stack is full, and it makes as many values as a
message says, even if they take no bytes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

MOST_NESTED: Final = 100
MOST_EMPTY: Final = 100
"""Values of one record that take no bytes."""

_Known = dict[str, "_Extent | None"]


class _Extent(NamedTuple):
    """What one value of a type unfolds to."""

    depth: int
    empty: int
    """Values in it that take no bytes."""
    is_empty: bool
    """Whether all of it takes no bytes."""


class _Unbounded(Exception):
    """The text continues "the schema ..."."""


def why_unbounded(schema: Any) -> str | None:
    """Why a message of a parsed schema could unfold without end, as a text that continues "the schema ..."; else None.

    >>> why_unbounded({"type": "record", "name": "tree", "fields": [{"name": "left", "type": ["null", "tree"]}]})
    'refers to itself, so a message could be nested without end; use one that does not'
    """
    try:
        _extent(schema, {}, 0)
    except _Unbounded as found:
        return str(found)
    return None


def _extent(kind: Any, known: _Known, above: int) -> _Extent:
    """The extent of a type; `known` has the named types so far, None for those that it lies in."""
    if isinstance(kind, str) and kind in known:
        found = known[kind]
        if found is None:
            raise _Unbounded("refers to itself, so a message could be nested without end; use one that does not")
    else:
        found = _defined(kind, known, above)
    if above + found.depth > MOST_NESTED:
        raise _Unbounded(f"is nested deeper than {MOST_NESTED}; use a simpler one")
    if found.empty > MOST_EMPTY:
        raise _Unbounded(f"has more than {MOST_EMPTY} values that take no bytes; use one without them")
    return found


def _defined(kind: Any, known: _Known, above: int) -> _Extent:
    if above > MOST_NESTED:
        return _Extent(1, 0, is_empty=False)  # the caller refuses it
    if isinstance(kind, list):
        inner = [_extent(one, known, above + 1) for one in kind]
        return _Extent(1 + _deepest(inner), max((one.empty for one in inner), default=0), is_empty=False)
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "array":
        item = _extent(kind["items"], known, above + 1)
        if item.is_empty:
            raise _Unbounded("has a list of items that take no bytes, which could be of any length; use one without it")
        return _Extent(1 + item.depth, item.empty, is_empty=False)
    if name == "map":
        value = _extent(kind["values"], known, above + 1)
        return _Extent(1 + value.depth, value.empty, is_empty=False)
    if name in ("record", "error"):
        known[kind["name"]] = None
        inner = [_extent(field["type"], known, above + 1) for field in kind["fields"]]
        is_empty = all(one.is_empty for one in inner)
        made = _Extent(1 + _deepest(inner), is_empty + sum(one.empty for one in inner), is_empty=is_empty)
        known[kind["name"]] = made
        return made
    if isinstance(name, dict | list):  # {"type": {"type": ...}}
        return _extent(name, known, above + 1)
    is_empty = name == "null" or (name == "fixed" and kind["size"] == 0)
    if name in ("fixed", "enum"):
        known[kind["name"]] = _Extent(1, int(is_empty), is_empty=is_empty)
    return _Extent(1, int(is_empty), is_empty=is_empty)


def _deepest(inner: list[_Extent]) -> int:
    return max((one.depth for one in inner), default=0)
