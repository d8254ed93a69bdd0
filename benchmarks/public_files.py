"""What a first release makes of files that other people wrote: python -m benchmarks.public_files --data FOLDER

Every CSV file in the folder goes through `shoal init --yes`, `shoal run` and `shoal audit`, as the README says, each in
a process and a folder of its own. `benchmarks/public_recount.py` then counts with pandas what was published. A file is

- released;
- little: the run says that nearly nothing was released;
- asked: init asks whose row it is;
- refused: init or run gives a reason;
- slow: the time was not enough;
- crash: a traceback, or an exit code that is not documented;
- contradiction: audit, summary of the run and recount do not agree, or a promise is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.measure import Report, apart, parse, parser
from benchmarks.public_one import command, examine

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
OUTCOMES = ("released", "little", "asked", "refused", "slow", "crash", "contradiction")
BAD = ("crash", "contradiction")
FIGURES = ("person", "smallest", "invented", "exact_sensitive", "of_one_person", "ends", "exact_ends")
"""What is kept of a recount."""


def examine_all(folder: str, only: str, jobs: int, seconds: int, details: str | None) -> dict[str, Any]:
    """What becomes of each file, by some processes that do nothing else."""
    there = sorted(Path(folder).iterdir())
    files = [path for path in there if path.name.lower().endswith(ENDINGS) and only in path.name]
    random.Random(0).shuffle(files)  # so that the first ones are a fair sample
    _warm_up()
    found = []
    with get_context("fork").Pool(jobs) as pool:
        for one in pool.imap_unordered(partial(examine, seconds=seconds), files):
            found.append({key: one[key] for key in ("file", "outcome", "why")} | _figures(one))
            if details is not None:
                with open(details, "a", encoding="utf-8") as file:
                    file.write(json.dumps(one, ensure_ascii=False) + "\n")
    return {"files": sorted(found, key=lambda one: one["file"])}


def _warm_up() -> None:
    """Import and compile in this process what the processes forked from it use."""
    importlib.import_module("benchmarks.public_recount")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _silent():
        write_tiny(Path(folder))
        for name in ("people", "visits"):
            policy, out = f"{name}.toml", "released.csv"
            for words in (
                ("init", f"{name}.csv", "--yes", "--out", policy),
                ("run", policy),
                ("audit", out, "--truth", f"{name}.csv", "--trace", "trace.parquet", "--policy", policy),
            ):
                with contextlib.suppress(SystemExit):
                    command(*words)
    gc.freeze()


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Standard output and standard error of this process are discarded."""
    kept = [os.dup(number) for number in (1, 2)]
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    yield
    for number, ours in zip((1, 2), kept, strict=True):
        os.dup2(ours, number)


def _figures(one: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a file in the results."""
    method = re.search(r'^method = "(.*?)"', one.get("policy", ""), re.MULTILINE)
    summary, counted = one.get("run", {}).get("summary", {}), one.get("recount", {})
    found = one.get("audit", {}).get("report", {}).get("findings", [])
    return {
        "method": method[1] if method else None,
        "rows": summary.get("rows_in"),
        "released": summary.get("released"),
        "refused": summary.get("dead_by_reason"),
        "loss": summary.get("metrics", {}).get("loss"),
        "without_cause": sum(one["count"] for one in found if one["code"] == "dead-without-cause"),
        **{key: counted.get(key) for key in FIGURES},
    }


def write_tiny(folder: Path) -> None:
    """Synthetic files: one each that is released as tuples and as events, that asks, and that is refused."""
    draw = random.Random(1)
    people = [f"{n},p{n:03},{draw.randrange(20, 60)},{draw.choice('abc')}" for n in range(200)]
    (folder / "people.csv").write_text("\n".join(["row,patient_id,age,ward", *people]) + "\n")
    moments = [f"2024-01-01T{n // 100:02}:{n % 100 // 2:02}:00Z" for n in range(2000)]
    visits = [f"{at},u{draw.randrange(80)},p{int(draw.expovariate(0.3))}" for at in moments]
    (folder / "visits.csv").write_text("\n".join(["time,user,page", *visits]) + "\n")
    baskets = [f"b{draw.randrange(100)},i{draw.randrange(9)}" for _ in range(600)]
    (folder / "baskets.csv").write_text("\n".join(["basket,item", *baskets]) + "\n")
    (folder / "empty.csv").write_text("age,town\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Examine all files of a folder, list what is wrong, and write the counts."""
    made = parser(__doc__, data="CSV files of any origin")
    made.add_argument("--only", default="", help="only files whose name contains this")
    made.add_argument("--jobs", type=int, default=1, help="files at the same time")
    made.add_argument("--seconds", type=int, default=120, help="how long each command may take")
    made.add_argument(
        "--details", type=Path, help="a file that gets a line of JSON for each file: what every command said"
    )
    given = parse(made, arguments)
    report = Report(__file__, given, data="files of other people" if given.data else "synthetic")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        if given.data is None:
            write_tiny(folder)
        found = _examined(folder, given)
    _tell(report, found)
    report.write()


def _examined(folder: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    details = given.details and str(given.details.absolute())
    about = {"only": given.only, "jobs": given.jobs, "seconds": given.seconds, "details": details}
    found: list[dict[str, Any]] = apart(examine_all, folder=str(folder.absolute()), **about)["files"]
    return found


def _tell(report: Report, found: list[dict[str, Any]]) -> None:
    counts = Counter(one["outcome"] for one in found)
    shares = [[name, counts[name], f"{counts[name] / max(len(found), 1):.1%}"] for name in OUTCOMES]
    report.table("outcomes", ["what becomes of a file", "files", "share"], [*shares, ["all", len(found), "100%"]])
    report.table("recount", ["counted with pandas", "files", "figure"], list(_recounted(found)))
    reasons: Counter[str] = Counter()
    for one in found:
        reasons.update(one["refused"] or {})
    rows = [[reason, sum(reason in (one["refused"] or {}) for one in found), reasons[reason]] for reason in reasons]
    report.table("refused", ["why rows were refused", "files", "rows"], rows or [["none", 0, 0]])
    report.figures["files"] = found
    for one in found:
        if one["outcome"] in BAD:
            print(f"{one['outcome']}: {one['file']}: {one['why']}")


def _recounted(found: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """What was counted, in how many files, and how much it is."""
    classes = [one["smallest"] for one in found if one["smallest"] is not None]
    yield ["smallest class or crowd", len(classes), min(classes, default="–")]
    for words, key in (("cells that show what the record lacks", "invented"),
                       ("records refused, and the audit sees no cause", "without_cause")):  # fmt: skip
        yield [words, sum(bool(one[key]) for one in found), sum(one[key] or 0 for one in found)]
    for words, key in (("different numbers published exactly", "exact_sensitive"),
                       ("of which one person alone has", "of_one_person")):  # fmt: skip
        counts = [sum((one[key] or {}).values()) for one in found]
        yield [words, sum(map(bool, counts)), sum(counts)]
    ends = [one for one in found if one["ends"]]
    exact = sum(one["exact_ends"] for one in ends) / max(1, sum(one["ends"] for one in ends))
    yield ["ends of ranges that are somebody's exact value", len(ends), f"{exact:.1%}"]
    losses = [one["loss"] for one in found if one["loss"] is not None and one["released"]]
    yield ["mean loss", len(losses), f"{sum(losses) / max(1, len(losses)):.3f}"]


if __name__ == "__main__":
    main()
