"""One attribute of an ontology as arrays: its values, and every label above them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NoReturn, Self, get_args

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.tree import ROOT_PARENT, IntArray, is_label

Tag = Literal["sparse", "normal"]
Starts = NDArray[np.int64]
IS_A: Final = "is a"
"""The property that every attribute has: a value is an instance of its classes."""
NO_PROPERTY: Final = -1


class Concepts:
    """The values of one attribute, the labels that can replace them, and the values each label covers.

    Attributes
    ----------
    name
        Name of the attribute.
    tag
        ``"sparse"``, ``"normal"``, or None where the ontology has no tag.
    root
        The label that covers everything.
    values
        The leaves, sorted.
    labels
        Labels of all nodes: the values in their order, then the other labels by property and text, the root last.
    leaf_counts
        Number of values each node covers.
    properties
        ``"is a"``, then the others by priority.
    property_of
        Property of every node, as an index of `properties`: -1 for a value, 0 for a class and the root.
    above_starts, above
        The nodes above value ``i``, without itself and the root, are ``above[above_starts[i]:above_starts[i + 1]]``:
        those that cover the fewest values first, then by property, then by label.
    tree_parents
        The class directly above every value and class, -1 for the root and for other labels; where there are
        several, the first by name.

    Notes
    -----
    Nodes depend on the content of the ontology and not on its order. All arrays are read-only.

    Examples
    --------
    >>> from shoal.hierarchies.ontology.ontology import Ontology
    >>> phones = [
    ...     {"model": "S3", "brand": "Samsung", "os": "Android"},
    ...     {"model": "P8", "brand": "Huawei", "os": "Android"},
    ...     {"model": "5s", "brand": "Apple", "os": "iOS"},
    ... ]
    >>> model = Ontology.from_table(phones, value="model", is_a=["brand"], properties=["os"]).attribute("model")
    >>> model.covered("Android"), model.loss("Android"), model.loss("any model")
    (('P8', 'S3'), 0.5, 1.0)
    >>> model.labels_above("S3")
    ('Samsung', 'Android')
    """

    __slots__ = (
        "_covered_by", "_nodes", "above", "above_starts", "labels", "leaf_counts", "name", "properties", "property_of",
        "root", "tag", "tree_parents", "values",
    )  # fmt: skip
    name: str
    tag: Tag | None
    root: str
    values: tuple[str, ...]
    labels: tuple[str, ...]
    leaf_counts: IntArray
    properties: tuple[str, ...]
    property_of: IntArray
    above_starts: Starts
    above: IntArray
    tree_parents: IntArray
    _nodes: dict[str, int]
    _covered_by: dict[int, tuple[str, ...]]

    def __init__(self) -> None:
        raise PolicyError("ontology: make one with Ontology.from_rdf, from_table or devices, and take its attributes")

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The concepts that :meth:`to_dict` wrote."""
        try:
            made = cls._read(content)
            sound = _is_sound(made)
        except (KeyError, TypeError, ValueError, OverflowError, IndexError):
            sound = False
        if not sound:
            raise PolicyError("ontology: not what to_dict writes; write it again")
        return made

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> Self:
        labels, count = tuple(content["labels"]), int(content["values"])
        above = _frozen(content["above"], np.int32)
        fields = {
            "name": content["name"], "tag": content["tag"], "labels": labels, "values": labels[:count],
            "root": labels[-1], "properties": tuple(content["properties"]),
            "property_of": _frozen(content["property_of"], np.int32),
            "above_starts": _frozen(content["above_starts"], np.int64), "above": above,
            "tree_parents": _frozen(content["tree_parents"], np.int32),
            "leaf_counts": _leaf_counts(above, count, len(labels)),
            "_nodes": {label: node for node, label in enumerate(labels)}, "_covered_by": {},
        }  # fmt: skip
        made = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and texts, the same for equal concepts."""
        arrays = {
            name: getattr(self, name).tolist() for name in ("property_of", "above_starts", "above", "tree_parents")
        }
        return {
            "kind": "concepts", "name": self.name, "tag": self.tag, "values": len(self.values),
            "labels": list(self.labels), "properties": list(self.properties), **arrays,
        }  # fmt: skip

    # ---- questions

    def __contains__(self, label: object) -> bool:
        return label in self._nodes

    def __len__(self) -> int:
        return len(self.labels)

    def node_of(self, label: str) -> int | None:
        """Number of the node with this label; None where there is none."""
        return self._nodes.get(label)

    def labels_above(self, value: str) -> tuple[str, ...]:
        """Every label that can replace a value, without itself and the root, in the order of `above`."""
        leaf = self._node(value)
        if leaf >= len(self.values):
            raise InputError("ontology: this is a label above values and not a value itself")
        run = self.above[self.above_starts[leaf] : self.above_starts[leaf + 1]]
        return tuple(self.labels[node] for node in run)

    def subsumes(self, label: str, value: str) -> bool:
        """Whether a label is this value or is above it; False where one of them is unknown."""
        node, leaf = self._nodes.get(label), self._nodes.get(value)
        if node is None or leaf is None or leaf >= len(self.values):
            return False
        if node in (leaf, len(self.labels) - 1):
            return True
        return node in self.above[self.above_starts[leaf] : self.above_starts[leaf + 1]]

    def covered(self, label: str) -> tuple[str, ...]:
        """The values that a label covers, sorted."""
        node = self._node(label)
        if node < len(self.values):
            return (label,)
        if node == len(self.labels) - 1:
            return self.values
        if node not in self._covered_by:
            leaves = np.searchsorted(self.above_starts, np.flatnonzero(self.above == node), side="right") - 1
            self._covered_by[node] = tuple(self.values[leaf] for leaf in leaves)
        return self._covered_by[node]

    def loss(self, label: str) -> float:
        """Share of the other values that a label covers: 0 for a value, 1 for the root."""
        others = len(self.values) - 1
        return (int(self.leaf_counts[self._node(label)]) - 1) / others if others else 0.0

    def tree(self) -> Hierarchy:
        """The tree of classes and values by "is a" alone; of several parents the first by name.

        A class is left out if all its values have an earlier parent.
        """
        root = len(self.labels) - 1
        children: dict[int, list[int]] = {}
        for node in self._in_tree():
            children.setdefault(int(self.tree_parents[node]), []).append(node)
        labels: list[str] = []
        parents: list[int] = []
        todo = [(root, ROOT_PARENT)]
        while todo:
            node, parent = todo.pop()
            todo.extend((child, len(labels)) for child in children.get(node, ()))
            labels.append(self.labels[node])
            parents.append(parent)
        return Hierarchy.from_dict({"kind": "closed", "labels": labels, "parents": parents})

    def _in_tree(self) -> list[int]:
        """Values, and the classes between them and the root; without the root."""
        reached: set[int] = set()
        for leaf in range(len(self.values)):
            node = leaf
            while node != len(self.labels) - 1 and node not in reached:
                reached.add(node)
                node = int(self.tree_parents[node])
        return sorted(reached)

    def _node(self, label: str) -> int:
        node = self._nodes.get(label)
        if node is None:
            raise InputError(
                f"ontology: a label is unknown to the attribute {self.name!r}; `shoal ontology check` with --values "
                "finds those of a file"
            )
        return node

    # ---- identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Concepts) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.tag, self.labels, self.above.tobytes()))

    def __repr__(self) -> str:
        return f"<Concepts of {len(self.values)} values and {len(self) - len(self.values)} labels of {self.name!r}>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("concepts do not change; make a new ontology")

    def __reduce__(self) -> tuple[Any, ...]:
        return Concepts.from_dict, (self.to_dict(),)


def _leaf_counts(above: IntArray, values: int, nodes: int) -> IntArray:
    counts = np.bincount(above, minlength=nodes)
    counts[:values] = 1
    counts[nodes - 1] = values
    frozen: IntArray = _frozen(counts, np.int32)
    return frozen


def _frozen(numbers: Any, kind: Any) -> Any:
    array = np.array(numbers, dtype=kind)
    if array.ndim != 1:
        raise ValueError("not a list of numbers")
    array.flags.writeable = False
    return array


def _is_sound(concepts: Concepts) -> bool:
    """Whether these arrays describe an attribute; the order within a value is not checked."""
    count, nodes = len(concepts.values), len(concepts.labels)
    return (
        is_label(concepts.name)
        and (concepts.tag is None or concepts.tag in get_args(Tag))
        and 0 < count < nodes == len(set(concepts.labels))
        and all(map(is_label, concepts.labels))
        and concepts.properties[:1] == (IS_A,)
        and len(concepts.property_of) == len(concepts.tree_parents) == nodes
        and _has_sound_properties(concepts, count)
        and _has_sound_rows(concepts, count, nodes)
    )


def _has_sound_properties(concepts: Concepts, count: int) -> bool:
    kinds, parents = concepts.property_of, concepts.tree_parents
    in_tree = kinds <= 0
    in_tree[-1] = False
    above = parents[in_tree]
    return (
        bool((kinds[:count] == NO_PROPERTY).all() and (kinds[count:] >= 0).all())
        and bool((kinds < len(concepts.properties)).all() and kinds[-1] == 0)
        and bool(((above >= count) & (above < len(kinds))).all() and (kinds[above] == 0).all())
        and bool((parents[~in_tree] == ROOT_PARENT).all())
    )


def _has_sound_rows(concepts: Concepts, count: int, nodes: int) -> bool:
    starts, above = concepts.above_starts, concepts.above
    return (
        len(starts) == count + 1
        and bool(starts[0] == 0 and starts[-1] == len(above) and (np.diff(starts) >= 0).all())
        and bool(((above >= count) & (above < nodes - 1)).all())
        and bool((concepts.leaf_counts[count : nodes - 1] > 0).all())
    )
