"""Compile the description of an attribute into the arrays that methods use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.concepts import IS_A, NO_PROPERTY, Concepts, Starts, Tag
from shoal.hierarchies.tree import ROOT_PARENT, is_label

Key = str
"""Identifies a thing: an IRI, or a column with its cells."""
Node = tuple[int, Key]
"""A label before it has its text: the number of its property, and the thing."""
Links = Mapping[Key, Sequence[Key]]


@dataclass(frozen=True, slots=True)
class Sketch:
    """The description of one attribute.

    Attributes
    ----------
    name, tag, root
        As in the compiled attribute.
    texts
        Name of each value, class and object.
    values
        The leaves.
    parents
        Classes directly above values and classes; those without one lie directly below the root.
    properties
        Names of the other properties, in order of priority.
    statements
        For each of these, the objects of values and classes, as stated directly.
    wider
        Things directly above the objects of properties.
    where
        Name of the origin for messages.
    """

    name: str
    tag: Tag | None
    root: str
    texts: Mapping[Key, str]
    values: Sequence[Key]
    parents: Links
    properties: Sequence[str] = ()
    statements: Mapping[str, Links] = field(default_factory=dict)
    wider: Links = field(default_factory=dict)
    where: str = "ontology"


def build_concepts(sketch: Sketch) -> Concepts:
    """Compile one attribute; raises PolicyError for a cycle, a missing text or a value named like the root."""
    _check(sketch)
    labels_of = nodes_above(sketch)
    values: dict[str, set[Node]] = {}
    for key in sketch.values:  # values of one name are one value: data cannot distinguish them
        values.setdefault(sketch.texts[key], set()).update(labels_of[key])
    names = sorted(values)
    label_of = _label_texts(sketch, sorted(set().union(*values.values())), names)
    inner = sorted(label_of, key=lambda node: (node[0], label_of[node]))
    place = {node: len(names) + number for number, node in enumerate(inner)}
    labels = [*names, *(label_of[node] for node in inner), sketch.root]
    try:
        "\n".join(labels).encode()
    except UnicodeEncodeError:
        raise PolicyError(f"{sketch.where}: a label holds half a character; write it as UTF-8") from None
    starts, above = _rows([values[name] for name in names], place, len(labels))
    content = {
        "name": sketch.name, "tag": sketch.tag, "values": len(names), "labels": labels,
        "properties": (IS_A, *sketch.properties), "above_starts": starts, "above": above,
        "property_of": [*[NO_PROPERTY] * len(names), *(node[0] for node in inner), 0],
        "tree_parents": _tree_parents(sketch, names, inner, place, labels),
    }  # fmt: skip
    return Concepts.from_dict(content)


def nodes_above(sketch: Sketch) -> dict[Key, set[Node]]:
    """Every label above each value and class: its classes, and its objects and theirs."""
    objects = closure(sketch.wider, sketch.texts, sketch.where)
    said: dict[Key, set[Node]] = {}
    for number, name in enumerate(sketch.properties, start=1):
        for subject, things in sketch.statements.get(name, {}).items():
            nodes = said.setdefault(subject, set())
            for thing in things:
                nodes.add((number, thing))
                nodes.update((number, wider) for wider in objects.get(thing, ()))
    found: dict[Key, set[Node]] = {}
    for key in _parents_first(sketch.parents, sketch.texts, sketch.where, sketch.values):
        nodes = set(said.get(key, ()))
        for parent in sketch.parents.get(key, ()):
            nodes.add((0, parent))
            nodes |= found[parent]
        found[key] = nodes
    return found


def _check(sketch: Sketch) -> None:
    where = f"{sketch.where}: {sketch.name!r}"
    if not sketch.values:
        raise PolicyError(f"{where} has no values; put at least one below it")
    if not is_label(sketch.root):
        raise PolicyError(f"{where}: the root needs a label that is not empty")
    if any(sketch.texts[key] == sketch.root for key in sketch.values):
        raise PolicyError(f"{where}: a value is called like the root, {sketch.root!r}; give the root another label")


# ---- ancestors


def closure(links: Links, texts: Mapping[Key, str], where: str) -> dict[Key, set[Key]]:
    """All ancestors of each thing that has any."""
    above: dict[Key, set[Key]] = {}
    for key in _parents_first(links, texts, where, ()):
        parents = links.get(key, ())
        above[key] = set(parents).union(*(above[parent] for parent in parents))
    return above


def _parents_first(links: Links, texts: Mapping[Key, str], where: str, more: Iterable[Key]) -> list[Key]:
    """Every key, each after all its ancestors; not recursive, because chains may be long."""
    order: dict[Key, None] = {}
    for start in chain(links, more):
        if start in order:
            continue
        if all(parent in order for parent in links.get(start, ())):  # the case of most values
            order[start] = None
            continue
        path, on_path = [start], {start}
        stack = [iter(links.get(start, ()))]
        while stack:
            parent = next(stack[-1], None)
            if parent is None:
                stack.pop()
                done = path.pop()
                on_path.discard(done)
                order[done] = None
            elif parent in on_path:
                raise _cycle(path[path.index(parent) :], texts, where)
            elif parent not in order:
                path.append(parent)
                on_path.add(parent)
                stack.append(iter(links.get(parent, ())))
    return list(order)


def _cycle(keys: Sequence[Key], texts: Mapping[Key, str], where: str) -> PolicyError:
    first = min(range(len(keys)), key=keys.__getitem__)
    names = [repr(texts.get(key, key)) for key in (*keys[first:], *keys[: first + 1])]
    circle = " → ".join([*names[:6], "…"] if len(names) > 8 else names)
    return PolicyError(f"{where}: classes lie below themselves: {circle}; remove one of these statements")


# ---- texts


def _label_texts(sketch: Sketch, nodes: Sequence[Node], values: Iterable[str]) -> dict[Node, str]:
    """A unique text for each label.

    Its own text where that is unique; otherwise with its property, with what it lies under, or with a number added.
    """
    taken = {*values, sketch.root}
    own = {node: sketch.texts[node[1]] for node in nodes}
    uses = Counter(own.values())
    label_of = {node: text for node, text in own.items() if uses[text] == 1 and text not in taken}
    taken.update(label_of.values())
    rest = [node for node in nodes if node not in label_of]
    for add in (_with_property, _with_wider):
        proposed = {node: add(sketch, node) for node in rest}
        uses = Counter(proposed.values())
        fitting = {node: text for node, text in proposed.items() if uses[text] == 1 and text not in taken}
        label_of |= fitting
        taken.update(fitting.values())
        rest = [node for node in rest if node not in fitting]
    for node in rest:
        label_of[node] = _numbered(_with_property(sketch, node), taken)
        taken.add(label_of[node])
    return label_of


def _with_property(sketch: Sketch, node: Node) -> str:
    return f"{sketch.texts[node[1]]} ({(IS_A, *sketch.properties)[node[0]]})"


def _with_wider(sketch: Sketch, node: Node) -> str:
    wider = (sketch.wider if node[0] else sketch.parents).get(node[1], ())
    texts = sorted(sketch.texts[key] for key in wider)
    return f"{sketch.texts[node[1]]} ({texts[0]})" if texts else _with_property(sketch, node)


def _numbered(text: str, taken: set[str]) -> str:
    number = 2
    while f"{text} {number}" in taken:
        number += 1
    return f"{text} {number}"


# ---- arrays


def _rows(above: Sequence[set[Node]], place: Mapping[Node, int], nodes: int) -> tuple[Starts, Starts]:
    """The nodes above each value as consecutive runs: fewest leaves first, then by number."""
    lengths = np.fromiter(map(len, above), dtype=np.int64, count=len(above))
    flat = np.fromiter(map(place.__getitem__, chain.from_iterable(above)), dtype=np.int64, count=int(lengths.sum()))
    counts = np.bincount(flat, minlength=nodes)
    order = np.lexsort((flat, counts[flat], np.repeat(np.arange(len(above)), lengths)))
    return np.concatenate(([0], np.cumsum(lengths))), flat[order]


def _tree_parents(
    sketch: Sketch, values: Sequence[str], inner: Sequence[Node], place: Mapping[Node, int], labels: Sequence[str]
) -> list[int]:
    root = len(labels) - 1
    first: dict[str, int] = dict.fromkeys(values, root)
    for key in sketch.values:
        text = sketch.texts[key]
        first[text] = min(first[text], _first_parent(sketch, key, place, root))
    classes = [_first_parent(sketch, key, place, root) if number == 0 else ROOT_PARENT for number, key in inner]
    return [*(first[value] for value in values), *classes, ROOT_PARENT]


def _first_parent(sketch: Sketch, key: Key, place: Mapping[Node, int], root: int) -> int:
    """The first parent by name: nodes of classes are numbered by name, and the root comes last."""
    return min((place[0, parent] for parent in sketch.parents.get(key, ())), default=root)
