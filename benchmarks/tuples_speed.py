"""Speed of the tuple methods compared with NumPy, in one run: python -m benchmarks.tuples_speed [--data FOLDER]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.measure import Cost, Report, measured, parse, parser, rate_columns
from benchmarks.numpy_fads import CategoricalColumn, NumericColumn, Table
from benchmarks.numpy_fads import fads as numpy_fads
from benchmarks.numpy_k_varp import k_varp as numpy_k_varp
from benchmarks.real_data import folder_with
from shoal import Castle, Fads, IotAnonymization, KVarp, LeastLoss
from shoal.reproduce.data.adult import read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import Stream, remove_values

SETTING = {"k": 50, "deadline": 2000, "reuse": 200}
TINY = {"k": 5, "deadline": 100, "reuse": 20}
FEW = 200


class Bench:
    """One stream, one setting; the least of some tries."""

    def __init__(self, setting: dict[str, int], *, tiny: bool) -> None:
        self._setting, self._tiny = setting, tiny

    def ours(self, stream: Stream, make: Callable[..., Any], *, tries: int = 5, **settings: Any) -> tuple[Cost, float]:
        """Cost from Arrow to Arrow, the end of the stream included; average loss."""

        def run() -> float:
            method = make(stream.schema, key=bytes(16), **{**self._setting, **settings})
            method.push_batch(stream.table)
            method.flush()
            loss: float = method.metrics["loss"]
            return loss

        return measured(run, tries=1 if self._tiny else tries)

    def numpy(self, stream: Stream, run: Callable[..., Any], *, tries: int = 3, **settings: Any) -> Cost:
        """Cost of a NumPy twin; building its arrays is not measured."""
        table = as_arrays(stream)
        return measured(lambda: run(table, **self._setting, **settings), tries=1 if self._tiny else tries)[0]


def as_arrays(stream: Stream) -> Table:
    """The stream as the NumPy twins take it."""
    columns = [NumericColumn(name, low, high) for name, (low, high) in stream.domains.items()]
    columns += [CategoricalColumn(name, tree) for name, tree in stream.trees.items()]
    values = [stream.table.column(column.name).to_pylist() for column in columns]
    return Table(columns, values, range(len(stream)))


def whole_rows(bench: Bench, stream: Stream) -> list[list[str]]:
    """Methods on whole tuples, compared with FADS in NumPy."""
    peer = bench.numpy(stream, numpy_fads)
    rows = [["FADS as a vectorized NumPy loop (without building its arrays)", *peer.rates(len(stream)), "1", ""]]
    for name, make, tries, settings in (
        ("`fads`", Fads, 5, {}),
        ("`castle`", Castle, 3, {}),
        ("`least-loss`", LeastLoss, 3, {"candidates": 0}),
        (f"`least-loss`, `candidates = {FEW}`", LeastLoss, 5, {"candidates": FEW}),
    ):
        cost, loss = bench.ours(stream, make, tries=tries, **settings)
        rows.append([name, *cost.rates(len(stream)), f"{peer.processor / cost.processor:.1f}", f"{loss:.3f}"])
    return rows


def missing_rows(bench: Bench, stream: Stream) -> list[list[str]]:
    """Methods on tuples with missing values, compared with K-VARP in NumPy."""
    rows = []
    for missing in ("paper", "covered"):
        peer = bench.numpy(stream, numpy_k_varp, tries=1, missing=missing)
        rows.append([f"K-VARP in NumPy, {missing}", *peer.rates(len(stream)), "1", ""])
        for name, make in (("`k-varp`", KVarp), ("`least-loss`", LeastLoss)):
            if name == "`k-varp`" or missing == "covered":
                cost, loss = bench.ours(stream, make, tries=3, missing=missing)
                ratio = f"{peer.processor / cost.processor:.1f}"
                rows.append([f"{name}, {missing}", *cost.rates(len(stream)), ratio, f"{loss:.3f}"])
    cost, loss = bench.ours(stream, IotAnonymization, tries=3)
    rows.append(["`iot-anonymization`, covered", *cost.rates(len(stream)), "", f"{loss:.3f}"])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything, print and write it."""
    asked = parser(__doc__, data="UCI's adult.data")
    asked.add_argument("--rows", type=int, default=30_000)
    given = parse(asked, arguments)
    rows = 400 if given.tiny else given.rows
    folder = folder_with(given.data, "adult.data")
    whole = (read_adult(folder) if folder else imitate_adult(rows, seed=1)).head(rows)
    gaps = remove_values(whole, at_most=3, seed=1)
    report = Report(__file__, given, data=whole.origin)
    bench = Bench(TINY if given.tiny else SETTING, tiny=given.tiny)
    for make in (Fads, KVarp, IotAnonymization, Castle, LeastLoss):  # compile first
        bench.ours(whole.head(3000), make, tries=1)
    report.text(
        "setting",
        f"{len(whole):,} tuples, {len(whole.quasi)} quasi-identifiers, "
        + ", ".join(f"{name} = {value}" for name, value in SETTING.items()),
    )
    columns = ["", *rate_columns("tuples"), "times NumPy, by processor time", "average loss"]
    report.table("whole", columns, whole_rows(bench, whole))
    report.table("missing", columns, missing_rows(bench, gaps))
    report.write()


if __name__ == "__main__":
    main()
