"""The audit of events in parts says what the audit on one machine says, of sound and of broken releases."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import InputError, PolicyError
from shoal.spark.auditor.entry import audit_on
from tests.spark.auditor.releases import Evidence
from tests.spark.auditor.test_tuples import ManyBins, _found, _is_near

START = 1_700_000_000
POLICY: dict[str, Any] = {
    "stream": {"person": "who", "time": "ts", "carry": ["shop"]},
    "anonymize": {"method": "z-anonymity", "z": 3, "window": "100s", "rotation": "500s",
                  "attribute": {"site": {"on_private": "blank"}, "app": {"on_private": "blank", "z": 4}}},
}  # fmt: skip
NOT_IN_PARTS = {"spelling", "weak-pseudonym", "disguised-identifier", "late-accepted"}


def publish(count: int = 600) -> Evidence:
    """Publish events by counting the people of every value directly."""
    found, seen = Evidence(policy=POLICY), []
    for row in range(count):
        who = None if row % 61 == 5 else f"p{row * 17 % 43}"
        record = {"ts": START + row * 3, "who": who, "site": f"s{row % 4}" if row % 9 else f"rare{row}",
                  "app": f"a{row % 7}" if row % 5 else None, "shop": "x"}  # fmt: skip
        found.truth.append(record)
        if who is None:
            found.trace.append({"row": row, "verdict": "dead", "reason": "null-person", "delay": 0})
            continue
        seen.append(record)
        shown = {"site": crowd(seen, record, "site") >= 3, "app": crowd(seen, record, "app") >= 4}
        kept = {name: record[name] if is_shown and record[name] else None for name, is_shown in shown.items()}
        is_released = True
        found.trace.append(
            {"row": row, "verdict": "released" if is_released else "suppressed", "reason": None, "delay": 0}
        )
        epoch = record["ts"] // 500
        found.release.append({"ts": record["ts"], "who": pseudonym(who, epoch), **kept, "shop": "x"})
    return found


def crowd(seen: list[dict[str, Any]], record: dict[str, Any], name: str) -> int:
    return len({one["who"] for one in seen if one[name] == record[name] and one["ts"] >= record["ts"] - 100})


def pseudonym(who: str, epoch: int) -> str:
    return sha256(f"secret {who} {epoch} secret".encode()).hexdigest()[:32]


def same_findings(here: Any, there: Any) -> None:
    assert _found(there) == [found for found in _found(here) if found[1] not in NOT_IN_PARTS]
    for name, value in there.metrics.items():
        assert _is_near(value, here.metrics[name]), (name, value, here.metrics[name])
    assert set(here.metrics) - set(there.metrics) <= {"epochs"}


@pytest.fixture(scope="module")
def sound() -> Evidence:
    return publish()


def copied(evidence: Evidence) -> Evidence:
    parts = ([{**row} for row in rows] for rows in (evidence.release, evidence.truth, evidence.trace))
    return Evidence(*parts, policy=evidence.policy)


def test_a_sound_release(tmp_path: Path, sound: Evidence) -> None:
    paths = sound.write(tmp_path)
    here, there = shoal.audit(**paths), audit_on(ManyBins(), **paths)
    same_findings(here, there)
    assert there.ok, there.text()
    assert there.metrics["smallest_crowd"] == {"site": 3, "app": 4}
    assert len(there.not_checked) == 6


def too_few_people(evidence: Evidence) -> None:
    at = next(at for at, row in enumerate(evidence.release) if row["site"] is None and at > len(evidence.release) // 2)
    evidence.release[at]["site"] = next(
        row["site"] for row in evidence.truth if row["ts"] == evidence.release[at]["ts"]
    )


def another_value(evidence: Evidence) -> None:
    at = next(at for at, row in enumerate(evidence.release) if row["app"])
    evidence.release[at]["app"] = "a99"


def raw_person(evidence: Evidence) -> None:
    evidence.release[200]["who"] = "p1"


def two_pseudonyms(evidence: Evidence) -> None:
    evidence.release[400]["who"] = "0123456789abcdef" * 2


def a_shared_pseudonym(evidence: Evidence) -> None:
    evidence.release[100]["who"] = evidence.release[101]["who"]


def one_pseudonym_for_ever(evidence: Evidence) -> None:
    evidence.release[500]["who"] = evidence.release[3]["who"]


def decided_twice(evidence: Evidence) -> None:
    evidence.trace[30], evidence.release[29] = {**evidence.trace[300]}, {**evidence.release[295]}


def nobody(evidence: Evidence) -> None:
    evidence.truth[44]["who"] = None


def other_time(evidence: Evidence) -> None:
    evidence.release[10]["ts"] += 1


BROKEN: dict[Callable[[Evidence], None], set[str]] = {
    too_few_people: {"below-z"},
    another_value: {"wrong-value"},
    raw_person: {"raw-identifier", "bad-pseudonym"},
    two_pseudonyms: {"pseudonym-split"},
    a_shared_pseudonym: {"pseudonym-shared", "pseudonym-split"},
    one_pseudonym_for_ever: {"pseudonym-across-epochs"},
    decided_twice: {"decided-twice", "lost"},
    nobody: {"unusable-accepted"},
    other_time: {"wrong-time"},
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_release(tmp_path: Path, sound: Evidence, broken: Callable[[Evidence], None]) -> None:
    evidence = copied(sound)
    broken(evidence)
    paths = evidence.write(tmp_path)
    here, there = shoal.audit(**paths), audit_on(ManyBins(), **paths)
    assert BROKEN[broken] <= {found.code for found in there.violations}
    same_findings(here, there)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="with its truth and its trace"):
        audit_on(ManyBins(), "x", policy=POLICY)
    combined = {**POLICY, "anonymize": {**POLICY["anonymize"], "combine": "k", "k": 2}}
    with pytest.raises(PolicyError, match="not audited on Spark"):
        audit_on(ManyBins(), "x", "y", "z", policy=combined)
