"""Every code of z-anonymity: a release with one change is convicted, here and in parts; the honest one is not."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.auditor.checks import CHECKS
from tests.auditor.in_parts import audit_in_parts, same_report
from tests.auditor.z import test_parts, test_parts_of_epochs
from tests.auditor.z.test_combine import SUFFIX
from tests.auditor.z.test_parts_damaged import Plain
from tests.spark.auditor.releases import Evidence

pytestmark = pytest.mark.compiled
PARTS = ("release", "truth", "trace")


@cache
def _plain() -> Plain:
    return Plain(lateness=3)


@cache
def _generalized() -> Plain:
    return Plain(lateness=3, **SUFFIX)


def unreadable(run: Any) -> None:
    run.release[7]["ts"] = None


def empty(run: Any) -> None:
    run.release[7]["site"] = None


def hashed(run: Any) -> None:
    run.release[7]["user"] = md5(run.truth[0]["user"].encode()).hexdigest()


def hashed_with_the_epoch(run: Any) -> None:
    for row, entry in zip(run.release, (one for one in run.trace if one["verdict"] == "released"), strict=True):
        row["user"] = md5(f"{run.truth[entry['row']]['user']}|{row['ts'] // 60}".encode()).hexdigest()


def counted(run: Any) -> None:
    numbers: dict[str, int] = {}
    for row in run.release:
        row["user"] = f"{numbers.setdefault(row['user'], len(numbers)):032x}"


def half_repeated(run: Any) -> None:
    for row in run.release:
        row["user"] = row["user"][:16] + "0123456789abcdef"


def of_few_digits(run: Any) -> None:
    for row in run.release:
        row["user"] = row["user"].translate(str.maketrans("0123456789abcdef", "01" * 8))


def kept_in_part(run: Any) -> None:
    for row, entry in zip(run.release, (one for one in run.trace if one["verdict"] == "released"), strict=True):
        row["user"] = md5(f"secret {run.truth[entry['row']]['user']}".encode()).hexdigest()[:24] + row["user"][24:]


def carried_wrongly(run: Any) -> None:
    run.release[7]["device"] = "radio"


def spelled_differently(run: Any) -> None:
    for row in (*run.truth, *run.release):
        row["device"] = "5"
    run.release[7]["device"] = "5.0"


def beside_the_path(run: Any) -> None:
    row = next(row for row in run.release if row["site"].endswith("news"))
    row["site"] = "shop"


def needlessly_general(run: Any) -> None:
    row = next(row for row in reversed(run.release) if "." in row["site"])
    row["site"] = row["site"].split(".")[1]


def unknown_verdict(run: Any) -> None:
    next(one for one in run.trace if one["verdict"] != "released")["verdict"] = "perhaps"


def row_missing(run: Any) -> None:
    del run.release[7]


def row_twice(run: Any) -> None:
    run.release.insert(7, dict(run.release[7]))


def ended_early(run: Any) -> None:
    while run.trace.pop()["verdict"] == "released":
        run.release.pop()


def without_reasons(run: Any) -> None:
    run.truth.append({**run.truth[-1], "ts": run.truth[-1]["ts"] - 900})
    run.trace.append({"row": len(run.truth) - 1, "verdict": "dead", "reason": None, "z": 2})


def without_verdicts(run: Any) -> None:
    for entry in run.trace:
        del entry["verdict"]


CHANGES: list[tuple[str, Callable[[Any], None], Callable[[], Any], tuple[str, ...]]] = [
    ("unreadable-row", unreadable, _plain, PARTS),
    ("empty-row", empty, _plain, PARTS),
    ("disguised-identifier", hashed, _plain, PARTS),
    ("disguised-identifier", hashed_with_the_epoch, _plain, PARTS),
    ("weak-pseudonym", counted, _plain, PARTS[:1]),
    ("weak-pseudonym", half_repeated, _plain, PARTS[:1]),
    ("weak-pseudonym", of_few_digits, _plain, PARTS[:1]),
    ("pseudonym-across-epochs", kept_in_part, _plain, PARTS),
    ("wrong-carry", carried_wrongly, _plain, PARTS),
    ("spelling", spelled_differently, _plain, PARTS),
    ("wrong-label", beside_the_path, _generalized, PARTS),
    ("too-general", needlessly_general, _generalized, PARTS),
    ("trace-verdict", unknown_verdict, _plain, PARTS),
    ("release-count", row_missing, _plain, PARTS),
    ("more-often-than-truth", row_twice, _plain, PARTS[:2]),
    ("not-in-truth", carried_wrongly, _plain, PARTS[:2]),
    ("pending", ended_early, _plain, PARTS),
    ("unchecked-promise", without_reasons, _plain, PARTS),
    ("unchecked-promise", without_verdicts, _plain, PARTS),
]


def audited(run: Any, folder: Path, parts: tuple[str, ...]) -> Any:
    paths = Evidence(run.release, run.truth, run.trace, run.policy()).write(folder)
    given = {name: paths[name] for name in (*parts, "policy")}
    here, there = shoal.audit(**given), audit_in_parts(**given)
    same_report(here, there)
    return here


@pytest.mark.parametrize(("code", "change", "run", "parts"), CHANGES, ids=lambda one: getattr(one, "__name__", None))
def test_a_change_is_convicted(tmp_path: Path, code: str, change: Any, run: Any, parts: tuple[str, ...]) -> None:
    honest = audited(run(), tmp_path / "honest", parts)
    assert code not in {found.code for found in honest.findings}
    assert honest.ok
    changed = deepcopy(run())
    change(changed)
    assert code in {found.code for found in audited(changed, tmp_path / "changed", parts).findings}


def test_a_trace_that_ends_early(tmp_path: Path) -> None:
    run = Plain(lateness=0)
    ended_early(run)
    assert "trace-ends-early" in {found.code for found in audited(run, tmp_path, PARTS).findings}


def test_every_code_has_a_change() -> None:
    declared = {code for code, name in CHECKS if name.startswith("shoal.auditor.z.")}
    tables = (test_parts.BROKEN.values(), (codes for _, codes in test_parts_of_epochs.BROKEN_SETS.values()),
              (codes for _, codes in test_parts_of_epochs.BROKEN_TARGETS.values()))  # fmt: skip
    changed = {code for table in tables for codes in table for code in codes}
    assert declared - changed - {code for code, *_ in CHANGES} == {"trace-ends-early"}
