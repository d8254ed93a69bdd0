"""The experiments on flexible k-anonymity: worked examples, releases of a campaign, and the traceability attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.flexible.calibration import rare_share
from shoal.reproduce.data.measurements import DEVICE, NETWORK, PLACE, PROVIDER, Measurements
from shoal.reproduce.flexible import density
from shoal.reproduce.flexible.attack import STEPS, Target, chain, find, speeds, targets, together
from shoal.reproduce.flexible.releases import (
    Bools,
    Release,
    Shown,
    Truth,
    numbered,
    publish,
    publish_ignoring_device,
    publish_without_ontology,
    raw,
)
from shoal.reproduce.flexible.worked import Worked, k_s_records, work_examples
from shoal.reproduce.study import Progress, Record, Table

FLEXIBLE, EQUAL, IGNORED, EXACT = "flexible", "K_s = K", "device ignored", "no ontology"
HOME, WITH_DEVICE = "home and hours", "home, hours and device"
SHOWN_K: Final = 6
"""The paper: "a small constant around 5 or 6"."""
THRESHOLD: Final = Fraction(1, 10)
"""Share of records with a rare value from which on a column counts as sparse."""
P_SHARES: Final = (0.01, 0.04, 0.05, *(round(0.1 * step, 1) for step in range(1, 11)))


@dataclass(frozen=True, slots=True)
class FlexiblePlan:
    """What to run."""

    crowds: tuple[int, ...] = (3, 6, 12)
    targets: int = 400
    prefixes: int = 8
    """Number of lengths of the stream at which P(s) is measured."""
    seed: int = 1

    @property
    def steps(self) -> int:
        """Number of steps that are reported."""
        releases = 2 * len(self.crowds) + 2
        return 2 * releases + 4


QUICK: Final = FlexiblePlan(targets=100, prefixes=4)


@dataclass(frozen=True, slots=True)
class FlexibleFindings:
    """Results of the study."""

    worked: Worked
    tables: dict[str, Table]


def run_flexible_study(data: Measurements, plan: FlexiblePlan, progress: Progress) -> FlexibleFindings:
    """Run the study; return its tables and the worked examples."""
    return _FlexibleStudy(data, plan, progress).run()


def share_of(is_so: Bools) -> float | None:
    """The share of rows; None where there are none."""
    return float(is_so.mean()) if len(is_so) else None


class _FlexibleStudy:
    def __init__(self, data: Measurements, plan: FlexiblePlan, progress: Progress) -> None:
        self._data, self._plan, self._progress = data, plan, progress
        self._truth = Truth.of(data)
        self._done = 0

    def run(self) -> FlexibleFindings:
        worked = work_examples()
        releases = dict(self._releases())
        seen = [
            raw(self._truth, has_pseudonyms=True), raw(self._truth, has_pseudonyms=False),
            *(release.shown for release in releases.values()),
        ]  # fmt: skip
        known = targets(self._truth, self._plan.targets, self._plan.seed)
        attacks = [self._attacked(shown, known) for shown in seen if len(shown.person)]
        blocks = [record for block in worked.blocks.values() for record in block.records()]
        shown_release = releases[FLEXIBLE, SHOWN_K]
        tables = (
            Table("flexible_k_s", "K_s by P(s) and K: the paper's product, and the people that shoal requires",
                  k_s_records(self._plan.crowds, P_SHARES)),
            Table("flexible_blocks", "The paper's blocks: models, and the labels under which they were published",
                  blocks),
            Table("flexible_columns", f"Every column: the share of records whose value fewer than {SHOWN_K} people "
                  "have", list(self._columns())),
            Table("flexible_p_s", "P(s) of the device in the first records", list(self._prefixes())),
            Table("flexible_runs", "Releases of the campaign", [self._line(*one) for one in releases.items()]),
            Table("flexible_steps", f"Figure 1: records at the steps of the process, k = {SHOWN_K}",
                  list(self._steps(shown_release))),
            Table("flexible_density", "Low, medium and high density: how devices are published",
                  self._density()),
            Table("flexible_attack", "The traceability attack", [row for rows in attacks for row in rows]),
        )  # fmt: skip
        return FlexibleFindings(worked, {table.name: table for table in tables})

    def _step(self, activity: str) -> None:
        self._progress(self._done, self._plan.steps, activity)
        self._done += 1

    # ---- releases

    def _releases(self) -> Iterator[tuple[tuple[str, int], Release]]:
        data, truth = self._data, self._truth
        for k in self._plan.crowds:
            self._step(f"k = {k}, K_s from P(s)")
            yield (FLEXIBLE, k), publish(data, truth, k)
        for k in self._plan.crowds:
            self._step(f"k = {k}, K_s = K")
            yield (EQUAL, k), publish(data, truth, k, k_s=k, name=f"k = {k}, K_s = K")
        k = SHOWN_K
        self._step(f"k = {k}, device ignored")
        yield (IGNORED, k), publish_ignoring_device(data, truth, k, name=f"k = {k}, device ignored")
        self._step(f"k = {k}, no ontology")
        yield (EXACT, k), publish_without_ontology(data, truth, k, name=f"k = {k}, no ontology")

    def _line(self, key: tuple[str, int], release: Release) -> Record:
        name, k = key
        shown = release.shown
        by_normal, by_all = (shown.people_alike(with_device=with_device) for with_device in (False, True))
        return {
            "release": name, "k": k, "k_s": None if name == IGNORED else release.k_s,
            "p_s": release.shares.get(DEVICE) if name in (FLEXIBLE, EQUAL) else None,
            "records": len(self._data), "published": len(release.row), "pending": release.pending,
            "pending_share": release.pending / len(self._data), "loss": release.loss,
            "fewest_people_without_device": min(by_normal.tolist(), default=None),
            "fewest_people_with_device": min(by_all.tolist(), default=None),
            "rows_of_one_person_only": share_of(by_all == 1), "device_as_it_is": share_of(self._is_exact(release)),
        }  # fmt: skip

    def _is_exact(self, release: Release, column: str = DEVICE) -> Bools:
        """By published row: whether the value was published as it is."""
        given = self._data.table[column].take(pa.array(release.row))
        return np.asarray(pc.equal(release.rows[column].combine_chunks(), given.combine_chunks()), dtype=np.bool_)

    def _density(self) -> list[Record]:
        self._step("density")
        classes = density.classes_of(self._data, self._truth)
        crowds = {name: density.CROWDS[name] for name in classes.values()}
        table = {"place": {label: crowds[name] for label, name in classes.items()}}
        release = publish(self._data, self._truth, SHOWN_K, density=table, name="density")
        return density.records(self._data, self._truth, classes, release, self._is_exact(release))

    # ---- P(s)

    def _columns(self) -> Iterator[Record]:
        for name in (DEVICE, PLACE, NETWORK, PROVIDER):
            if name not in self._data.table.column_names:
                continue
            codes, values = numbered(self._data.table[name])
            share = rare_share(codes, self._truth.person, np.full(len(codes), SHOWN_K))
            yield {"column": name, "values": len(values), "p_s": float(share), "rare_in_a_tenth": share >= THRESHOLD}

    def _prefixes(self) -> Iterator[Record]:
        self._step("P(s)")
        rows = len(self._data)
        for part in range(1, self._plan.prefixes + 1):
            first = rows * part // self._plan.prefixes
            for k in self._plan.crowds:
                share = rare_share(self._truth.model[:first], self._truth.person[:first], np.full(first, k))
                yield {"records": first, "k": k, "p_s": float(share)}

    # ---- the process

    def _steps(self, release: Release) -> Iterator[Record]:
        """Figure 1: what happens to the records between the internal and the external database."""
        exact, place = self._is_exact(release), self._is_exact(release, PLACE)
        satisfied = raw(self._truth, has_pseudonyms=False).people_alike(with_device=True) >= SHOWN_K
        by_normal, by_all = (release.shown.people_alike(with_device=with_device) for with_device in (False, True))
        for step, what, records in (
            ("1 to 9", "records of real people", len(satisfied)),
            ("10", f"already alike to {SHOWN_K} people in place, network, hour and device", int(satisfied.sum())),
            ("11", "place generalized", int((~place).sum())),
            ("11", "device under a common criterion", int((~exact).sum())),
            ("12", f"without the device: alike to fewer than K = {SHOWN_K} people", int((by_normal < SHOWN_K).sum())),
            ("12", f"with the device: alike to fewer than K_s = {release.k_s}", int((by_all < release.k_s).sum())),
            ("13", "published", len(release.row)),
            ("", "pending", release.pending),
        ):
            yield {"step": step, "what": what, "records": records}

    # ---- the attack

    def _attacked(self, shown: Shown, known: list[Target]) -> list[Record]:
        self._step(f"attack on {shown.name}")
        linked, shared = chain(shown, known), together(shown, known)
        carried = speeds(shown, known) if self._data.has_speeds else {}
        rows: list[Record] = []
        for knowledge in (HOME, WITH_DEVICE):
            found = find(shown, known, knows_device=knowledge == WITH_DEVICE)
            rows.append({
                "release": shown.name, "attacker_knows": knowledge, "people_looked_for": found["people"],
                "promised": found["promised"], "fewest_candidates": found["least"],
                "median_candidates": found["median"], "fewer_than_promised": found["below"],
                "alone": found["alone"], "rows_picked_theirs": found["precision"],
                "their_rows_picked": found["recall"], "best_guess_right": found["guess"],
                "next_place_right": linked["chained"], "next_place_right_rare_label": linked["rare chained"],
                "next_place_by_chance": linked["by chance"], "no_one_else_in_all_groups": shared["no one else"],
                "row_found_by_exact_speed": carried.get(f"with home and hour at {STEPS[0]:g}"),
            })  # fmt: skip
        return rows
