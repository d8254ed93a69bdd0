"""The tree of labels a value can be generalized along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any, Self

from shoal.errors import InputError, PolicyError
from shoal.hierarchies.computed import GeoCells, HostNames, IpPrefixes, NumberBins, PathRule, rule_from_dict
from shoal.hierarchies.separated import Separated, Side
from shoal.hierarchies.tree import IntArray, Tree, empty_tree, is_label, plant_again
from shoal.hierarchies.tree_builders import plant_balanced, plant_levels, plant_nested


class Hierarchy:
    """An immutable tree of labels, from single values up to one root.

    A *closed* hierarchy lists all its labels. An *open* one has a rule that derives the path from a value: by cutting
    the text at a separator (:class:`shoal.hierarchies.separated.Separated` shows how), or *computed* from coordinates,
    numbers, addresses or host names.

    Notes
    -----
    The arrays are for compiled code: read-only, one entry per node, node 0 is the root, parents come before children,
    in preorder with children sorted by label. Ids depend on the tree alone, not on the order of its description.

    Examples
    --------
    >>> Hierarchy.by_suffix().path("cats.blog.example")
    ('cats.blog.example', 'blog.example', 'example', '*')
    >>> topics = Hierarchy.from_nested({"all": {"news": ["a.example", "b.example"], "shop": ["c.example"]}})
    >>> topics.lowest_common_ancestor(["a.example", "b.example"])
    'news'
    >>> topics.labels, topics.parents.tolist(), topics.leaf_counts.tolist()
    (('all', 'news', 'a.example', 'b.example', 'shop', 'c.example'), [-1, 0, 1, 1, 0, 4], [3, 2, 1, 1, 1, 1])
    """

    __slots__ = ("_ids", "_root", "_rule", "_tree")
    _ids: dict[str, int]
    _root: str
    _rule: PathRule | None
    _tree: Tree

    def __init__(self) -> None:
        raise PolicyError(
            "hierarchy: make one with from_nested, from_csv, flat, balanced, by_suffix, by_prefix, "
            "geo, bins, ip or hosts"
        )

    @classmethod
    def _make(cls, tree: Tree, root: str = "", rule: PathRule | None = None) -> Self:
        made = object.__new__(cls)
        made._tree, made._root, made._rule = tree, root or tree.labels[0], rule
        made._ids = {label: node for node, label in enumerate(tree.labels)}
        return made

    @classmethod
    def _open(cls, rule: PathRule, root: str) -> Self:
        if not is_label(root):
            raise PolicyError("hierarchy: root must be text that is not empty")
        return cls._make(empty_tree(), root, rule)

    # ---- constructors

    @classmethod
    def from_nested(cls, nested: Mapping[str, Any]) -> Self:
        """Tables within tables under one root; a leaf is None, an empty table, or an entry of a list."""
        return cls._make(plant_nested(nested))

    @classmethod
    def from_csv(cls, path: str | PathLike[str], sep: str | None = None, header: bool | None = None) -> Self:  # noqa: FBT001
        """A level file, ``leaf;level 1;…;root`` per line.

        Parameters
        ----------
        path
            UTF-8 text. Equal neighbours in a line are one node; lines may differ in length.
        sep
            None means the semicolon if the first line has one, otherwise the comma.
        header
            None means that the first line is a header if all other lines end in one root and it does not.
        """
        return cls._make(plant_levels(Path(path), separator=sep, header=header))

    @classmethod
    def flat(cls, values: Iterable[str], root: str = "*") -> Self:
        """All values directly under the root."""
        return cls.from_nested({root: list(values)})

    @classmethod
    def balanced(cls, labels: Iterable[str], fanout: int = 5, root: str = "*") -> Self:
        """Labels in order, in equal groups of at most `fanout`, level by level up to the root.

        For data that come without a tree. Labels that are all whole numbers are sorted as numbers; a group is named
        after its first and last label, ``12…16``. A label given twice counts once.
        """
        return cls._make(plant_balanced(labels, fanout, root))

    @classmethod
    def by_suffix(cls, separator: str = ".", root: str = "*") -> Self:
        """Open: ``a.b.example`` is below ``b.example``, then ``example``, then the root."""
        return cls.from_separator(separator, side="suffix", root=root)

    @classmethod
    def by_prefix(cls, separator: str = "/", root: str = "*") -> Self:
        """Open: ``top/mid/leaf`` is below ``top/mid``, then ``top``, then the root."""
        return cls.from_separator(separator, side="prefix", root=root)

    @classmethod
    def from_separator(cls, separator: str, *, side: Side, root: str = "*") -> Self:
        """Open: any text is a value, cut at `separator` from the front (suffix) or the back (prefix)."""
        return cls._open(Separated(separator, side), root)

    @classmethod
    def geo(cls, cells: Iterable[float | str] = ("0.01", "0.1", "1", "10"), root: str = "*") -> Self:
        """Computed: places ``latitude,longitude``, in cells of ever larger sizes in degrees.

        >>> Hierarchy.geo().path("40.7128,-74.006")[1:3]
        ('40.71…40.72,-74.01…-74', '40.7…40.8,-74.1…-74')
        """
        return cls._open(GeoCells(cells), root)

    @classmethod
    def bins(cls, widths: Iterable[float | str], root: str = "*") -> Self:
        """Computed: numbers, in bins of ever larger widths; ``20…30`` contains 20 and not 30.

        >>> Hierarchy.bins([10, 100]).path("37.5")
        ('37.5', '30…40', '0…100', '*')
        """
        return cls._open(NumberBins(widths), root)

    @classmethod
    def ip(cls, v4: Iterable[int] = (24, 16, 8), v6: Iterable[int] = (64, 48, 32), root: str = "*") -> Self:
        """Computed: IPv4 and IPv6 addresses, in networks of ever shorter prefixes.

        >>> Hierarchy.ip().path("192.0.2.77")
        ('192.0.2.77', '192.0.2.0/24', '192.0.0.0/16', '192.0.0.0/8', '*')
        """
        return cls._open(IpPrefixes(v4, v6), root)

    @classmethod
    def hosts(cls, root: str = "*") -> Self:
        """Computed: host names up to their public suffix, such as ``co.uk``; needs the extra ``hosts``.

        The list of public suffixes is the one that the package publicsuffixlist contains; nothing is downloaded.
        """
        return cls._open(HostNames(), root)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The hierarchy that :meth:`to_dict` wrote."""
        try:
            rule = rule_from_dict(content)
            if rule is not None:
                return cls._open(rule, content["root"])
            labels, parents = list(content["labels"]), list(content["parents"])
        except (KeyError, TypeError):
            raise PolicyError("hierarchy: not what Hierarchy.to_dict writes; write it again") from None
        return cls._make(plant_again(labels, parents))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and texts, the same for equal hierarchies."""
        if self._rule is not None:
            return {**self._rule.to_dict(), "root": self._root}
        return {"kind": "closed", "labels": list(self.labels), "parents": self.parents.tolist()}

    # ---- content

    @property
    def is_open(self) -> bool:
        """Whether values are not listed: any text is one, or any that a path can be computed for."""
        return self._rule is not None

    @property
    def is_computed(self) -> bool:
        """Whether paths are computed from values, such as coordinates or addresses."""
        return self.is_open and not isinstance(self._rule, Separated)

    @property
    def separator(self) -> str | None:
        """The character that values are cut at; None if they are not cut."""
        return self._rule.separator if isinstance(self._rule, Separated) else None

    @property
    def side(self) -> Side | None:
        """Whether cutting keeps the suffix or the prefix of a value; None if values are not cut."""
        return self._rule.side if isinstance(self._rule, Separated) else None

    @property
    def root(self) -> str:
        """The label above all others."""
        return self._root

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of every node; empty for an open hierarchy."""
        return self._tree.labels

    @property
    def parents(self) -> IntArray:
        """Parent of every node, -1 for the root."""
        return self._tree.parents

    @property
    def depths(self) -> IntArray:
        """Steps from every node to the root."""
        return self._tree.depths

    @property
    def leaf_counts(self) -> IntArray:
        """Leaves at or below every node."""
        return self._tree.leaf_counts

    def __len__(self) -> int:
        return len(self.labels)

    def __bool__(self) -> bool:
        return True  # an open hierarchy has no nodes

    def __contains__(self, label: object) -> bool:
        if self._rule is None or not isinstance(label, str):
            return isinstance(label, str) and label in self._ids
        return self._rule.labels(label) is not None

    # ---- questions

    def node_of(self, label: str) -> int | None:
        """Id of the node with this label; None where there is none, always in an open hierarchy."""
        return self._ids.get(label)

    def path(self, label: str) -> tuple[str, ...]:
        """Labels from this one up to the root."""
        if label in self._ids:
            return self._tree.path(self._ids[label])
        labels = None if self._rule is None else self._rule.labels(label)
        if labels is None:
            raise InputError("hierarchy: a value is not in it; add the value to it, or leave such rows out")
        steps = [label, *labels]
        if isinstance(self._rule, Separated) and self._root in steps:
            steps = steps[: steps.index(self._root)]
        return (*steps, self._root)

    def lowest_common_ancestor(self, labels: Iterable[str]) -> str:
        """The lowest label that covers all of these labels."""
        paths = [self.path(label)[::-1] for label in dict.fromkeys(labels)]
        if not paths:
            raise PolicyError("hierarchy: the lowest common ancestor needs at least one label")
        shared = takewhile(lambda steps: len(set(steps)) == 1, zip(*paths, strict=False))
        return str([steps[0] for steps in shared][-1])

    # ---- identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self._root, self.labels, self.separator, self.side, self.is_computed))

    def __repr__(self) -> str:
        if isinstance(self._rule, Separated):
            return f"<Hierarchy by {self.side} at {self.separator!r} under {self._root!r}>"
        if self._rule is not None:
            return f"<Hierarchy of kind {self._rule.kind!r} under {self._root!r}>"
        return f"<Hierarchy of {len(self)} labels under {self._root!r}>"
