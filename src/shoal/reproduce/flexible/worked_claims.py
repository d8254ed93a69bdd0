"""What the paper on flexible k-anonymity says in its worked examples, compared with what we find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.reproduce.flexible import worked as examples
from shoal.reproduce.study import Claim, Record


class WorkedClaims:
    """The paper's examples one by one, in its order."""

    def __init__(self, worked: examples.Worked, k_s: Sequence[Record]) -> None:
        self._worked = worked
        self._k_s = k_s

    def all(self) -> Iterator[Claim]:
        """Section by section."""
        yield self._five_models()
        yield self._android()
        yield self._same_country()
        yield self._definition()
        yield self._product()
        yield self._few_rare()
        yield self._six()
        yield self._borrowing()
        yield self._density_story()

    def _block(self, name: str) -> examples.Block:
        return self._worked.blocks[name]

    def _five_models(self) -> Claim:
        plain, common = self._block(examples.FIVE_PLAIN), self._block(examples.FIVE_COMMON)
        return Claim(
            "Sections 2.2, 3: standard generalization cannot build a k-block of five different device models.",
            f"Without an ontology {_labels(plain)}; with it {_labels(common)}.",
            set(plain.labels) == {None} and None not in common.labels,
            "A hierarchy of models by brand and system would do the same as the ontology here.",
        )

    def _android(self) -> Claim:
        systems = self._worked.common(examples.SPARSE, "has OS")
        return Claim(
            "Section 5.1: Samsung Note, HTC One, Huawei and LG have the same system: android mobile.",
            f"Common to {', '.join(examples.SPARSE)} by system: {_listed(systems)}.",
            systems == ["Android"],
            "Inferred from the ontology of devices that shoal includes.",
        )

    def _same_country(self) -> Claim:
        countries = [self._worked.own(model, "headquarters in") for model in examples.SAME_SYSTEM]
        shared = self._worked.common(examples.SAME_SYSTEM, "headquarters in")
        return Claim(
            "Section 5.2: HTC One, Samsung S3, Huawei P8 and LG G2 are produced in the same country: Chinese mobile.",
            f"{', '.join(countries)}; in common: {_listed(shared)}.",
            len(set(countries)) == 1,
            "By the headquarters of the brands. Publishing all four as Chinese would put wrong labels on three.",
        )

    def _definition(self) -> Claim:
        block = self._block(examples.SIX)
        fewest = min(block.counts.values())
        return Claim(
            "Section 5.2, definition: every sequence of values of all quasi-identifiers appears at least K times.",
            f"The paper's own block of section 5.3 has sequences of {fewest} with K = {block.k}.",
            fewest >= block.k,
            "All quasi-identifiers include the sparse ones, so read literally it is plain k-anonymity. We promise K "
            "people by the normal ones, and K_s by all.",
        )

    def _product(self) -> Claim:
        k_s = examples.k_s_of(examples.EXAMPLE_SHARE, examples.EXAMPLE_K)
        return Claim(
            "Section 5.3: k = 6 and P(s) = 50% give K_s = 6 × 0.5 = 3.",
            f"K_s = {k_s}.",
            k_s == examples.EXAMPLE_K_S,
            "Products are rounded up, and K_s is at least 2: 6 × 0.05 = 0.3 people would protect no one.",
        )

    def _few_rare(self) -> Claim:
        low = {share: examples.k_s_of(share, examples.EXAMPLE_K) for share in (0.01, 0.04)}
        others = [one for one in self._k_s if one["p_s"] >= examples.FLOOR and one["k"] == examples.EXAMPLE_K]
        equal = [one["p_s"] for one in others if one["k_s"] == examples.EXAMPLE_K]
        return Claim(
            "Section 5.3: K_s = K where P(s) is very small, otherwise K_s < K.",
            f"k = {examples.EXAMPLE_K}: "
            + "; ".join(f"P(s) = {share:g}: K_s = {k_s}" for share, k_s in low.items())
            + f"; K_s = {examples.EXAMPLE_K} also for P(s) = {', '.join(f'{share:g}' for share in equal)}.",
            set(low.values()) == {examples.EXAMPLE_K} and not equal,
            f"The paper gives no limit; we take {examples.FLOOR}. Where nearly all values are rare, the product itself "
            "reaches K.",
        )

    def _six(self) -> Claim:
        block, regions = self._block(examples.SIX), self._block(examples.SIX_REGIONS)
        return Claim(
            "Section 5.3: of six mobiles three are alike; the other three become android mobile or Chinese mobile.",
            f"{_labels(block)} with the paper's properties; {_labels(regions)} with the included ontology.",
            sorted(block.counts.items(), key=str) == [("Android", 3), (examples.S6, 3)],
            "The included ontology also knows regions, and East Asia covers fewer models than Android.",
        )

    def _borrowing(self) -> Claim:
        block = self._block(examples.BORROWED)
        return Claim(
            "(Not in the paper: five phones are alike and one is not.)",
            f"{_labels(block)}.",
            None,
            "A label with more than K_s people lends some to the rest, so that no record waits.",
        )

    def _density_story(self) -> Claim:
        low, high = self._block(examples.LOW), self._block(examples.HIGH)
        kept = [label for model, label in zip(high.models, high.labels, strict=True) if model == examples.S6]
        lost = [label for model, label in zip(low.models, low.labels, strict=True) if model == examples.S6]
        return Claim(
            "Section 5.3: a Samsung S6 becomes Samsung mobile at low density and is not generalized at high density.",
            f"Low density (k = {low.k}): {_labels(low)}. High density (k = {high.k}): {_labels(high)}.",
            set(lost) == {"Samsung"} and set(kept) == {examples.S6},
            "A place with its own k is the setting density.",
        )


def _labels(block: examples.Block) -> str:
    parts = [f"{people} {label or 'pending'}" for label, people in block.counts.items()]
    return " + ".join(parts)


def _listed(labels: list[str]) -> str:
    return ", ".join(labels) or "nothing"
