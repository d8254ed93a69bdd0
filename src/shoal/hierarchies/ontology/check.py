"""Check an ontology: find what is unreachable, ambiguous or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.column_values import NearestTexts, Seen, count_values
from shoal.hierarchies.ontology.compile import Key, Sketch, build_concepts, closure, nodes_above
from shoal.hierarchies.ontology.concepts import IS_A, Concepts
from shoal.hierarchies.ontology.ontology import Ontology, shipped_devices
from shoal.hierarchies.ontology.tables import TableShape, sketch_table

Level = Literal["good", "look", "wrong"]
_RDF_ENDINGS: Final = (".ttl", ".nt", ".owl", ".rdf", ".xml")
_MOST_SHOWN: Final = 10
_LEAST_ROWS: Final = 2
"""A text in a single row may be something a person typed; the row is named instead of the text."""
_MOST_SOUGHT: Final = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: "good" to know, worth a "look", or "wrong"."""

    level: Level
    topic: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain texts."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class OntologyFile:
    """The content of an ontology file, and what in it is unused.

    Attributes
    ----------
    sketches
        One for each attribute.
    functional
        Properties that give a value at most one object.
    findings
        Findings from reading the file.
    """

    sketches: tuple[Sketch, ...]
    functional: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def read_ontology_file(path: Path | None, shape: TableShape | None) -> OntologyFile:
    """RDF by its file name extension, otherwise a table, which needs a shape; None is the ontology of devices."""
    if path is None:
        return _rdf_file(shipped_devices())
    if path.suffix.lower() in _RDF_ENDINGS:
        if shape is not None:
            raise PolicyError(f"{path.name}: is RDF; --value, --properties and --is-a are for tables")
        return _rdf_file(path)
    if shape is None:
        raise PolicyError(f"{path.name}: is a table; say with --value which column holds the values")
    sketch = sketch_table(path, shape, attribute=None, tag=None, root=None)
    empty = [column for column in shape.properties if not sketch.statements[column]]
    findings = [
        Finding("look", "unreachable", f"the column {column!r} is empty and gives no label") for column in empty
    ]
    return OntologyFile((sketch,), (IS_A, *shape.properties), tuple(findings))


def _rdf_file(path: Path) -> OntologyFile:
    from shoal.hierarchies.ontology.rdf import read_rdf  # rdflib is slow to import, and tables do not need it

    read = read_rdf(path)
    kinds = (
        (read.unused_properties, "properties that no value has"),
        (read.uncovering, "labels that cover no value, because no statement uses them"),
        (read.stray, "classes and individuals below no attribute"),
    )
    findings = [Finding("look", "unreachable", _some(names, sentence)) for names, sentence in kinds if names]
    return OntologyFile(read.sketches, read.functional, tuple(findings))


def check_ontology(
    file: OntologyFile,
    *,
    values: str | PathLike[str] | None = None,
    column: str | None = None,
    attribute: str | None = None,
) -> list[Finding]:
    """All findings about an ontology and, where a file of data is given, about its values."""
    concepts = {sketch.name: build_concepts(sketch) for sketch in file.sketches}
    found = list(file.findings)
    for sketch in file.sketches:
        found += _about(sketch, concepts[sketch.name], file.functional)
    if values is not None:
        if column is None:
            raise PolicyError("ontology: say with --column which column of the data holds the values")
        chosen = _chosen(Ontology(concepts.values()), attribute, column)
        found += _coverage(chosen, count_values(Path(values), column), column)
    return found


def _chosen(ontology: Ontology, attribute: str | None, column: str) -> Concepts:
    if attribute is not None:
        return ontology.attribute(attribute)
    if len(ontology.attributes) == 1:
        return next(iter(ontology.attributes.values()))
    if column in ontology.attributes:
        return ontology.attribute(column)
    names = ", ".join(map(repr, ontology.attributes))
    raise PolicyError(f"ontology: has several attributes, {names}; say with --attribute which one the column holds")


# ---- the ontology itself


def _about(sketch: Sketch, concepts: Concepts, functional: Sequence[str]) -> list[Finding]:
    return [
        Finding("good", sketch.name, _summary(concepts)), *_same_texts(sketch), *_several_parents(sketch),
        *_several_objects(sketch, functional), *_useless(concepts), *_bare(concepts),
    ]  # fmt: skip


def _summary(concepts: Concepts) -> str:
    tag = f"tagged {concepts.tag}" if concepts.tag else "without a tag"
    labels = len(concepts) - len(concepts.values)
    return (
        f"{len(concepts.values):,} values and {labels:,} labels, {tag}; properties in order: "
        f"{', '.join(concepts.properties)}"
    )


def _same_texts(sketch: Sketch) -> list[Finding]:
    """Things of the same name: data cannot distinguish such values, and such labels get an addition."""
    found = []
    doubled = _twice(sketch.texts[key] for key in sketch.values)
    if doubled:
        sentence = "names of several values, which the data cannot distinguish and which are one value here"
        found.append(Finding("look", "ambiguous", _some(doubled, sentence)))
    above = nodes_above(sketch)
    nodes = set().union(*(above[key] for key in sketch.values))
    names = {sketch.texts[key] for key in sketch.values} | {sketch.root}
    texts = [sketch.texts[key] for _, key in nodes]
    shared = sorted({*_twice(texts), *names.intersection(texts)})
    if shared:
        sentence = "texts that mean several things, so that their labels get an addition as in “Georgia (produced in)”"
        found.append(Finding("look", "ambiguous", _some(shared, sentence)))
    return found


def _twice(texts: Iterable[str]) -> list[str]:
    return sorted(text for text, uses in Counter(texts).items() if uses > 1)


def _several_parents(sketch: Sketch) -> list[Finding]:
    values = set(sketch.values)
    several = [key for key, parents in sketch.parents.items() if len(set(parents)) > 1]
    sides = (
        ("values", [key for key in several if key in values]),
        ("classes", [key for key in several if key not in values]),
    )
    return [
        Finding("look", "ambiguous", _some(_names(sketch, keys), f"{what} directly below several classes"))
        for what, keys in sides
        if keys
    ]


def _several_objects(sketch: Sketch, functional: Sequence[str]) -> list[Finding]:
    """Values with two objects of a property that gives one; an ancestor of an object does not count."""
    wider = closure(sketch.wider, sketch.texts, sketch.where)
    above = nodes_above(replace(sketch, wider={}))
    found = []
    for number, name in enumerate(sketch.properties, start=1):
        if name not in functional:
            continue
        several = [key for key in sketch.values if _distinct(above[key], number, wider) > 1]
        if several:
            sentence = f"values with several objects of {name!r}, which gives one; they have all these labels"
            found.append(Finding("look", "ambiguous", _some(_names(sketch, several), sentence)))
    return found


def _distinct(nodes: Iterable[tuple[int, Key]], number: int, wider: Mapping[Key, set[Key]]) -> int:
    objects = {key for kind, key in nodes if kind == number}
    if len(objects) < 2:
        return len(objects)
    return len(objects.difference(*(wider.get(key, ()) for key in objects)))


def _useless(concepts: Concepts) -> list[Finding]:
    count = len(concepts.values)
    inner = concepts.leaf_counts[count:-1]
    labels = concepts.labels[count:-1]
    single = int((inner == 1).sum()) if count > 1 else 0
    found = []
    if single:
        found.append(Finding("good", concepts.name, f"labels that cover a single value and hide nothing: {single:,}"))
    whole = [label for label, covered in zip(labels, inner.tolist(), strict=True) if covered == count > 1]
    if whole:
        found.append(
            Finding("look", concepts.name, _some(whole, "labels that cover every value and say no more than the root"))
        )
    return found


def _bare(concepts: Concepts) -> list[Finding]:
    """Values that reach only the root by some property, or by all of them."""
    count = len(concepts.values)
    owners = np.repeat(np.arange(count), np.diff(concepts.above_starts))
    by_property = [
        set(owners[concepts.property_of[concepts.above] == number].tolist())
        for number in range(len(concepts.properties))
    ]
    found = []
    alone = sorted(set(range(count)).difference(*by_property))
    if alone:
        sentence = "values with no label but the root, which can only be published as they are"
        found.append(Finding("look", "bare", _some([concepts.values[leaf] for leaf in alone], sentence)))
    for name, reached in zip(concepts.properties, by_property, strict=True):
        bare = sorted(set(range(count)) - reached - set(alone))
        if bare and reached:
            names = [concepts.values[leaf] for leaf in bare]
            found.append(Finding("look", "bare", _some(names, f"values that reach nothing but the root by {name!r}")))
    return found


# ---- the data


def _coverage(concepts: Concepts, seen: Mapping[str, Seen], column: str) -> list[Finding]:
    known = set(concepts.values)
    unknown = {value: where for value, where in seen.items() if value not in known}
    rows = sum(where.rows for where in seen.values())
    lost = sum(where.rows for where in unknown.values())
    if not seen:
        return [Finding("look", "uncovered", f"the column {column!r} is empty")]
    if not unknown:
        return [Finding("good", "uncovered", f"all {len(seen):,} values of {column!r} are known, in {rows:,} rows")]
    total = f"unknown values of {column!r}: {len(unknown):,} of {len(seen):,}, in {lost:,} of {rows:,} rows"
    return [Finding("wrong", "uncovered", total), *_proposals(concepts, unknown)]


def _proposals(concepts: Concepts, unknown: Mapping[str, Seen]) -> list[Finding]:
    """Unknown values, the most frequent first.

    A text is shown only if several rows have it and it is similar to a known value; an address or a name
    typed by mistake is neither. Of all others the first row is named.
    """
    nearest = NearestTexts(concepts.values)
    common = sorted((-where.rows, value) for value, where in unknown.items() if where.rows >= _LEAST_ROWS)
    found: list[Finding] = []
    shown = set()
    for rows, value in common[:_MOST_SOUGHT]:
        if value in concepts:
            sentence = f"{value!r} ({-rows:,} rows) is a label above values and not a value"
        else:
            like = nearest.like(value)
            if not like:
                continue
            sentence = f"{value!r} ({-rows:,} rows) is unknown; nearest: {', '.join(map(repr, like))}"
        shown.add(value)
        found.append(Finding("look", "uncovered", sentence))
        if len(found) == _MOST_SHOWN:
            break
    places = sorted(where.first for value, where in unknown.items() if value not in shown)
    if places:
        more = ", …" if len(places) > _MOST_SHOWN else ""
        listed = ", ".join(f"{place:,}" for place in places[:_MOST_SHOWN]) + more
        sentence = f"others, rare or like no known value: {len(places):,}, first in rows (from 1) {listed}"
        found.append(Finding("look", "uncovered", sentence))
    return found


def _names(sketch: Sketch, keys: Iterable[Key]) -> list[str]:
    return sorted({sketch.texts[key] for key in keys})


def _some(names: Sequence[str], sentence: str) -> str:
    shown = ", ".join(map(repr, names[:_MOST_SHOWN])) + (", …" if len(names) > _MOST_SHOWN else "")
    return f"{sentence}: {len(names):,} ({shown})"
