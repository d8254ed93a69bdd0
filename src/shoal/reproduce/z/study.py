"""The figures of the z-anonymity paper: its model with bounds, and Algorithm 1 on streams drawn from the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.model import ZModel
from shoal.models.z.probability import Probability
from shoal.models.z.simulate import ALIKE, SHOWN, SHOWN_ALIKE, averaged, exposures_of, play, publishing
from shoal.reproduce.study import Progress, Record, Table

Floats = npt.NDArray[np.float64]

USERS, ATTRIBUTES, WINDOW, Z, K = 1000, 20, 12.0, 150, 2
"""The paper's Table 2."""
CROWDS: Final = (2, 3, 4)
FALLS: Final = (340, 352, 378, 411, 441, 487, 536, 591)
"""Pairs of z between which the probability falls while z grows (k = 2)."""
CLASS_SIZE, CLASS_Z = 500, 50
"""People per class and z of figures 7 and 8."""
TABLE_3, KEPT = "rates of Table 3", "mean rate kept"
CONFIDENCE: Final = 0.99
"""Confidence level of the error bars."""
_SLOWER: Final = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7)
_MOST_DRAWN: Final = 2e7
"""Exposures per point; with many people there are fewer runs."""
_FEWEST_RUNS: Final = 3
MOST_RUNS_OF_RANKS: Final = 40


@dataclass(frozen=True, slots=True)
class ZPlan:
    """What to compute and to simulate; values that the paper does not give, such as some z, are our choice."""

    runs: int = 100
    seed: int = 1
    ranks: tuple[int, ...] = (
        *range(1, 21), *range(22, 43, 3), 50, 60, 80, 100, 130, 160, 200, 250, 300, 400, 500, 700, 1000,
    )  # fmt: skip
    windows_of_ranks: tuple[float, ...] = (WINDOW, 4.0)
    zs_of_ranks: tuple[int, ...] = (1, 10, 100, 250)
    zs: tuple[int, ...] = tuple(sorted({*range(10, 601, 10), *range(75, 326, 50), 208, *FALLS}))
    played_zs: tuple[int, ...] = tuple(sorted({*range(50, 350, 25), *range(350, 601, 50), *FALLS}))
    windows: tuple[float, ...] = (0.5, 1, 1.5, 2, 2.5, *range(3, 15), 16, 18, 20, 24, 30, 40, 60)
    attributes: tuple[int, ...] = (*range(1, 21), 25, 30, 40, 50, 70, 100, 200, 500, 1000)
    zs_of_attributes: tuple[int, ...] = (1, 50, 100, 150, 300)
    users: tuple[int, ...] = (
        50, 75, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10**4, 30_000, 10**5, 10**6, 10**7, 10**8,
    )  # fmt: skip
    zs_of_users: tuple[int, ...] = (10, 100, 300)
    users_for_one_z: int = 25
    """Figure 6b: z is the number of users divided by this."""
    ratios: tuple[float, ...] = (*_SLOWER, 1.0, *(1 / ratio for ratio in reversed(_SLOWER)))
    separations: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    is_exact: bool = True
    """Whether figure 3 and classes are enumerated (up to a second per point)."""
    width: float = 1e-4
    """Largest distance between bounds where nothing is enumerated."""
    most_users_played: int = 100_000
    most_attributes_played: int = 200

    @property
    def steps(self) -> int:
        """Number of progress reports."""
        swept = (self.windows_of_ranks, self.zs, self.windows, self.attributes, self.users, self.ratios)
        return sum(map(len, swept)) + 2 * len(self.separations) + 2


QUICK: Final = ZPlan(
    runs=6, is_exact=False, width=2e-3, most_users_played=2000, most_attributes_played=20,
    ranks=(*range(1, 21, 2), 25, 30, 37, 50, 70, 100, 200, 300),
    zs=(50, 100, 150, 200, 208, 250, 300, 340, 350, 352, 378, 411, 450, 500),
    played_zs=(50, 100, 150, 200, 250, *FALLS[:4], 350, 500),
    windows=(1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 30, 60),
    attributes=(1, 5, 10, 12, 15, 20, 30, 50, 100),
    users=(100, 200, 500, 1000, 2000, 5000, 10_000, 10**6, 10**8),
    ratios=(0.01, 0.1, 0.3, 1.0, 1 / 0.3, 10.0, 100.0),
    separations=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
)  # fmt: skip


def rates_of(attributes: int) -> Floats:
    """Return the paper's rates: 0.2 / rank."""
    return 0.2 / np.arange(1, attributes + 1)


def table_2(users: int = USERS, attributes: int = ATTRIBUTES, window: float = WINDOW) -> ZModel:
    """The model at the paper's default values."""
    return ZModel(users, rates_of(attributes), window)


def activity_rates(ratio: float) -> list[Floats]:
    """Rates of two classes, the second `ratio` times as active, with the same mean rate (section 6.1)."""
    first = rates_of(ATTRIBUTES) * 2 / (1 + ratio)
    return [first, first * ratio]


def interest_rates(separation: float, *, is_kept: bool) -> list[Floats]:
    """Rates of two classes that prefer even and odd ranks (Table 3), doubled to keep the mean rate if `is_kept`."""
    rates, is_even = rates_of(ATTRIBUTES) * (2 if is_kept else 1), np.arange(1, ATTRIBUTES + 1) % 2 == 0
    eta = (1 + separation) / 2
    return [np.where(is_even, eta, 1 - eta) * rates, np.where(is_even, 1 - eta, eta) * rates]


def two_classes(rates: Sequence[Floats]) -> ZModel:
    """Two classes of 500 people."""
    return ZModel(classes=[{"users": CLASS_SIZE, "rates": own} for own in rates], window=WINDOW)


def run_z_study(plan: ZPlan, progress: Progress) -> dict[str, Table]:
    """Run the study; return its tables by name."""
    study = _Study(plan, progress)
    found = (
        ("publishing", "Figure 2: probability that a person publishes the attribute of a rank", study.publishing()),
        ("by_z", "Figure 3: probability to be k-anonymous, by z and k", study.by_z()),
        ("by_window", "Figure 4: by the length of the window", study.by_window()),
        ("by_attributes", "Figure 5: by the number of attributes, with entropy in nats", study.by_attributes()),
        ("by_users", "Figure 6: by the number of people", study.by_users()),
        ("activity", "Figure 7: classes of activity", study.activity()),
        ("interest", "Figure 8: classes of interest", study.interest()),
        ("seeds", "Figure C.10: one run per row", study.seeds()),
    )
    tables = {name: Table(f"z_{name}", caption, list(records), digits=6) for name, caption, records in found}
    progress(plan.steps, plan.steps, "drawing")
    return tables


class _Study:
    """Computes the figures, one after the other."""

    def __init__(self, plan: ZPlan, progress: Progress) -> None:
        self._plan, self._progress, self._done = plan, progress, 0

    def _step(self, step: str) -> None:
        self._progress(self._done, self._plan.steps, step)
        self._done += 1

    def _runs(self, model: ZModel) -> int:
        rates, sizes = np.atleast_2d(model.rates), np.array([model.users])
        most = int(_MOST_DRAWN / exposures_of(sizes, rates[:1], model.window))
        return min(self._plan.runs, max(_FEWEST_RUNS, most))

    def _bounded(self, model: ZModel, z: int, k: int) -> dict[str, float]:
        return _bounds(model.p_k_anonymous(z, k, width=self._plan.width))

    def _simulate(self, model: ZModel, zs: Sequence[int], ks: Sequence[int], sizes: Sequence[int] = ()) -> Any:
        """Simulate; return counts by run, z, k, class and kind."""
        users = np.array(sizes or [model.users], dtype=np.int64)
        rates = np.atleast_2d(model.rates)
        return play(users, rates, model.window, zs, ks, runs=self._runs(model), seed=self._plan.seed)

    def publishing(self) -> Iterator[Record]:
        """Figure 2."""
        plan = self._plan
        most = max(plan.ranks)
        for window in plan.windows_of_ranks:
            self._step(f"figure 2, Δt = {window:g}")
            model = table_2(attributes=most, window=window)
            users, runs = np.array([USERS]), min(plan.runs, MOST_RUNS_OF_RANKS)
            drawn = publishing(users, model.rates[None], window, plan.zs_of_ranks, runs=runs, seed=plan.seed)
            for i, z in enumerate(plan.zs_of_ranks):
                by_rank = model.p_published(z)
                for rank in plan.ranks:
                    value = float(by_rank[rank - 1])
                    yield {
                        "window": window, "z": z, "rank": rank, "model": value, "lower": value, "upper": value,
                        **_simulated(drawn[:, i, rank - 1]),
                    }  # fmt: skip

    def by_z(self) -> Iterator[Record]:
        """Figure 3, with the share released and the share among people with anything published."""
        plan, model = self._plan, table_2()
        self._step("figure 3, simulating")
        drawn = self._simulate(model, plan.played_zs, CROWDS)
        users, runs = np.array([USERS]), self._runs(model)
        shares = publishing(users, model.rates[None], WINDOW, plan.played_zs, runs=runs, seed=plan.seed).mean(axis=0)
        for z in plan.zs:
            self._step(f"figure 3, z = {z}")
            for j, k in enumerate(CROWDS):
                found = self._by_z(model, z, k)
                counts = drawn[:, plan.played_zs.index(z), j, 0] if z in plan.played_zs else None
                yield {
                    "k": k, "z": z, **_bounds(found), "method": found.method, "released": model.released_share(z),
                    **_simulated(None if counts is None else counts[:, ALIKE] / USERS),
                    "simulated_among_shown": None if counts is None else _among_shown(counts),
                    "model_with_simulated_shares": (
                        None if counts is None or k != K else _with_shares(shares[plan.played_zs.index(z)])
                    ),
                    "runs_with_all_alike": None if counts is None else float((counts[:, ALIKE] == USERS).mean()),
                }  # fmt: skip

    def _by_z(self, model: ZModel, z: int, k: int) -> Probability:
        if k != K:
            return model.p_k_anonymous(z, k, width=self._plan.width)
        if self._plan.is_exact:
            return model.p_k_anonymous(z, k, method="exact")
        return model.p_k_anonymous(z, k, method="tree", theta1=1e-6, theta2=0.01)

    def by_window(self) -> Iterator[Record]:
        """Figure 4."""
        for window in self._plan.windows:
            self._step(f"figure 4, Δt = {window:g}")
            model = table_2(window=window)
            drawn = self._simulate(model, [Z], CROWDS)
            for j, k in enumerate(CROWDS):
                yield {
                    "k": k, "window": float(window), **self._bounded(model, Z, k),
                    **_simulated(drawn[:, 0, j, 0, ALIKE] / USERS),
                }  # fmt: skip

    def by_attributes(self) -> Iterator[Record]:
        """Figure 5."""
        plan = self._plan
        for attributes in plan.attributes:
            self._step(f"figure 5, A = {attributes}")
            model = table_2(attributes=attributes)
            is_played = attributes <= plan.most_attributes_played
            drawn = self._simulate(model, plan.zs_of_attributes, [K]) if is_played else None
            for i, z in enumerate(plan.zs_of_attributes):
                yield {
                    "z": z, "attributes": attributes, **self._bounded(model, z, K), "entropy": model.entropy(z),
                    **_simulated(None if drawn is None else drawn[:, i, 0, 0, ALIKE] / USERS),
                }  # fmt: skip

    def by_users(self) -> Iterator[Record]:
        """Figure 6: for fixed z, and for z that grows with the number of people."""
        plan = self._plan
        for users in plan.users:
            self._step(f"figure 6, U = {users:,}")
            model = table_2(users=users)
            growing = max(1, users // plan.users_for_one_z)
            asked = [(str(z), z, K) for z in plan.zs_of_users]
            asked += [(f"U/{plan.users_for_one_z}", growing, k) for k in CROWDS]
            zs = [*plan.zs_of_users, growing]
            drawn = self._simulate(model, zs, CROWDS) if users <= plan.most_users_played else None
            for name, z, k in asked:
                counts = None if drawn is None else drawn[:, zs.index(z), CROWDS.index(k), 0, ALIKE]
                yield {
                    "rule": name, "z": z, "k": k, "users": users, **self._bounded(model, z, k),
                    "released": model.released_share(z), **_simulated(None if counts is None else counts / users),
                }  # fmt: skip

    def activity(self) -> Iterator[Record]:
        """Figure 7."""
        for ratio in self._plan.ratios:
            self._step(f"figure 7, ratio {ratio:.2g}")
            yield from self._classes({"ratio": ratio}, activity_rates(ratio))

    def interest(self) -> Iterator[Record]:
        """Figure 8, with the rates of Table 3 and with twice these rates."""
        for rule in (TABLE_3, KEPT):
            for separation in self._plan.separations:
                self._step(f"figure 8, separation {separation:g}")
                rates = interest_rates(separation, is_kept=rule == KEPT)
                yield from self._classes({"rule": rule, "separation": separation}, rates)

    def _classes(self, where: Record, rates: list[Floats]) -> Iterator[Record]:
        model = two_classes(rates)
        found = model.p_k_anonymous(CLASS_Z, K, method="exact" if self._plan.is_exact else "sample", samples=40_000)
        counts = self._simulate(model, [CLASS_Z], [K], (CLASS_SIZE, CLASS_SIZE))[:, 0, 0, :, ALIKE]
        extra = {"released": model.released_share(CLASS_Z), "entropy": model.entropy(CLASS_Z)}
        for c, own in enumerate(found.by_class):
            yield {
                **where, "people": f"class {c + 1}", **_bounds(own), **_simulated(counts[:, c] / CLASS_SIZE), **extra
            }  # fmt: skip
        yield {**where, "people": "all", **_bounds(found), **_simulated(counts.sum(axis=1) / (2 * CLASS_SIZE)), **extra}

    def seeds(self) -> Iterator[Record]:
        """Figure C.10."""
        self._step("figure C.10")
        counts = self._simulate(table_2(), [Z], [K])[:, 0, 0, 0]
        for run, (alike, shown, both) in enumerate(counts.tolist()):
            yield {
                "run": run + 1, "k_anonymous": alike / USERS, "people_shown": shown,
                "k_anonymous_among_shown": both / shown if shown else None,
            }  # fmt: skip


def _bounds(found: Probability) -> dict[str, float]:
    return {"model": found.value, "lower": found.lower, "upper": found.upper}


def _simulated(shares: Floats | None) -> dict[str, float | None]:
    if shares is None:
        return {"simulated": None, "low": None, "high": None}
    found = averaged(shares, CONFIDENCE)
    return {"simulated": found.value, "low": found.lower, "high": found.upper}


def _with_shares(published: Floats) -> float:
    """Evaluate the formula with the shares of people who publish each attribute taken from the runs."""
    rates = -np.log1p(-published) / WINDOW  # with z = 1 every exposure is published
    return ZModel(USERS, rates, WINDOW).p_k_anonymous(1, K, method="tree", theta1=1e-6, theta2=0.01).value


def _among_shown(counts: npt.NDArray[np.int64]) -> float | None:
    shown = int(counts[:, SHOWN].sum())
    return int(counts[:, SHOWN_ALIKE].sum()) / shown if shown else None
