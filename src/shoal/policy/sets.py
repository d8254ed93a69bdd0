"""The [anonymize] tables of methods that publish sets: anyone who knows m items of a person finds at least k people."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, PlainValidator, PrivateAttr, ValidationInfo, model_validator

from shoal.errors import PolicyError
from shoal.hierarchies import Graph, Hierarchy
from shoal.hierarchies.neighbourhood import Neighbourhood
from shoal.methods.sets.settings import Crowds, Items, KmAprioriSettings, Seed
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Name
from shoal.policy.fields import FilePlace, Location, Section, locate
from shoal.policy.hierarchies import HierarchySection
from shoal.policy.method_base import KeyPath, MethodSection, Table
from shoal.policy.tables import StreamSection

WAYS: Final = ("hierarchy", "places", "graph", "balanced")
_OF_PLACES: Final = ("name", "x", "y", "geographic", "region")
Region = Location | list[Any]

CERTIFICATE: Final = ".certificate.json"
BLOCKS: Final = ".blocks.json"
_ALONE: Final = "a release of sets is one file, with its certificate next to it; name a file"


def _region(value: object, info: ValidationInfo) -> Region:
    if isinstance(value, str):
        return locate(value, (info.context or {}).get("folder", Path()))
    if not isinstance(value, list):
        raise ValueError("must be the path of a GeoJSON file, or a list of [x, y] corners")
    return value


class GeneralizeSection(Section):
    """One of: a tree, places on a map, a graph of neighbours, or a tree built over the items of the input."""

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
        """The places or the graph."""
        return self._neighbours

    @property
    def way(self) -> str:
        """The key that is set."""
        return next(way for way in WAYS if getattr(self, way) is not None)

    def _read_places(self, path: Path) -> Neighbourhood:
        from shoal.hierarchies.places import Places  # draws maps, which takes a while to load

        region = _read_geojson(self.region.path) if isinstance(self.region, Location) else self.region
        return Places.from_csv(path, name=self.name, x=self.x, y=self.y, geographic=self.geographic, region=region)

    def plain_fields(self) -> dict[str, Any]:
        # The content of a hierarchy counts, which the policy adds, not its description.
        return {name: value for name, value in super().plain_fields().items() if name != "hierarchy"}


def generalize_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """Conflicts between keys of the table, and with `error`."""
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
            yield ("error",), '"distance" needs places; use "ncp"'


def generalize_files(table: Table) -> dict[KeyPath, Any]:
    """Files that the table names, besides the hierarchy's."""
    given = table.get("generalize")
    found = given if isinstance(given, Mapping) else {}
    return {("generalize", key): found[key] for key in ("places", "graph", "region") if isinstance(found.get(key), str)}


def read_graph(path: Path) -> Graph:
    """Read a file with a header and one pair of neighbours per line; an empty second cell means no neighbour."""
    pairs: list[tuple[str, str]] = []
    alone: list[str] = []
    for number, cells in islice(_lines(path), 1, None):
        if len(cells) != 2 or not cells[0].strip():
            raise PolicyError(f"{path.name}: line {number}: must have two items, or one and an empty cell")
        if cells[1].strip():
            pairs.append((cells[0], cells[1]))
        else:
            alone.append(cells[0])
    if not pairs and not alone:
        raise PolicyError(f"{path.name}: has no pairs of items; write a header and then one pair per line")
    return Graph(pairs, alone)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    text = _text(path)
    if "\x00" in text:
        raise PolicyError(f"{path.name}: contains a NUL character; remove it")
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


def _drop_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """Items may be left out that are too rare to be published alone, and only where blocks need no neighbours."""
    least, k, given = table.get("drop_rare"), table.get("k"), table.get("generalize")
    single = k[0] if isinstance(k, list) and k else k
    if isinstance(least, int) and isinstance(single, int) and least > single:
        yield ("drop_rare",), f"must be at most k, which is {single}: items that k people have are not rare"
    for way in ("places", "graph"):
        if least is not None and isinstance(given, Mapping) and way in given:
            yield ("drop_rare",), f"is not for {way}, whose blocks need all items to be connected; leave it out"


def _recoding_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """Labels of different precision need a tree, and the loss of a tree."""
    given = table.get("generalize")
    if table.get("recoding") != "local" or not isinstance(given, Mapping):
        return
    for way in ("places", "graph"):
        if way in given:
            yield ("recoding",), f'"local" is not for {way}, which have no levels; use hierarchy, or leave it out'


class SetSection(MethodSection, KmAprioriSettings):
    """What a policy file adds to the settings of a k^m method: the items, and how they are generalized."""

    ADVICE: ClassVar[str] = "choose a smaller k or m"
    NEEDS_PERSON: ClassVar[bool] = False
    IS_STREAM: ClassVar[bool] = False

    method: str
    item: Name = Field(description="name the column that holds an item, or a set of them")
    k: Crowds = Field(description="give the number of people that must share what is known")
    m: Items = Field(description="give how many items of a person an attacker may know")
    generalize: GeneralizeSection = Field(
        description="add a table [anonymize.generalize] with one of hierarchy, places, graph or balanced"
    )
    error: Literal["distance", "ncp"] | None = Field(
        None, description='What a generalization costs: `"distance"` (places, their default) or `"ncp"`.'
    )
    drop_rare: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="Leave out items that fewer than this many people have, at most `k`, instead of merging them; only "
        "with `hierarchy` or `balanced`.",
    )
    seed: Seed = Field(0, description="Seed of the random draws and of the order of published rows.")
    column: Name = Field("items", description="Name of the published column.")

    @classmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        item = table.get("item")
        return [(("item",), item)] if isinstance(item, str) else []

    @classmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        given = table.get("generalize")
        has_one = isinstance(given, Mapping) and "hierarchy" in given
        return {("generalize", "hierarchy"): given["hierarchy"]} if has_one and given is not None else {}

    @classmethod
    def input_files(cls, table: Table) -> dict[KeyPath, Any]:
        return generalize_files(table)

    @classmethod
    def next_to_sink(cls) -> tuple[str, ...]:
        return CERTIFICATE, BLOCKS

    @classmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        return [
            ("stream", (key,), "only the sets are published; leave it out")
            for key in ("time", "carry", "carry_identifying")
            if key in stream
        ]

    @classmethod
    def file_problems(cls, source: Table, sink: Table, *, has_person: bool) -> list[tuple[str, KeyPath, str]]:
        found: list[tuple[str, KeyPath, str]] = []
        if source.get("kind") == "csv" and "separator" not in source and not has_person:
            text = "is missing; give what separates the items of a row, or the column of persons in [stream] person"
            found.append(("source", ("separator",), text))
        if "separator" in sink and sink.get("kind") != "csv":
            found.append(("sink", ("separator",), "is only for csv; leave it out"))
        path = sink.get("path")
        if isinstance(path, str) and (path == "-" or path.endswith("/")):
            found.append(("sink", ("path",), _ALONE))
        return found

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from generalize_problems(given)
        yield from _drop_problems(given)
        yield from _recoding_problems(given)
        yield from super().cross_check(given) if "m" in given else ()

    def plain_fields(self) -> dict[str, Any]:
        # A key left out does not count, so that fingerprints made before it existed stay valid.
        left_out = {"drop_rare": None, "recoding": "global"}
        fields = super().plain_fields()
        return {name: value for name, value in fields.items() if name not in left_out or value != left_out[name]}

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        return {self.item: ("generalize", "hierarchy")} if self.generalize.hierarchy is not None else {}

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        """Keyword arguments; without `generalize` if it is built from the items of the input."""
        settings = {name: getattr(self, name) for name in ("error", *self.SETTINGS.model_fields)}
        along = hierarchies.get(self.item) or self.generalize.neighbours
        return settings if along is None else {**settings, "generalize": along}

    def list_columns(self) -> tuple[str, ...]:
        return (self.item,)

    @property
    def runs_on_time(self) -> bool:
        return False
