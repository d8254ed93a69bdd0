"""The [anonymize] tables of methods that publish sets: whoever knows m items of a person finds k people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.sets.settings import check_settings
from shoal.methods.settings import Name
from shoal.policy.generalizing import GeneralizeSection, generalize_files, generalize_problems
from shoal.policy.method_base import KeyPath, MethodSection, Table
from shoal.policy.stream import StreamSection

CERTIFICATE: Final = ".certificate.json"
BLOCKS: Final = ".blocks.json"
_STAND_INS: Final = {"k": 2, "m": 1}
"""For what is missing, so that the rest can be judged all the same."""
_ALONE: Final = "a release of sets is one file, with its certificate beside it; name a file"
_BY_SAMPLING: Final = ("sigma", "adversary", "bound", "trials", "counted", "sampler", "joint")


class SetSection(MethodSection):
    """What all methods on sets have in common."""

    ADVICE: ClassVar[str] = "choose a smaller k or m"
    NEEDS_PERSON: ClassVar[bool] = False
    IS_STREAM: ClassVar[bool] = False

    method: str
    item: Name = Field(description="name the column that holds an item, or a set of them")
    k: Any = Field(description="give the number of people that must share what is known")
    m: Any = Field(description="give how many items of a person somebody may know")
    generalize: GeneralizeSection = Field(
        description="add a table [anonymize.generalize] with one of hierarchy, places, graph or balanced"
    )
    error: Literal["distance", "ncp"] | None = None
    seed: Any = 0
    column: Name = "items"

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
            ("stream", (key,), "nothing leaves but the sets; leave it out")
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
    def cross_check(cls, table: Table) -> list[tuple[KeyPath, str]]:
        return [*generalize_problems(table), *_setting_problems(table)]

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        return {self.item: ("generalize", "hierarchy")} if self.generalize.hierarchy is not None else {}

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        """Keyword arguments; without `generalize` where that depends on the items that come."""
        settings = {name: getattr(self, name) for name in ("error", *self.method_settings())}
        along = hierarchies.get(self.item) or self.generalize.neighbours
        return settings if along is None else {**settings, "generalize": along}

    @classmethod
    def method_settings(cls) -> tuple[str, ...]:
        """Keys that the method itself takes."""
        return ("k", "m")

    def list_columns(self) -> tuple[str, ...]:
        return (self.item,)

    def warnings(self) -> list[str]:
        return []

    @property
    def runs_on_time(self) -> bool:
        return False


class KmSection(SetSection):
    """k^m-anonymity: sizes that can be afforded are counted, larger ones sampled."""

    METHOD: ClassVar[str] = "k^m"
    method: Literal["k^m"]
    sigma: Any = 0.99
    adversary: Any = "itemset"
    bound: Any = "exact"
    trials: Any = 10
    counted: Any = "auto"
    sampler: Any = "exact"
    joint: Any = False

    @classmethod
    def method_settings(cls) -> tuple[str, ...]:
        return ("k", "m", *_BY_SAMPLING, "seed")


class KmAprioriSection(SetSection):
    """k^m-anonymity where everything is counted, size by size."""

    METHOD: ClassVar[str] = "k^m-apriori"
    method: Literal["k^m-apriori"]


def _setting_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """What the method says against its settings; a wrong m must not hide what else is wrong."""
    fields = KmSection.model_fields
    given = {name: table.get(name, fields[name].default) for name in (*_BY_SAMPLING, "seed")}
    given |= {name: table.get(name, stand_in) for name, stand_in in _STAND_INS.items()}
    problems = _problems(given)
    if any(problem.startswith("m: ") for problem in problems):
        lists = [value for value in given.values() if isinstance(value, list) and value]
        problems += _problems({**given, "m": len(lists[0]) if lists else 1})
    elif "m" not in table:
        problems = [problem for problem in problems if "a list of m" not in problem]
    for problem in problems:
        key, _, text = problem.partition(": ")
        yield (key,), text


def _problems(given: Mapping[str, Any]) -> list[str]:
    try:
        check_settings(**given)
    except PolicyError as error:
        return list(error.problems)
    return []


SET_SECTIONS: Final[tuple[type[SetSection], ...]] = (KmSection, KmAprioriSection)
