"""What the paper says of data released with flexible k-anonymity, compared with what we find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.reproduce.flexible.density import HIGH, LOW
from shoal.reproduce.flexible.study import (
    EQUAL,
    EXACT,
    FLEXIBLE,
    HOME,
    IGNORED,
    SHOWN_K,
    WITH_DEVICE,
)
from shoal.reproduce.study import Claim, Record, Table, from_to, where

_PAPER_SHARE: Final = 0.3
"""The paper's P(s) of "device mobile"."""
_MOST: Final = 0.5
_FEW_PENDING: Final = 0.02


class CampaignClaims:
    """The paper's statements on its data, in its order."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = {name: table.records for name, table in tables.items()}

    def all(self) -> Iterator[Claim]:
        """Section by section; a statement is neither right nor wrong where too little was published."""
        yield self._sensitive_columns()
        yield self._result_is_not_sensitive()
        yield self._pseudonyms()
        yield self._traced()
        yield self._nothing_suppressed()
        yield self._ignoring_the_device()
        yield self._device_as_normal()
        yield self._share()
        yield self._density_of_campaign()
        yield self._five_or_six()
        yield self._accurate_and_private()

    def _run(self, release: str, k: int = SHOWN_K) -> Record:
        return next(iter(where(self._tables["flexible_runs"], release=release, k=k)))

    def _attack(self, release: str, knowledge: str) -> Record | None:
        return next(iter(where(self._tables["flexible_attack"], release=release, attacker_knows=knowledge)), None)

    def _sensitive_columns(self) -> Claim:
        shares = {one["column"]: one["p_s"] for one in self._tables["flexible_columns"]}
        others = [share for name, share in shares.items() if name not in ("device", "place")]
        return Claim(
            "Section 3, Table 1: device model and location are the two most sensitive attributes.",
            "Records whose value fewer than "
            f"{SHOWN_K} people have: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()) + ".",
            min(shares["device"], shares["place"]) > max(others),
            "We read sensitive as: how often a value alone is rare.",
        )

    def _result_is_not_sensitive(self) -> Claim:
        found = self._attack(f"k = {SHOWN_K}", HOME)
        share = None if found is None else found["row_found_by_exact_speed"]
        return Claim(
            "Table 1: the result (Mbps) is not sensitive, and is published as it is.",
            f"k = {SHOWN_K}: home, hours and the exact speed lead to a single row for {_percent(share)} of the rows "
            "looked for.",
            None if share is None else share < _MOST,
            "Who saw the number on the phone has found the row. Publish rounded results.",
        )

    def _pseudonyms(self) -> Claim:
        with_name, without = self._attack("raw, pseudonyms", HOME), self._attack("pseudonyms removed", WITH_DEVICE)
        assert with_name is not None
        assert without is not None
        return Claim(
            "Sections 4 and 6: removing identifiers or replacing them by pseudonyms does not protect.",
            f"With pseudonyms {_percent(with_name['their_rows_picked'])} of a person's rows are found from home and "
            f"hours alone. Without identifiers, {_percent(without['alone'])} of people are the only candidate if the "
            "device is known too.",
            (with_name["their_rows_picked"] or 0) > _MOST and (without["alone"] or 0) > _MOST,
            "The attacker knows the place where a person measures most and the hours in which the person did there.",
        )

    def _traced(self) -> Claim:
        before, after = self._attack("pseudonyms removed", WITH_DEVICE), self._attack(f"k = {SHOWN_K}", WITH_DEVICE)
        if before is None or after is None:
            return _nothing("Section 2.2: traceability: from home on to the other places of a person.")
        return Claim(
            "Section 2.2: traceability: from home on to the other places of a person; generalization must prevent it.",
            f"The next row elsewhere with the same device label is theirs for {_percent(before['next_place_right'])} "
            f"of the rows at home without identifiers, for {_percent(after['next_place_right'])} at k = {SHOWN_K}; by "
            f"chance for {_percent(after['next_place_by_chance'])}. Nobody else is in all groups of "
            f"{_percent(after['no_one_else_in_all_groups'])} of people.",
            (after["next_place_right"] or 0) < (before["next_place_right"] or 0) / 5,
            "Following one row is hard, but not as hard as chance. Someone who knows where everyone was can still tell "
            "most people apart: k-anonymity of rows does not protect whole trajectories.",
        )

    def _nothing_suppressed(self) -> Claim:
        run = self._run(FLEXIBLE)
        return Claim(
            "Section 3: suppression is not allowed; every record is shown.",
            f"k = {SHOWN_K}: {run['published']:,} of {run['records']:,} records published, none suppressed, "
            f"{run['pending']:,} ({_percent(run['pending_share'])}) pending.",
            run["pending"] == 0,
            "No method can publish every record at once: where fewer than K people share even the coarsest labels, "
            "records wait for more people.",
        )

    def _ignoring_the_device(self) -> Claim:
        run, found = self._run(IGNORED), self._attack(f"k = {SHOWN_K}, device ignored", WITH_DEVICE)
        return Claim(
            "Section 5.2: leaving sparse attributes out of the blocks can identify people.",
            f"k = {SHOWN_K} without the device, which is published as it is: "
            f"{_percent(run['rows_of_one_person_only'])} of the rows are of one person only by all columns; "
            f"{_percent(found['alone'] if found else None)} of people are the only candidate.",
            (run["rows_of_one_person_only"] or 0) > 0,
            "So sparse columns must count.",
        )

    def _device_as_normal(self) -> Claim:
        exact, equal = self._run(EXACT), self._run(EQUAL)
        return Claim(
            "Section 5.2: treating sparse attributes like normal ones can make the process fail.",
            f"k = {SHOWN_K} for all columns: {_percent(exact['pending_share'])} of the records cannot be published if "
            f"models have no common criteria, {_percent(equal['pending_share'])} with the ontology (K_s = K).",
            exact["pending_share"] > _MOST,
            "Most of the gain comes from the ontology, not from a smaller K_s. shoal's strongest alternative, "
            "least-loss, publishes all records at K_s = K, some with labels that say nothing.",
        )

    def _share(self) -> Claim:
        run = self._run(FLEXIBLE)
        points = [one["p_s"] for one in self._tables["flexible_p_s"] if one["k"] == SHOWN_K]
        return Claim(
            "Section 5.3: P(s) of the device is no more than 30%.",
            f"k = {SHOWN_K}: {run['p_s']:.1%} in the first window, so K_s = {run['k_s']}; "
            f"{from_to(points)} over longer and longer streams.",
            run["p_s"] <= _PAPER_SHARE,
            "P(s) depends on k and on the number of people, which the paper does not give. We count records whose "
            "device fewer than k people have.",
        )

    def _density_of_campaign(self) -> Claim:
        shares = {one["density"]: one["device_as_it_is"] for one in self._tables["flexible_density"]}
        low, high = shares.get(LOW), shares.get(HIGH)
        return Claim(
            "Section 5.3: with a k for low, medium and high density, devices keep more detail where density is high.",
            "Devices published as they are: "
            + ", ".join(f"{name} {_percent(share)}" for name, share in shares.items()) + ".",
            None if low is None or high is None else high > low,
            "Classes are thirds of the labels below the root, by people per place; k = 10, 8 and 6. The paper gives "
            "neither.",
        )  # fmt: skip

    def _five_or_six(self) -> Claim:
        runs = where(self._tables["flexible_runs"], release=FLEXIBLE)
        found = [
            f"k = {one['k']}: loss {_number(one['loss'])}, {_percent(one['pending_share'])} pending" for one in runs
        ]  # fmt: skip
        return Claim(
            "Section 5.3: a small k around 5 or 6 gives positive results.",
            "; ".join(found) + ".",
            self._run(FLEXIBLE)["pending_share"] <= _FEW_PENDING,
            f"Positive is read as: at most {_FEW_PENDING:.0%} pending. Loss is the average share of other values that "
            "labels cover.",
        )

    def _accurate_and_private(self) -> Claim:
        run, equal = self._run(FLEXIBLE), self._run(EQUAL)
        home, device = (self._attack(f"k = {SHOWN_K}", knowledge) for knowledge in (HOME, WITH_DEVICE))
        below = [one["fewer_than_promised"] for one in (home, device) if one is not None]
        losses = [one["loss"] for one in (run, equal)]
        return Claim(
            "Section 5.3: more accurate data, with a high level of privacy.",
            f"k = {SHOWN_K}: loss {_number(losses[0])} with K_s = {run['k_s']}, {_number(losses[1])} with K_s = K. "
            f"Candidates: at least {_fewest(home)} people by home and hours, {_fewest(device)} if the device is known; "
            f"fewer than promised for {_percent(max((share or 0.0 for share in below), default=None))} of people.",
            None if None in losses else losses[0] <= losses[1] and not any(below),
            "Accuracy is paid for with privacy: who knows the device finds K_s people in a group, not K.",
        )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _percent(share: float | None) -> str:
    if share is None:
        return "an unknown share"
    return f"{share:.2%}" if 0 < share < 0.01 else f"{share:.1%}"


def _fewest(found: Record | None) -> Any:
    return "no" if found is None or found["fewest_candidates"] is None else found["fewest_candidates"]


def _nothing(paper: str) -> Claim:
    return Claim(paper, "Nothing was published.", None, "Too few people share places and hours.")
