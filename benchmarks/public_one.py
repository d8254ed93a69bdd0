"""What becomes of one public file: init, run, audit and recount, each in a process and a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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


def apart_from_us(work: Callable[[], int], folder: Path, seconds: int) -> Ended:
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
    texts = [path.read_text(errors="replace") if path.exists() else "" for path in (out, err)]
    return Ended(code, *texts)


def command(*words: str) -> int:
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
    init = apart_from_us(partial(command, "init", name, "--yes"), folder, seconds)
    found: dict[str, Any] = {"init": {"code": init.code, "out": init.out[:_MOST_TEXT], "err": init.err[:_MOST_TEXT]}}
    policy = folder / "policy.toml"
    if (stop := _stopped(init, "init", asks=not policy.exists())) is not None:
        return found | stop
    found["policy"] = policy.read_text()
    run = apart_from_us(partial(command, "run", "policy.toml", "--json", "--quiet"), folder, seconds)
    found["run"] = {"code": run.code, "err": run.err}
    if (stop := _stopped(run, "run")) is not None:
        return found | stop
    (folder / "run.json").write_text(run.out)
    found["run"]["summary"] = summary = json.loads(run.out)
    words = ("audit", "released.csv", "--truth", name, "--trace", "trace.parquet", "--policy", "policy.toml", "--json")
    audit = apart_from_us(partial(command, *words), folder, seconds)
    found["audit"] = {"code": audit.code, "err": audit.err}
    if (stop := _stopped(audit, "audit", fails=True)) is not None:
        return found | stop
    (folder / "audit.json").write_text(audit.out)
    found["audit"]["report"] = report = json.loads(audit.out)
    counted = apart_from_us(partial(_recount, name), folder, seconds)
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
