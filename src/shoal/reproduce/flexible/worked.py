"""The paper's worked examples: K_s from P(s), common criteria of phones, and blocks of a few people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.ontology.concepts import Concepts
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.methods.flexible.calibration import label_crowd
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.reproduce.study import Record
from shoal.schema import Categorical, Schema

S6: Final = "Samsung Galaxy S6"
SAME_SYSTEM: Final = ("HTC One (M7)", "Samsung Galaxy S III", "Huawei P8", "LG G2")
"""The models of section 5.2: "HTC One, Samsung S3, Huawei P8 and LG G2"."""
SPARSE: Final = ("Samsung Galaxy Note 4", "HTC One (M8)", "Huawei P8", "LG G2")
"""Section 5.1: "Samsung Note, HTC One, Huawei, LG"."""
FIVE: Final = (*SAME_SYSTEM, "Sony Xperia Z3")
"""Sections 2.2 and 3: "five different device models"."""
EXAMPLE_K, EXAMPLE_SHARE, EXAMPLE_K_S = 6, 0.5, 3
FLOOR: Final = 0.05
LOW, HIGH = "low density", "high density"
LOW_K, HIGH_K = 6, 4
_OTHER_SAMSUNG: Final = (
    "Samsung Galaxy Note 4", "Samsung Galaxy Note II", "Samsung Galaxy A5", "Samsung Galaxy J5"
)  # fmt: skip
_NETWORKS: Final = ("3G", "4G")


@dataclass(frozen=True, slots=True)
class Block:
    """A few people in one place, and how their phones were published."""

    name: str
    k: int
    k_s: int
    models: Sequence[str]
    labels: Sequence[str | None]
    """One for each model; None while the row is pending."""

    @property
    def counts(self) -> Mapping[str | None, int]:
        """Number of people by label."""
        return Counter(self.labels)

    def records(self) -> Iterator[Record]:
        """A line for every model and label."""
        for (model, label), people in sorted(Counter(zip(self.models, self.labels, strict=True)).items(), key=str):
            yield {
                "block": self.name, "k": self.k, "k_s": self.k_s, "model": model, "published_as": label or "(pending)",
                "people": people,
            }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Worked:
    """Results of the worked examples."""

    concepts: Concepts
    """Devices of the included ontology."""
    blocks: dict[str, Block] = field(default_factory=dict)

    def common(self, models: Sequence[str], kind: str) -> list[str]:
        """Labels of one property that all of these models share."""
        shared = set.intersection(*(set(self.concepts.labels_above(model)) for model in models))
        return sorted(label for label in shared if property_of(self.concepts, label) == kind)

    def own(self, model: str, kind: str) -> str:
        """The nearest label of a model by one property."""
        found = [one for one in self.concepts.labels_above(model) if property_of(self.concepts, one) == kind]
        return found[0] if found else ""

    def brand(self, model: str) -> str:
        """The coarsest class of a model."""
        return [one for one in self.concepts.labels_above(model) if property_of(self.concepts, one) == "is a"][-1]


SIX, SIX_REGIONS, BORROWED = "3 + 3 phones", "3 + 3, with regions", "5 + 1 phones"
FIVE_PLAIN, FIVE_COMMON = "five models, no ontology", "five models"
"""Names of blocks."""


def work_examples() -> Worked:
    """Run all of the paper's blocks."""
    included = Ontology.devices()
    found = Worked(included.attribute("device"))
    ontology = _as_in_the_paper(found)
    others = [model for model in SAME_SYSTEM if not model.startswith("Samsung")]
    blocks = (
        _block(SIX, ontology, [S6] * 3 + others, EXAMPLE_K, p_sparse=EXAMPLE_SHARE),
        _block(SIX_REGIONS, included, [S6] * 3 + others, EXAMPLE_K, p_sparse=EXAMPLE_SHARE),
        _block(BORROWED, ontology, [S6] * 5 + others[:1], EXAMPLE_K, p_sparse=EXAMPLE_SHARE),
        _block(FIVE_PLAIN, None, FIVE, len(FIVE)),
        _block(FIVE_COMMON, ontology, FIVE, len(FIVE), p_sparse=EXAMPLE_SHARE),
        *_density_blocks(ontology),
    )
    found.blocks.update({block.name: block for block in blocks})
    return found


def _as_in_the_paper(found: Worked) -> Ontology:
    """The included devices with the properties that the paper names: "is a", "has OS", "produced in" a country."""
    table = [
        {
            "device": model, "family": found.own(model, "is a"), "brand": found.brand(model),
            "has OS": found.own(model, "has OS"), "produced in": found.own(model, "headquarters in"),
        }
        for model in found.concepts.values
    ]  # fmt: skip
    return Ontology.from_table(
        table, value="device", is_a=["family", "brand"], properties=["has OS", "produced in"], tag="sparse"
    )


def k_s_records(crowds: Sequence[int], shares: Sequence[float]) -> list[Record]:
    """K_s by P(s) and K: the paper's product, and the number of people that shoal requires."""
    return [
        {"p_s": share, "k": k, "product": share * k, "k_s": k_s_of(share, k)} for k in crowds for share in shares
    ]  # fmt: skip


def k_s_of(share: float, k: int) -> int:
    """K_s for a share given as a decimal number."""
    return label_crowd(Fraction(str(share)), k, FLOOR)


def property_of(concepts: Concepts, label: str) -> str:
    """The property by which a label stands above its values."""
    node = concepts.node_of(label)
    return "" if node is None else concepts.properties[concepts.property_of[node]]


def _block(name: str, ontology: Ontology | None, models: Sequence[str], k: int, **options: Any) -> Block:
    """People at one place with one network; their labels in the order of the models."""
    places = ["here"] * len(models)
    return _run(name, ontology, models, places, k, **options)[0]


def _density_blocks(ontology: Ontology) -> list[Block]:
    """A village and a city centre, each with its own k; someone with a Galaxy S6 is in both."""
    village = [S6, "Samsung Galaxy S III", *_OTHER_SAMSUNG]
    centre = [S6] * 5 + ["HTC One (M8)", "LG G2", "Huawei P8"]
    places = [LOW] * len(village) + [HIGH] * len(centre)
    density = {"place": {LOW: LOW_K, HIGH: HIGH_K}}
    return _run(
        "", ontology, [*village, *centre], places, LOW_K, p_sparse=EXAMPLE_SHARE, density=density
    )  # fmt: skip


def _run(
    name: str, ontology: Ontology | None, models: Sequence[str], places: Sequence[str], k: int, **options: Any
) -> list[Block]:  # fmt: skip
    """Publish; one block for every place, named by it if `name` is empty."""
    device = Categorical("device") if ontology else Categorical("device", Hierarchy.flat(sorted(set(models))))
    labels = sorted({*places, "elsewhere"})
    schema = Schema(
        person="maid",
        quasi=[Categorical("place", Hierarchy.flat(labels)), Categorical("network", Hierarchy.flat(_NETWORKS)), device],
    )
    made = FlexibleK(schema, ontology, k=k, key=bytes(16), **options)
    table = {"maid": [f"p{at}" for at in range(len(models))], "place": places, "network": ["4G"] * len(models)}
    parts = [made.push_batch(pa.table({**table, "device": list(models)})), made.flush()]
    published: list[str | None] = [None] * len(models)
    for part in parts:
        released = [one["row"] for one in part.trace.to_pylist() if one["verdict"] == "released"]
        for row, label in zip(released, part.rows["device"].to_pylist(), strict=True):
            published[row] = label
    assert made.frozen is not None
    blocks = []
    for place in dict.fromkeys(places):
        rows = [row for row, at in enumerate(places) if at == place]
        needed = options.get("density", {}).get("place", {}).get(place, k)
        blocks.append(
            Block(name or place, needed, made.frozen.k_s[needed], [models[row] for row in rows],
                  [published[row] for row in rows])
        )  # fmt: skip
    return blocks
