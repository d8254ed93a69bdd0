"""The [anonymize.generalize] table: which items may be published under one label."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import Field, PlainValidator, PrivateAttr, ValidationInfo, model_validator

from shoal.errors import PolicyError
from shoal.hierarchies import Graph
from shoal.hierarchies.neighbourhood import Neighbourhood
from shoal.methods.settings import Name
from shoal.policy.fields import FilePlace, Location, Section, locate
from shoal.policy.hierarchies import HierarchySection
from shoal.policy.method_base import KeyPath, Table

WAYS: Final = ("hierarchy", "places", "graph", "balanced")
_OF_PLACES: Final = ("name", "x", "y", "geographic", "region")
Region = Location | list[Any]


def _region(value: object, info: ValidationInfo) -> Region:
    if isinstance(value, str):
        return locate(value, (info.context or {}).get("folder", Path()))
    if not isinstance(value, list):
        raise ValueError("must be the path of a GeoJSON file, or a list of [x, y] corners")
    return value


class GeneralizeSection(Section):
    """One of: a tree, places on a map, a graph of neighbours, or a tree made over the items seen."""

    hierarchy: HierarchySection | None = None
    places: FilePlace | None = None
    graph: FilePlace | None = None
    balanced: Annotated[int, Field(ge=2, le=1000)] | None = None
    name: Name = "name"
    x: Name | None = None
    y: Name | None = None
    geographic: bool = True
    region: Annotated[Region, PlainValidator(_region)] | None = None

    _neighbours: Neighbourhood | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        try:
            if self.places is not None:
                self._neighbours = self._read_places(self.places.path)
            elif self.graph is not None:
                self._neighbours = read_graph(self.graph.path)
        except PolicyError as error:
            raise ValueError("; ".join(error.problems)) from None
        return self

    @property
    def neighbours(self) -> Neighbourhood | None:
        """The places or the graph, read when the policy was."""
        return self._neighbours

    @property
    def way(self) -> str:
        """Which of the ways it is."""
        return next(way for way in WAYS if getattr(self, way) is not None)

    def _read_places(self, path: Path) -> Neighbourhood:
        from shoal.hierarchies.places import Places  # draws maps, which takes a while to load

        region = _read_geojson(self.region.path) if isinstance(self.region, Location) else self.region
        return Places.from_csv(path, name=self.name, x=self.x, y=self.y, geographic=self.geographic, region=region)

    def plain_fields(self) -> dict[str, Any]:
        # The content of a hierarchy counts, which the policy adds, not its description.
        return {name: value for name, value in super().plain_fields().items() if name != "hierarchy"}


def generalize_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """What is wrong between keys of the table, and with `error`."""
    given = table.get("generalize")
    if not isinstance(given, Mapping):
        return
    ways = [way for way in WAYS if way in given]
    if len(ways) != 1:
        which = f"has {' and '.join(ways)}" if ways else "is empty"
        yield ("generalize",), f"{which}; give exactly one of {', '.join(WAYS)}"
    if "places" not in given:
        yield from ((("generalize", key), "is only for places; leave it out") for key in _OF_PLACES if key in given)
        if table.get("error") == "distance" and ways:
            yield ("error",), '"distance" needs places, which know where things are; take "ncp"'


def generalize_files(table: Table) -> dict[KeyPath, Any]:
    """Files that the table names, besides the hierarchy's."""
    given = table.get("generalize")
    found = given if isinstance(given, Mapping) else {}
    return {("generalize", key): found[key] for key in ("places", "graph", "region") if isinstance(found.get(key), str)}


def read_graph(path: Path) -> Graph:
    """A file with a header and one pair of neighbours a line; a second cell left empty names an item without one."""
    pairs: list[tuple[str, str]] = []
    alone: list[str] = []
    for number, cells in islice(_lines(path), 1, None):
        if len(cells) != 2 or not cells[0].strip():
            raise PolicyError(f"{path.name}: line {number}: must hold two items, or one and an empty cell")
        if cells[1].strip():
            pairs.append((cells[0], cells[1]))
        else:
            alone.append(cells[0])
    if not pairs and not alone:
        raise PolicyError(f"{path.name}: holds no pairs of items; write a header and then one pair a line")
    return Graph(pairs, alone)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    text = _text(path)
    if "\x00" in text:
        raise PolicyError(f"{path.name}: holds a NUL character; remove it")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error:
        raise PolicyError(f"{path.name}: line {reader.line_num}: a quote is not closed") from None


def _read_geojson(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (json.JSONDecodeError, RecursionError):
        raise PolicyError(f"{path.name}: is not JSON; give GeoJSON of a polygon") from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{path.name}: is not UTF-8; save the file as UTF-8") from None
