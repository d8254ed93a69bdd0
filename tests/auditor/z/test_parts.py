"""The audit of events in parts says what the audit on one machine says, of sound and of broken releases."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import shoal
from tests.auditor.in_parts import audit_in_parts, same_report
from tests.spark.auditor.releases import Evidence

START = 1_700_000_000
POLICY: dict[str, Any] = {
    "stream": {"person": "who", "time": "ts", "carry": ["shop"]},
    "anonymize": {"method": "z-anonymity", "z": 3, "window": "100s", "rotation": "500s",
                  "attribute": {"site": {"on_private": "blank"}, "app": {"on_private": "blank", "z": 4}}},
}  # fmt: skip


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


@pytest.fixture(scope="module")
def sound() -> Evidence:
    return publish()


def copied(evidence: Evidence) -> Evidence:
    parts = ([{**row} for row in rows] for rows in (evidence.release, evidence.truth, evidence.trace))
    return Evidence(*parts, policy=evidence.policy)


def test_a_sound_release(tmp_path: Path, sound: Evidence) -> None:
    paths = sound.write(tmp_path)
    here, there = shoal.audit(**paths), audit_in_parts(**paths)
    same_report(here, there)
    assert there.ok, there.text()
    assert there.metrics["smallest_crowd"] == {"site": 3, "app": 4}
    assert there.not_checked == ()


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


def out_of_order(evidence: Evidence) -> None:
    """Entries of two bins of entries, and their rows."""
    evidence.trace[150], evidence.trace[149] = evidence.trace[149], evidence.trace[150]
    evidence.release[147], evidence.release[146] = evidence.release[146], evidence.release[147]


def late(evidence: Evidence) -> None:
    """The first record of a bin comes after a later one, but was decided in the order of time."""
    evidence.truth[150]["ts"] -= 4
    evidence.release[147]["ts"] -= 4
    out_of_order(evidence)


def refused_in_time(evidence: Evidence) -> None:
    evidence.trace[310]["reason"], evidence.truth[310]["who"] = "late", "p1"


def refused_for_nothing(evidence: Evidence) -> None:
    evidence.truth[249]["who"] = evidence.truth[310]["who"] = "p1"
    evidence.trace[310]["reason"] = "bad luck"


def an_identifier_carried_along(evidence: Evidence) -> None:
    """In two columns of a row, and in one of another."""
    evidence.policy = {**POLICY, "stream": {**POLICY["stream"], "carry": ["shop", "note"]}}
    for row in (*evidence.release, *evidence.truth):
        row["note"] = "y"
    evidence.release[20] |= {"shop": "p3", "note": "p4"}
    evidence.release[440]["note"] = "p5"


def a_lower_z_for_no_value(evidence: Evidence) -> None:
    entry = next(one for one in evidence.trace[300:] if evidence.truth[one["row"]]["app"] is None)
    entry["z.app"] = 2


def a_row_without_a_record(evidence: Evidence) -> None:
    """Then pseudonyms count as people where carried columns are measured: a person of two epochs counts twice."""
    evidence.trace[100]["row"] = 10**6
    for record, row in ((20, 19), (192, 188)):
        evidence.release[row]["shop"] = evidence.truth[record]["shop"] = "rare"


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
    a_lower_z_for_no_value: {"z-lowered"},
    a_row_without_a_record: {"trace-row", "not-in-truth", "lost"},
    out_of_order: {"decision-order"},
    late: {"late-accepted"},
    refused_in_time: {"dead-without-cause"},
    refused_for_nothing: {"dead-without-cause"},
    an_identifier_carried_along: {"identifier-in-column"},
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_release(tmp_path: Path, sound: Evidence, broken: Callable[[Evidence], None]) -> None:
    evidence = copied(sound)
    broken(evidence)
    paths = evidence.write(tmp_path)
    here, there = shoal.audit(**paths), audit_in_parts(**paths)
    assert BROKEN[broken] <= {found.code for found in there.findings}
    same_report(here, there)
