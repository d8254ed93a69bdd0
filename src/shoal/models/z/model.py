"""How likely is a person k-anonymous by everything that z-anonymity releases of them?

The model of Jha, Vassio, Trevisan, Leonardi and Mellia: people expose attributes as Poisson processes, an exposure is
released if at least z - 1 others exposed the attribute within the window, and a person is k-anonymous if at least
k - 1 others show exactly the same attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.kernels.z.binomials import tails
from shoal.models.z import classes as z_classes
from shoal.models.z.probability import Probability, enumerated, on_lattice, on_tree
from shoal.models.z.simulate import simulated
from shoal.schema import duration_ns

if TYPE_CHECKING:
    from shoal.models.z.estimate import Estimate

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Method = Literal["lattice", "exact", "sample", "tree", "simulate"]
_MOST_USERS: Final = 10**9
_MOST_EXACT: Final = 26
_FEW: Final = 16
_FINEST: Final = 1e-9
"""Below this width, rounding errors hide the distance between the bounds."""


class Options(TypedDict, total=False):
    """How to compute a probability: :meth:`ZModel.p_k_anonymous` explains each option."""

    method: Method | None
    width: float
    samples: int
    seed: int
    confidence: float
    theta1: float
    theta2: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class _Computation:
    """The options with their defaults."""

    method: Method | None = None
    width: float = 1e-4
    samples: int = 100_000
    seed: int = 0
    confidence: float = 0.999
    theta1: float = 1.0
    theta2: float | None = None
    runs: int = 100

    def sampling(self) -> dict[str, Any]:
        return {"samples": _whole("samples", self.samples, 1), **self._random()}

    def simulation(self) -> dict[str, Any]:
        return {"runs": _whole("runs", self.runs, 2), **self._random()}

    def _random(self) -> dict[str, Any]:
        if not 0 < self.confidence < 1:
            raise PolicyError("confidence: must be a number between 0 and 1")
        return {"seed": self.seed, "confidence": self.confidence}


class ZModel:
    """The model of z-anonymity for people who are all alike, or of several classes.

    Parameters
    ----------
    users
        How many people there are.
    rates
        How often a person exposes each attribute, per second (or in whatever unit `window` is).
    window
        How far back people are counted: a number in the unit of the rates, or a duration such as "1h" (then rates are
        per second).
    classes
        Instead of `users` and `rates`: a table with `users` and `rates` for each class of people; all classes list the
        same attributes. The paper's table 3 halves the rates where interests are equal; give the rates you mean.

    Examples
    --------
    >>> model = ZModel(users=1000, rates=[0.2 / rank for rank in range(1, 21)], window=12)
    >>> found = model.p_k_anonymous(150, 2)
    >>> found.lower <= 0.424692 <= found.upper, round(model.entropy(150), 6)
    (True, 8.045191)
    """

    def __init__(
        self,
        users: int | None = None,
        rates: Iterable[float] | None = None,
        window: float | str | None = None,
        *,
        classes: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        if classes is not None and (users is not None or rates is not None):
            raise PolicyError("classes: each class has its own users and rates; leave out users and rates of the model")
        listed = [{"users": users, "rates": rates}] if classes is None else classes
        self._parameters = self._sizes, self._rates, self._window = _checked(listed, window)
        self._exposed: Floats = -np.expm1(-self._rates * self._window)
        self._passing: tuple[int, Floats] = (0, self._rates)
        self.estimated: Estimate | None = None
        """What the model was estimated from; None where it was not estimated."""

    @classmethod
    def estimate(
        cls,
        stream: Any,
        *,
        person: str | None = None,
        time: str | None = None,
        attribute: str | None = None,
        window: float | str | None = None,
        classes: int = 1,
    ) -> ZModel:
        """Estimate people and rates from a stream; `model.estimated` says how, and whether the data is long enough.

        Parameters
        ----------
        stream
            An Arrow table, batch or reader, an Arrow-compatible frame, batches, or records as dicts, in any order.
        person, time, attribute
            Column names; by default columns with usual names, such as user, ts and site.
        window
            How far back people are counted: seconds, or a duration such as "1h". By default the shortest common length
            in which enough people are active.
        classes
            The largest number of classes of people, by activity. Activity differs much; with 1 all people are alike.

        Examples
        --------
        >>> visits = [{"ts": 60 * i, "user": f"u{i * 7 % 40}", "site": f"s{i * i % 5}"} for i in range(1000)]
        >>> model = ZModel.estimate(visits, person="user", time="ts", attribute="site", window="1h")
        >>> model.users, len(model.rates), model.estimated.windows
        (40, 3, 15)
        >>> ZModel.estimate(visits).users, ZModel.estimate(visits).window
        (40, 3600.0)
        """
        from shoal.models.z.estimate import estimate_events
        from shoal.models.z.events import read_events
        from shoal.models.z.tuning import likely_windows

        events = read_events(stream, person=person, time=time, attribute=attribute)
        length = likely_windows(events, 0.0)[0][1] if window is None else duration_ns(window, name="window")
        return cls.of_estimate(estimate_events(events, length, classes=classes), length)

    @classmethod
    def of_estimate(cls, found: Estimate, window_ns: int) -> ZModel:
        """The model with the estimated people and rates."""
        classes = [{"users": size, "rates": rates} for size, rates in zip(found.sizes, found.rates, strict=True)]
        model = cls(classes=classes, window=window_ns / 1e9)
        model.estimated = found
        return model

    @property
    def users(self) -> int:
        """How many people there are."""
        return int(self._sizes.sum())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of people in each class."""
        return tuple(int(size) for size in self._sizes)

    @property
    def rates(self) -> Floats:
        """How often a person exposes each attribute; one row for each class where there are several."""
        return self._of_one(self._rates.copy())

    def _of_one(self, by_class: Floats) -> Floats:
        return by_class[0] if len(self._sizes) == 1 else by_class

    @property
    def window(self) -> float:
        """How far back people are counted."""
        return self._window

    def p_exposed(self) -> Floats:
        """The probability that a person exposes each attribute within a window (equation 1)."""
        return self._of_one(self._exposed.copy())

    def p_passes(self, z: int) -> Floats:
        """The probability that an exposure of each attribute is released (equation 3)."""
        return self._of_one(self._passes(_whole("z", z, 1)).copy())

    def _passes(self, z: int) -> Floats:
        if self._passing[0] != z:  # callers ask several questions about one z
            self._passing = z, _passes(self._sizes, self._exposed, z)
        return self._passing[1]

    def p_published(self, z: int) -> Floats:
        """The probability that a person publishes each attribute within a window."""
        return self._of_one(self._published(_whole("z", z, 1)))

    def _published(self, z: int) -> Floats:
        return self._exposed * self._passes(z)

    def released_share(self, z: int) -> float:
        """The share of exposures that are released."""
        weighted = self._rates * self._sizes[:, None]
        total = float(weighted.sum())
        return float((weighted * self._passes(_whole("z", z, 1))).sum()) / total if total else 0.0

    def entropy(self, z: int) -> float:
        """The entropy of what one person publishes, in nats (equation 6): the average over classes."""
        return z_classes.entropy(self._published(_whole("z", z, 1)), self._sizes)

    def information_loss(self, z: int) -> float:
        """How much lower the entropy is than that of everything exposed."""
        return self.entropy(1) - self.entropy(z)

    def p_k_anonymous(self, z: int, k: int, **options: Unpack[Options]) -> Probability:
        """The probability that a person is k-anonymous (equation 5), with bounds.

        Parameters
        ----------
        method
            "lattice" convolves the logarithms of the probabilities on a grid, once rounded down and once up, which
            bounds the sum from both sides; "exact" enumerates all combinations of up to 26 attributes; "sample" draws
            combinations, which gives a confidence interval. By default "lattice", and for several classes "exact" where
            at most 16 attributes can be published, else "sample". "tree" is the paper's method: it sums over the
            likelier combinations and reports their `coverage`; the sum is not divided by the coverage. "simulate"
            draws exposures, runs Algorithm 1 over them and counts; it includes what the formula neglects.
        width
            "lattice": the largest distance between the bounds (1e-4); the grid is refined until it is reached.
        samples, seed, confidence
            "sample": combinations drawn for each class (100,000), the seed (0), and the confidence of the interval for
            each (0.999).
        theta1, theta2
            "tree": attributes published by fewer than `theta1` people (1) on average count as published by no one;
            combinations of the other n attributes below `theta2` / 2^n are left out. Without `theta2` it is lowered
            until 0.98 of them are covered, as the paper does.
        runs, seed, confidence
            "simulate": number of streams (100); the interval is Student's, over their shares of k-anonymous people.
        """
        z, k, how = _whole("z", z, 1), _whole("k", k, 2), _Computation(**options)
        p = self._published(z)
        is_single = len(self._sizes) == 1
        method = how.method or ("lattice" if is_single else "exact" if _live(p) <= _FEW else "sample")
        if method == "exact" and _live(p) > _MOST_EXACT:
            raise PolicyError(f'method: "exact" enumerates at most {_MOST_EXACT} attributes; choose another')
        if method == "lattice" and is_single:
            return on_lattice(p[0], self.users, k, how.width)
        if method == "exact":
            return enumerated(p[0], self.users, k) if is_single else z_classes.enumerated(p, self._sizes, k)
        if method == "tree" and is_single:
            return on_tree(p[0], self.users, k, how.theta1, how.theta2)
        if method == "simulate":
            return simulated(*self._parameters, z, k, **how.simulation())
        if method == "sample":
            return z_classes.sampled(p, self._sizes, k, **how.sampling())
        others = ', "lattice" or "tree"' if is_single else ""
        raise PolicyError(f'method: must be "exact", "sample" or "simulate"{others}')

    def p_shown(self, z: int) -> float:
        """The probability that a person publishes anything within a window; the average over classes."""
        shown = z_classes.shown_chance(self._published(_whole("z", z, 1)))
        return float(self._sizes @ shown) / self.users

    def p_shown_k_anonymous(self, z: int, k: int, **options: Unpack[Options]) -> Probability:
        """The same among the people of whom something is released, with bounds: a target means this probability.

        Over all people a z that releases nothing looks perfect. Where no one is shown the bounds are 0 and 1. The
        parameters are those of `p_k_anonymous`; `samples` is for all classes together.
        """
        z, k, how = _whole("z", z, 1), _whole("k", k, 2), _Computation(**options)
        p = self._published(z)
        is_single = len(self._sizes) == 1
        if how.method == "simulate":
            return simulated(*self._parameters, z, k, **how.simulation(), among_shown=True)
        if how.method == "sample" or (how.method is None and not is_single and _live(p) > _FEW):
            return z_classes.sampled_shown([(1.0, p, self._sizes)], k, **how.sampling())
        if not is_single:
            found = self.p_k_anonymous(z, k, method=how.method)
            return z_classes.without_empty_classes(found, p, self._sizes, k)
        share = float(z_classes.shown_chance(p)[0])
        found = self.p_k_anonymous(z, k, method=how.method, width=max(how.width * share, _FINEST))
        return z_classes.without_empty(found, p[0], self.users, k)


def _passes(sizes: Ints, exposed: Floats, z: int) -> Floats:
    if len(sizes) > 1:
        return z_classes.passes(sizes, exposed, z)
    found = np.empty_like(exposed)
    tails(float(z - 1), float(sizes[0] - 1), exposed[0], found[0])
    return found


def _live(published: Floats) -> int:
    return int((published > 0).any(axis=0).sum())


def _checked(classes: Any, window: Any) -> tuple[Ints, Floats, float]:
    problems: list[str] = []
    if not isinstance(classes, Sequence) or not classes or not all(isinstance(one, Mapping) for one in classes):
        raise PolicyError("classes: must be a list of tables with users and rates, at least one")
    sizes = [_size(one.get("users"), problems) for one in classes]
    rates = [_rates(one.get("rates"), problems) for one in classes]
    if len({len(one) for one in rates}) > 1 and not problems:
        problems.append("rates: all classes must list the same attributes, in the same order")
    try:
        length = duration_ns(window, name="window") / 1e9
        problems += [] if length > 0 else ["window: must be longer than 0"]
    except PolicyError as error:
        length, problems = 1.0, [*problems, *error.problems]
    if problems:
        raise PolicyError(problems)
    return np.array(sizes, dtype=np.int64), np.stack(rates), length


def _size(users: Any, problems: list[str]) -> int:
    if isinstance(users, bool) or not isinstance(users, int | np.integer) or not 1 <= users <= _MOST_USERS:
        problems.append(f"users: must be a whole number from 1 to {_MOST_USERS:,}")
        return 1
    return int(users)


def _rates(rates: Any, problems: list[str]) -> Floats:
    try:
        array = np.array(list(rates), dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if array.ndim != 1 or not len(array) or not (np.isfinite(array) & (array >= 0)).all():
        problems.append("rates: must be a list of numbers of at least 0, one for each attribute")
    return array


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise PolicyError(f"{name}: must be a whole number of at least {least}")
    return int(value)
