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
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.measure import Report, apart, parse, parser

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
OUTCOMES = ("released", "little", "asked", "refused", "slow", "crash", "contradiction")
BAD = ("crash", "contradiction")
_SLOW = -signal.SIGALRM
_MOST_TEXT = 20_000


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        """The first line that says what is wrong."""
        lines = [line.strip() for line in f"{self.err}\n{self.out}".splitlines()]
        signs = ("error", "shoal: ", "WRONG")
        wrong = (line for line in lines if line.startswith(signs) and "compiling" not in line)
        return next(wrong, next(filter(None, reversed(lines)), ""))[:300]


def run_forked(work: Callable[[], int], folder: Path, seconds: int) -> Ended:
    """Fork a process that does the work in a folder; it is killed when its time is up."""
    out, err = folder / "out.txt", folder / "err.txt"
    if (process := os.fork()) == 0:
        code = 70
        try:
            signal.alarm(seconds)
            os.chdir(folder)
            for number, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            code = work()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    texts = [path.read_text(errors="replace")[:_MOST_TEXT] if path.exists() else "" for path in (out, err)]
    return Ended(code, *texts)


def _command(*words: str) -> int:
    from shoal.cli.app import main as shoal

    sys.argv = ["shoal", *words]
    shoal()
    return 0


def _recount(source: str) -> int:
    from benchmarks.public_recount import recount

    folder = Path.cwd()
    summary, audit = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "audit"))
    print(json.dumps(recount(folder, folder / source, summary, audit)))
    return 0


def examine(path: Path, *, seconds: int) -> dict[str, Any]:
    """What becomes of one file."""
    with tempfile.TemporaryDirectory(prefix="shoal-") as made:
        folder = Path(made)
        shutil.copy(path, folder / path.name)
        found = _through(folder, path.name, seconds)
    return {"file": path.name, **found}


def _through(folder: Path, name: str, seconds: int) -> dict[str, Any]:
    """From init to the recount, as far as a file comes."""
    init = run_forked(partial(_command, "init", name, "--yes"), folder, seconds)
    found: dict[str, Any] = {"init": {"code": init.code, "out": init.out, "err": init.err}}
    policy = folder / "policy.toml"
    if (stop := _stopped(init, "init", asks=not policy.exists())) is not None:
        return found | stop
    found["policy"] = policy.read_text()
    run = run_forked(partial(_command, "run", "policy.toml", "--json", "--quiet"), folder, seconds)
    found["run"] = {"code": run.code, "err": run.err}
    if (stop := _stopped(run, "run")) is not None:
        return found | stop
    (folder / "run.json").write_text(run.out)
    found["run"]["summary"] = summary = json.loads(run.out)
    words = ("audit", "released.csv", "--truth", name, "--trace", "trace.parquet", "--policy", "policy.toml", "--json")
    audit = run_forked(partial(_command, *words), folder, seconds)
    found["audit"] = {"code": audit.code, "err": audit.err}
    if (stop := _stopped(audit, "audit", fails=True)) is not None:
        return found | stop
    (folder / "audit.json").write_text(audit.out)
    found["audit"]["report"] = report = json.loads(audit.out)
    counted = run_forked(partial(_recount, name), folder, seconds)
    if counted.code:
        outcome = "slow" if counted.code == _SLOW else "crash"
        return found | {"outcome": outcome, "why": f"recount: {counted.reason}"}
    found["recount"] = result = json.loads(counted.out)
    problems = [*result["problems"], *_disagreements(run.code, audit.code, summary, report)]
    if problems:
        return found | {"outcome": "contradiction", "why": "; ".join(problems)}
    return found | {"outcome": "little" if run.code == 3 else "released", "why": ""}


def _stopped(ended: Ended, name: str, *, asks: bool = False, fails: bool = False) -> dict[str, str] | None:
    """How a file ended with this command; None if it goes on. `fails`: exit code 1 is a verdict, to be compared."""
    why = f"{name}, exit code {ended.code}: {ended.reason}"
    if ended.code == _SLOW:
        return {"outcome": "slow", "why": why}
    is_known = ended.code in (0, 1, 2, 3)
    if not is_known or "Traceback" in ended.err or "internal error" in ended.err.lower():
        return {"outcome": "crash", "why": why}
    if ended.code == 2 and asks and "whose row is it" in ended.err:
        return {"outcome": "asked", "why": why}
    if ended.code in (0, 3) or (fails and ended.code == 1 and ended.out.startswith("{")):
        return None
    return {"outcome": "refused", "why": why}


def _disagreements(run: int, audit: int, summary: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """Where exit codes and the figures of run and audit differ."""
    codes = [one["code"] for one in report["findings"]]
    found = [f"the audit fails: {', '.join(codes)}"] if not report["ok"] else []
    if report["ok"] != (audit == 0):
        found.append(f"the audit says ok = {report['ok']} and exits with {audit}")
    if summary["exit_code"] != run:
        found.append(f"the run reports exit code {summary['exit_code']} and exits with {run}")
    verdicts = report["metrics"].get("verdicts", {})
    for ours, theirs in (("in", "rows_in"), ("released", "released"), ("suppressed", "suppressed"), ("dead", "dead")):
        if ours in verdicts and verdicts[ours] != summary[theirs]:
            found.append(f"{ours}: the audit counts {verdicts[ours]}, the run {summary[theirs]}")
    return found


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
                    _command(*words)
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
    return {
        "method": method[1] if method else None,
        "rows": summary.get("rows_in"),
        "released": summary.get("released"),
        "refused": summary.get("dead_by_reason"),
        **{key: counted.get(key) for key in ("person", "smallest", "invented", "exact_sensitive")},
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
    published = [one for one in found if one["smallest"] is not None]
    rows = [
        ["files whose classes were counted", len(published)],
        ["smallest class", min((one["smallest"] for one in published), default="–")],
        ["files with cells that show what the record lacked", sum(bool(one["invented"]) for one in published)],
        ["such cells", sum(one["invented"] or 0 for one in published)],
    ]
    report.table("recount", ["counted with pandas", "figure"], rows)
    report.figures["files"] = found
    for one in found:
        if one["outcome"] in BAD:
            print(f"{one['outcome']}: {one['file']}: {one['why']}")


if __name__ == "__main__":
    main()
