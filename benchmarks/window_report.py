"""Time and memory of `shoal report`: python -m benchmarks.window_report [--rows N]"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import TIME_COLUMNS, Meter, Report, apart, parse, parser, peak_megabytes, short
from shoal.cli.evidence.report import report as report_command

HOURS = 24
PEOPLE = 60_000
SITES = 2_000
POLICY = """\
[stream]
person = "user"
time = "ts"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 20
window = "1h"
"""


def make_release(rows: int, seed: int = 1) -> pa.Table:
    """A day of released rows: few people and few sites have most of them."""
    draw = np.random.default_rng(seed)
    moment = np.sort(draw.integers(0, HOURS * 3600, rows))
    person = (draw.pareto(1.2, rows) * PEOPLE / 20).astype(np.int64) % PEOPLE
    site = (draw.pareto(1.0, rows) * 5).astype(np.int64) % SITES
    pseudonym = moment // 3600 * PEOPLE + person
    names = [f"{number:032x}" for number in pseudonym.tolist()]
    return pa.table({"ts": moment, "user": names, "site": [f"{number}.example" for number in site.tolist()]})


def measure(rows: int) -> dict[str, Any]:
    """Make a release, and report on it with the command."""
    with tempfile.TemporaryDirectory() as folder:
        release, policy = Path(folder, "released.parquet"), Path(folder, "policy.toml")
        parquet.write_table(make_release(rows), release)
        policy.write_text(POLICY)
        with Meter() as meter, contextlib.redirect_stdout(io.StringIO()):
            code = report_command(release, policy=policy, out=Path(folder))
    assert code == 0
    return {**vars(meter.cost), "megabytes": peak_megabytes()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure in a fresh process."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    given = parse(asked, arguments)
    rows = 500 if given.tiny else given.rows
    report = Report(__file__, given)
    found = apart(measure, here=given.tiny, rows=rows)
    times = [short(found["processor"]), short(found["wall"]), found["threads"]]
    report.table("cost", ["released rows", *TIME_COLUMNS, "MB"], [[f"{rows:,}", *times, f"{found['megabytes']:,.0f}"]])
    report.write()


if __name__ == "__main__":
    main()
