"""Flexible k-anonymity of a synthetic campaign of measurements: rows a second, memory, loss, and how they grow.

python -m benchmarks.flexible_speed                     # all tables
python -m benchmarks.flexible_speed records --records 1000000
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from benchmarks.measure import Meter, Report, apart, parse, parser, peak_megabytes, rate_columns, short
from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Ontology, Schema
from shoal.reproduce.data.campaign import campaign_places, make_campaign

NETWORKS = Hierarchy.from_nested({"any network": {"mobile": ["2G", "3G", "4G", "5G"], "fixed": ["Wi-Fi"]}})
SETTING: dict[str, Any] = {"records": 20_000, "people": 10_000, "k": 6, "window": 10_000, "columns": 4, "values": 0}
GROWTH: dict[str, tuple[Any, ...]] = {
    "records": (10_000, 30_000, 100_000),
    "window": (1_000, 3_000, 10_000),
    "k": (3, 6, 25),
    "columns": (2, 4, 6),
    "values": (446, 50_000),
}
BATCH = 65_536


def roles_of(table: pa.Table, columns: int) -> list[Numeric | Categorical]:
    """The device, and n other quasi-identifiers."""
    first, last = (moment.timestamp() for moment in (table["time"][0].as_py(), table["time"][-1].as_py()))
    providers = sorted(set(table["provider"].to_pylist()))
    roles = [
        Categorical("device"),
        Categorical("place", campaign_places()),
        Categorical("network", NETWORKS),
        Numeric("time", low=first // 86400 * 86400, high=last // 86400 * 86400 + 86400),
        Categorical("provider", Hierarchy.flat(providers, root="any provider")),
        Numeric("latency_ms", low=0, high=5000, grid=50, outside="clamp"),
    ]
    return roles[:columns]


def with_devices(table: pa.Table, values: int) -> tuple[pa.Table, Ontology]:
    """The devices that come with shoal, or n synthetic ones of 50 brands and 3 systems."""
    if not values:
        return table, Ontology.devices()
    known = {name: at for at, name in enumerate(Ontology.devices().attribute("device").values)}
    # A prime step spreads the usual devices over the list.
    names = [f"model {known[name] * 7919 % values}" for name in table["device"].to_pylist()]
    rows = [
        {"model": f"model {at}", "family": f"family {at // 8}", "brand": f"brand {at % 50}", "os": f"os {at % 50 % 3}"}
        for at in range(values)
    ]
    ontology = Ontology.from_table(
        rows, value="model", is_a=["family", "brand"], properties=["os"], tag="sparse", attribute="device"
    )
    return table.set_column(table.schema.get_field_index("device"), "device", pa.array(names)), ontology


def measure(records: int, people: int, k: int, window: int, columns: int, values: int) -> dict[str, Any]:
    """One run; what compiles, compiles before."""
    table, ontology = with_devices(make_campaign(people, records, seed=0), values)
    schema = Schema(person="maid", time="time", quasi=roles_of(table, columns), carry=["mbps_down"])
    warm = FlexibleK(schema, ontology, k=2, window=50)
    warm.push_batch(table.slice(0, 200))
    warm.flush()
    flexible = FlexibleK(schema, ontology, k=k, window=window)
    with Meter() as meter:
        for start in range(0, records, BATCH):
            flexible.push_batch(table.slice(start, BATCH))
        flexible.flush()
    counts, metrics = flexible.counts, flexible.metrics
    assert flexible.frozen is not None
    return {
        "records": records, "people": people, "k": k, "window": window, "columns": columns, "values": values,
        **vars(meter.cost), "megabytes": peak_megabytes(),
        "tables": flexible.state_bytes / 2**20, "k_s": flexible.frozen.k_s[k], "loss": metrics["loss"],
        "pending": counts["pending"],
    }  # fmt: skip


def rows_of(name: str, steps: Sequence[Any], setting: dict[str, Any], *, tiny: bool) -> list[list[str]]:
    """One run a step."""
    rows = []
    for step in steps:
        chosen = {**setting, name: 0 if name == "values" and step == GROWTH["values"][0] else step}
        found = apart(measure, here=tiny, **chosen)
        speeds = [short(found["records"] / found["processor"]), short(found["records"] / found["wall"])]
        sizes = [f"{found['megabytes']:,.0f}", f"{found['tables']:,.1f}", str(found["k_s"])]
        rows.append(
            [f"{step:,}", *speeds, str(found["threads"]), *sizes, f"{found['loss']:.3f}", f"{found['pending']:,}"]
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one growth, or all."""
    options = parser(__doc__)
    options.add_argument("what", nargs="?", choices=[*GROWTH])
    options.add_argument("--records", type=int, nargs="+", help="steps for the growth with records")
    given = parse(options, arguments)
    setting = SETTING | ({"records": 600, "people": 100, "k": 3, "window": 200} if given.tiny else {})
    report = Report(__file__, given, data="a synthetic campaign of measurements")
    report.text("setting", ", ".join(f"{name} = {value:,}" for name, value in setting.items()))
    columns = [
        *rate_columns("records"),
        "MB at the peak, the records included",
        "MB of tables",
        "K_s",
        "loss",
        "pending",
    ]
    for name, steps in GROWTH.items():
        if given.what in (None, name):
            if name == "records":
                steps = given.records or steps
            if given.tiny:
                steps = {"records": [600], "columns": [3]}.get(name, [])
            if steps:
                report.table(name, [name, *columns], rows_of(name, steps, setting, tiny=given.tiny))
    report.write()


if __name__ == "__main__":
    main()
