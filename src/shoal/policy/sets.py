"""The [anonymize] tables of methods that publish sets: anyone who knows m items of a person finds k people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from shoal.hierarchies import Hierarchy
from shoal.methods.sets.settings import Crowds, Items, KmAprioriSettings, Seed
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Name
from shoal.policy.generalizing import GeneralizeSection, generalize_files, generalize_problems
from shoal.policy.method_base import KeyPath, MethodSection, Table
from shoal.policy.stream import StreamSection

CERTIFICATE: Final = ".certificate.json"
BLOCKS: Final = ".blocks.json"
_ALONE: Final = "a release of sets is one file, with its certificate next to it; name a file"


class SetSection(MethodSection, KmAprioriSettings):
    """What a policy file adds to the settings of a k^m method: the items, and how they are generalized."""

    ADVICE: ClassVar[str] = "choose a smaller k or m"
    NEEDS_PERSON: ClassVar[bool] = False
    IS_STREAM: ClassVar[bool] = False

    method: str
    item: Name = Field(description="name the column that holds an item, or a set of them")
    k: Crowds = Field(description="give the number of people that must share what is known")
    m: Items = Field(description="give how many items of a person somebody may know")
    generalize: GeneralizeSection = Field(
        description="add a table [anonymize.generalize] with one of hierarchy, places, graph or balanced"
    )
    error: Literal["distance", "ncp"] | None = Field(
        None, description='What a generalization costs: `"distance"` (places, their default) or `"ncp"`.'
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
    def beside_sink(cls) -> tuple[str, ...]:
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
            text = "is missing; say what stands between the items of a row, or name who they are of in [stream] person"
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
        yield from super().cross_check(given) if "m" in given else ()

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        return {self.item: ("generalize", "hierarchy")} if self.generalize.hierarchy is not None else {}

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        """Keyword arguments; without `generalize` where that depends on the items that come."""
        settings = {name: getattr(self, name) for name in ("error", *self.SETTINGS.model_fields)}
        along = hierarchies.get(self.item) or self.generalize.neighbours
        return settings if along is None else {**settings, "generalize": along}

    def list_columns(self) -> tuple[str, ...]:
        return (self.item,)

    @property
    def runs_on_time(self) -> bool:
        return False
