"""Read the ontology a policy names: RDF, a table, or the devices that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from shoal.auditor.hierarchies.ontology import IS_A, Concepts, outline_of_columns
from shoal.auditor.reading.tables import Format, read
from shoal.errors import InputError, PolicyError

_TAGS: Final = ("sparse", "normal")
_SHIPPED: Final = ("hierarchies", "ontology", "devices.ttl")
"""Where the devices stand within the package: data, read without the code beside them."""


def read_ontology(spec: Any, *, folder: Path, name: str) -> Concepts:
    """Read what stands under ``ontology`` of a quasi-identifier."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if kind == "rdf":
        path = _path(spec, folder, name)
        return _attribute(_bytes(path), spec, name, str(path))
    if kind == "table":
        return _from_table(spec, folder, name)
    if kind == "devices":
        data = files("shoal").joinpath(*_SHIPPED)
        if not data.is_file():
            raise InputError("the ontology of devices is not installed; install shoal again")
        return _attribute(data.read_bytes(), spec, "device", "the ontology of devices")
    raise PolicyError(f"ontology of {name}: kind is rdf, table or devices")


def _path(spec: Mapping[str, Any], folder: Path, name: str) -> Path:
    if not isinstance(spec.get("path"), str | Path):
        raise PolicyError(f"ontology of {name}: path is missing")
    return folder / str(spec["path"])


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the ontology cannot be read ({error.strerror})") from None


def _attribute(data: bytes, spec: Mapping[str, Any], name: str, where: str) -> Concepts:
    from shoal.auditor.hierarchies.ontology_rdf import (  # rdflib is heavy, and tables do without
        parse,
        read_attribute_of,
    )

    wanted = str(spec.get("attribute", name))
    return read_attribute_of(parse(data, where), wanted, where, is_given="attribute" in spec)


def _from_table(spec: Mapping[str, Any], folder: Path, name: str) -> Concepts:
    value, tag = spec.get("value"), spec.get("tag")
    if not isinstance(value, str):
        raise PolicyError(f"ontology of {name}: value is missing; name the column of values")
    if tag is not None and tag not in _TAGS:
        raise PolicyError(f"ontology of {name}: tag is one of {', '.join(_TAGS)}")
    chains = _chains(spec, name)
    rows = read(_path(spec, folder, name), name=f"ontology of {name}", expected=Format.of(spec))
    rows.require(value, *(column for _, columns in chains for column in columns))
    texts = {column: rows.text(column).to_pylist() for column in rows.columns}
    root = spec.get("root")
    return Concepts(
        outline_of_columns(
            texts[value],
            [(kind, [texts[column] for column in columns]) for kind, columns in chains],
            root=f"any {name}" if root is None else str(root),
            tag=tag,
        )
    )


def _chains(spec: Mapping[str, Any], name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return, for classes and for every property, its columns from the finest to the coarsest."""
    parents = spec.get("parents", {})
    if not isinstance(parents, Mapping):
        raise PolicyError(f"ontology of {name}: parents is a table from a property to the columns above it")
    classes = _columns(spec, "is_a")
    chains = [(IS_A, classes)] if classes else []
    return chains + [(column, (column, *_columns(parents, column))) for column in _columns(spec, "properties")]


def _columns(spec: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = spec.get(key, ())
    return (given,) if isinstance(given, str) else tuple(str(column) for column in given)
