"""A graph of names that may be merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import Neighbourhood, components, edge_array, frozen
from shoal.hierarchies.tree import is_label


class Graph(Neighbourhood):
    """Names, and which of them are neighbours and may be merged.

    Parameters
    ----------
    neighbours
        A table from a name to its neighbours, or pairs of names. One direction is enough.
    names
        Further names, without neighbours.

    Notes
    -----
    Components are connected, so that everything can be merged into one block: with the components sorted by their
    first names, the first name of each becomes a neighbour of the first name of the next.

    Examples
    --------
    >>> graph = Graph({"north": ["middle"], "middle": ["south"]}, names=["island"])
    >>> graph.names
    ('island', 'middle', 'north', 'south')
    >>> graph.edges.tolist()
    [[0, 1], [1, 2], [1, 3]]
    """

    def __init__(
        self, neighbours: Mapping[str, Iterable[str]] | Iterable[tuple[str, str]], names: Iterable[str] = ()
    ) -> None:
        pairs = list(_pairs(neighbours))
        known = {*_checked(names), *(name for pair in pairs for name in pair)}
        if isinstance(neighbours, Mapping):
            known.update(_checked(neighbours))
        if not known:
            raise PolicyError("graph: has no names; give pairs of neighbours, or names")
        self.names = tuple(sorted(known))
        number = {name: place for place, name in enumerate(self.names)}
        edges = [(number[first], number[second]) for first, second in pairs if first != second]
        bridges = pairwise(sorted(set(components(len(known), edges))))
        self.edges = edge_array([*edges, *bridges])
        self.site_of = frozen(np.arange(len(known), dtype=np.int32))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The graph that :meth:`to_dict` wrote."""
        try:
            names = list(content["names"])
            pairs = [(names[first], names[second]) for first, second in content["edges"]]
        except (KeyError, TypeError, ValueError, IndexError):
            raise PolicyError("graph: not what Graph.to_dict writes; write it again") from None
        return cls(pairs, names)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and texts, the same for equal graphs."""
        return {"kind": "graph", "names": list(self.names), "edges": self.edges.tolist()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.names, self.edges.tobytes()))

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} names and {len(self.edges)} edges>"


def _pairs(neighbours: Any) -> Iterator[tuple[str, str]]:
    if isinstance(neighbours, Mapping):
        neighbours = ((name, other) for name, others in neighbours.items() for other in _several(others))
    for pair in _several(neighbours):
        if isinstance(pair, str) or not isinstance(pair, Iterable):
            raise PolicyError("graph: give pairs of names, or a table from a name to its neighbours")
        both = tuple(_checked(pair))
        if len(both) != 2:
            raise PolicyError("graph: an edge joins two names; give pairs of names")
        yield both[0], both[1]


def _several(names: Any) -> Iterable[Any]:
    """An iterable that is not a text, which would be split into letters."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise PolicyError("graph: neighbours must be a list of names, not one name")
    return names


def _checked(names: Iterable[Any]) -> Iterator[str]:
    for name in _several(names):
        if not is_label(name):
            raise PolicyError("graph: every name must be text that is not empty")
        yield name
