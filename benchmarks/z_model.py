"""What the model of z-anonymity costs and how near its methods are to enumeration.

python -m benchmarks.z_model [methods|width|attributes|users|k|classes]

Attributes have rates 0.2 / rank, the window is 12 and k is 2, as in the paper's Table 2, where nothing else is said.
Times are seconds of processors, the least of three: other work on the machine counts less than in seconds of a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

from benchmarks.measure import Report, parse, parser
from shoal.models.z.model import ZModel
from shoal.models.z.probability import Probability

WINDOW, K = 12, 2
TIMES = 3
LONG = 5.0
"""Seconds; what takes longer is run once."""


def rates_of(attributes: int) -> list[float]:
    """The paper's power law."""
    return [0.2 / rank for rank in range(1, attributes + 1)]


def timed(ask: Callable[[], Probability]) -> tuple[Probability, float]:
    """The answer and the least time it took."""
    least = float("inf")
    for _ in range(TIMES):
        begun = process_time()
        found = ask()
        least = min(least, process_time() - begun)
        if least > LONG:
            break
    return found, least


class Growth:
    """A table that is filled line by line."""

    def __init__(self, *columns: str) -> None:
        self.columns, self.rows = columns, []

    def add(self, *cells: Any) -> None:
        """One line."""
        self.rows.append([str(cell) for cell in cells])


def seconds(value: float) -> str:
    """Milliseconds below one second."""
    return f"{value * 1000:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def bounded(found: Probability, least: float) -> str:
    """Time, value, and how far apart the bounds are."""
    return f"{seconds(least)}, {found.value:.4f}, ±{(found.upper - found.lower) / 2:.1e}"


def methods(*, tiny: bool) -> Growth:
    """All methods compared with enumeration; z = 50, so that everything is published."""
    table = Growth("A", "exact", "tree", "its coverage", "lattice", "simulate, 100 runs")
    for attributes in (4,) if tiny else range(10, 25, 2):
        model = ZModel(1000, rates_of(attributes), WINDOW)
        exact, took = timed(lambda m=model: m.p_k_anonymous(50, K, method="exact"))
        cells = [seconds(took)]
        for method in ("tree", "lattice", "simulate"):
            found, took = timed(lambda m=model, how=method: m.p_k_anonymous(50, K, method=how))
            half = (found.upper - found.lower) / 2
            cells.append(f"{seconds(took)}, {abs(found.value - exact.value):.0e}, ±{half:.0e}")
            if method == "tree":
                cells.append(f"{found.coverage:.4f}")
        table.add(attributes, *cells)
    return table


def width(*, tiny: bool) -> Growth:
    """Nearer bounds; the tree, which leaves out less, for comparison. A = 20, 1,000 people."""
    widths = (1e-2,) if tiny else (1e-2, 1e-3, 1e-4, 1e-5)
    table = Growth("z", *(f"lattice, width {one:g}" for one in widths), "tree, θ1 = 0.01, θ2 = 0.01")
    model = ZModel(1000, rates_of(5 if tiny else 20), WINDOW)
    for z in (150,) if tiny else (1, 100, 150, 250, 350):
        cells = [bounded(*timed(lambda z=z, w=one: model.p_k_anonymous(z, K, width=w))) for one in widths]
        tree = timed(lambda z=z: model.p_k_anonymous(z, K, method="tree", theta1=0.01, theta2=0.01))
        table.add(z, *cells, bounded(*tree))
    return table


def attributes(*, tiny: bool) -> Growth:
    """From twenty attributes to a hundred thousand: lattice, width 1e-3, and tree."""
    cases = ((1000, 1), (1000, 150), (10**6, 1000), (10**6, 100_000))
    names = [f"U = {users:,}, z = {z:,}" for users, z in cases]
    table = Growth("A", *names, *(f"tree, U = 1,000, z = {z}" for z in (1, 150)))
    for count in (5,) if tiny else (20, 100, 1000, 10_000, 100_000):
        models = [(ZModel(users, rates_of(count), WINDOW), z) for users, z in cases]
        cells = [bounded(*timed(lambda m=m, z=z: m.p_k_anonymous(z, K, width=1e-3))) for m, z in models]
        cells += [bounded(*timed(lambda m=m, z=z: m.p_k_anonymous(z, K, method="tree"))) for m, z in models[:2]]
        table.add(f"{count:,}", *cells)
    return table


def users(*, tiny: bool) -> Growth:
    """From a thousand people to a thousand million: lattice, width 1e-3."""
    table = Growth("U", "A = 20, z = U/10", "A = 1,000, z = U/10", "A = 10,000, z = U/100")
    for people in (1000,) if tiny else (10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9):
        cells = []
        for count, part in ((20, 10), (1000, 10), (10_000, 100)):
            model = ZModel(people, rates_of(5 if tiny else count), WINDOW)
            cells.append(bounded(*timed(lambda m=model, z=people // part: m.p_k_anonymous(z, K, width=1e-3))))
        table.add(f"{people:,}", *cells)
    return table


def k(*, tiny: bool) -> Growth:
    """More people who must be alike: 1,000 people, A = 20, z = 150, width 1e-4."""
    table = Growth("k", "lattice", "tree", "exact")
    model = ZModel(1000, rates_of(5 if tiny else 20), WINDOW)
    for crowd in (2,) if tiny else (2, 3, 5, 10, 30, 100):
        table.add(crowd, *(bounded(*timed(lambda k=crowd, how=how: model.p_k_anonymous(150, k, method=how)))
                           for how in ("lattice", "tree", "exact")))  # fmt: skip
    return table


SHAPES = ((8, 2), (12, 2), (16, 2), (16, 3), (16, 5), (20, 2), (50, 2), (100, 2), (1000, 2), (1000, 5))


def classes(*, tiny: bool) -> Growth:
    """Several classes of 1,000 people in all, z = 50: the rates of each are those of the one before times 0.7."""
    table = Growth("A", "classes", "exact", "sample, 100,000 combinations a class")
    for count, parts in ((4, 2),) if tiny else SHAPES:
        own = [{"users": 1000 // parts, "rates": [0.7**c * one for one in rates_of(count)]} for c in range(parts)]
        model = ZModel(classes=own, window=WINDOW)
        exact = timed(lambda m=model: m.p_k_anonymous(50, K, method="exact")) if count <= 20 else None
        sample = timed(lambda m=model: m.p_k_anonymous(50, K, method="sample"))
        table.add(f"{count:,}", parts, bounded(*exact) if exact else "", bounded(*sample))
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """One growth, or all; cells are processor time, value, half of what lies between the bounds."""
    growths = (methods, width, attributes, users, k, classes)
    asked = parser(__doc__)
    asked.add_argument("what", nargs="?", choices=[one.__name__ for one in growths])
    given = parse(asked, arguments)
    report = Report(__file__, given)
    ZModel(10, [0.1], 1).p_k_anonymous(1, K)  # compiles on a new machine
    for one in growths:
        if given.what in (None, one.__name__):
            found = one(tiny=given.tiny)
            report.table(one.__name__, found.columns, found.rows)
    report.write()


if __name__ == "__main__":
    main()
