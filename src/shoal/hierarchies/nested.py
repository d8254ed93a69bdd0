"""A hierarchy written as tables within tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.errors import PolicyError
from shoal.hierarchies.tree import ROOT_PARENT, Tree, is_label, plant


def plant_nested(nested: Mapping[str, Any]) -> Tree:
    """Read ``{"all": {"news": {"a.example": None}, "shop": ["b.example"]}}``."""
    if not isinstance(nested, Mapping) or len(nested) != 1:
        raise PolicyError("hierarchy: a nested one has exactly one root; put everything under one label")
    labels: list[str] = []
    parents: list[int] = []
    known: set[str] = set()
    todo: list[tuple[str, Any, int]] = [(*entry, ROOT_PARENT) for entry in nested.items()]
    while todo:
        label, below, parent = todo.pop()
        _check_new(label, known)
        known.add(label)
        labels.append(label)
        parents.append(parent)
        todo.extend((child, content, len(labels) - 1) for child, content in _children(label, below))
    return plant(labels, parents)


def _check_new(label: object, known: set[str]) -> None:
    if not is_label(label):
        raise PolicyError("hierarchy: every label must be text that is not empty")
    if label in known:
        raise PolicyError(f"hierarchy: the label {label!r} stands in two places; rename one of them")


def _children(label: str, below: Any) -> Iterator[tuple[Any, Any]]:
    if below is None:
        return iter(())
    if isinstance(below, Mapping):
        return iter(below.items())
    if isinstance(below, list | tuple):
        return ((leaf, None) for leaf in below)
    raise PolicyError(
        f"hierarchy: below the label {label!r} must stand a table of labels, a list of leaves, or nothing"
    )
