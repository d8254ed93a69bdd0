"""Sets of items, and a tree over items of which nothing is known but who has them: rare ones are merged with rare ones.

Of the orders that were tried (by name, by co-occurrence, by popularity: `python -m benchmarks.sets_trees`) the last
loses least: an item that many people have stays as it is. Co-occurrence of rare items would also reveal what their
owners have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.inspection.columns.facts import Facts
from shoal.inspection.columns.roles import Role
from shoal.inspection.draft import Draft
from shoal.inspection.generalization.trees import free_label
from shoal.inspection.table_facts import TableFacts

FANOUT: Final = 5
_MOST_ITEMS: Final = 20_000
_Node = tuple[str, tuple[str, ...], Any]
"""A label, the items below it, and the table below it."""


def sets_draft(table: TableFacts) -> Draft:
    """What k^m-anonymity needs: the items, k, m and a tree; raise PolicyError if no column has items."""
    items = table.items or table.attribute
    if items is None:
        raise PolicyError("items: no column of items was found; name it")
    wishes, k = table.wishes, table.measure.k
    counts = count_items(table.facts[items.column], table.facts[table.person.column] if table.person else None)
    if wishes.sees_all and 2 <= len(counts) <= _MOST_ITEMS:
        trees = {items.column: "items in the order of popularity, so that rare ones are merged with rare ones"}
        generalize: dict[str, Any] = {"hierarchy": {"kind": "nested", "tree": popular_tree(counts, k)}}
    else:  # some may not have been seen: the run builds a tree
        trees, generalize = {}, {"balanced": FANOUT}
    rules = {"method": wishes.method or "k^m", "item": items.column, "k": k, "m": wishes.m or 2}
    role = Role(items.column, "items", items.reason, is_sure=items.is_sure)
    return Draft([role], {**rules, "generalize": generalize, **wishes.settings}, trees)


def count_items(item: Facts, person: Facts | None) -> Counter[str]:
    """How many people have each item; without a person each row is one."""
    values: Iterable[Any] = item.values.to_pylist()
    if item.kind == "list":
        sets = ({str(one).strip() for one in value or () if one is not None} for value in values)
    elif item.separator is not None:
        sets = ({one.strip() for one in (value or "").split(item.separator)} for value in values)
    else:
        sets = ({str(value).strip()} if value is not None else set() for value in values)
    if person is None:
        return _without_blanks(Counter(one for own in sets for one in own))
    owned = {(who, one) for who, own in zip(person.values.to_pylist(), sets, strict=True) for one in own}
    return _without_blanks(Counter(one for who, one in owned if who is not None))


def _without_blanks(counts: Counter[str]) -> Counter[str]:
    counts.pop("", None)
    return counts


def popular_tree(counts: Mapping[str, int], k: int) -> dict[str, Any]:
    """Groups of five neighbours in the order of popularity, level by level.

    Items of fewer than k people are in alphabetical order among themselves, and no label names them: what one person
    alone has, such as a query, may identify them.

    >>> popular_tree({"milk": 9, "bread": 8, "tea": 7, "beer": 1, "ale": 2, "gin": 1}, k=3)
    {'*': {'milk + bread + 1 more': {'milk': None, 'bread': None, 'tea': None},
           '3 rare items': {'ale': None, 'beer': None, 'gin': None}}}
    """
    order = sorted(counts, key=lambda item: (-counts[item] if counts[item] >= k else 0, item))
    taken, named = set(order), {item for item in order if counts[item] >= k}
    level: list[_Node] = [(item, (item,), None) for item in order]
    while len(level) > FANOUT:
        groups = -(-len(level) // FANOUT)
        cuts = [len(level) * group // groups for group in range(groups + 1)]
        level = [_joined(level[cuts[group] : cuts[group + 1]], taken, named) for group in range(groups)]
    root = "*"
    while root in taken:
        root += "*"
    return {root: {label: below for label, _, below in level}}


def _joined(group: list[_Node], taken: set[str], named: set[str]) -> _Node:
    if len(group) == 1:
        return group[0]
    items = tuple(item for _, own, _ in group for item in own)
    shown = [item for item in items[:2] if item in named]
    rest = [f"{len(items) - len(shown):,} {'more' if shown else 'rare items'}"] if len(items) > len(shown) else []
    label = free_label(" + ".join([*shown, *rest]), taken)
    taken.add(label)
    return label, items, {name: below for name, _, below in group}
