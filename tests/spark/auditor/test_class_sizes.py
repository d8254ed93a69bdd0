"""Risks from class sizes, counted in parts, are those of the attacks on one machine where classes do not overlap."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import shoal
from shoal.auditor.attacks.class_sizes import CONTROL, RELEASE, TRUTH, attack_on, known_to_attackers
from shoal.auditor.attacks.outcome import AttackReport
from shoal.auditor.policy import read_policy
from shoal.errors import InputError, PolicyError
from tests.auditor.divided import Divided
from tests.spark.auditor.releases import make_evidence


def write_people(folder: Path, *, alone: bool = False) -> dict[str, str]:
    """Zip codes cut to two digits, and the sex: classes that do not overlap, over three files."""
    draw = random.Random(3)
    truth = [{"zip": f"{draw.randrange(1000, 1600)}", "sex": draw.choice("fm")} for _ in range(300)]
    if alone:
        truth[7]["zip"] = "9999"
    release = [{"zip": row["zip"][:2] + "**", "sex": row["sex"]} for row in truth]
    draw.shuffle(release)
    others = truth[:100]
    for name, rows in (("release", release), ("truth", truth), ("others", others)):
        (folder / name).mkdir()
        for number in range(3):
            part = rows[number * 100 : number * 100 + 100]
            if part:
                pyarrow.csv.write_csv(pa.Table.from_pylist(part), folder / name / f"part-{number}.csv")
    return {name: str(folder / name) for name in ("release", "truth", "others")}


def attack_in_parts(
    release: str, truth: str, policy: Any = None, *, control: Any = None, knows: Any = None, person: Any = None
) -> AttackReport:
    written = None if policy is None else read_policy(policy)
    known = known_to_attackers(written, knows, person)
    given = {RELEASE: release, TRUTH: truth} | ({} if control is None else {CONTROL: control})
    read: dict[str, list[Any]] = {}
    for file in known.files(written, given):
        read.setdefault(file.role, []).append(file.read())
    return attack_on(Divided(read), known)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("knows", [["zip", "sex"], ["zip"]])
def test_a_table(tmp_path: Path, alone: bool, knows: list[str]) -> None:
    paths = write_people(tmp_path, alone=alone)
    given: dict[str, Any] = {"knows": knows, "control": paths["others"]}
    here = shoal.attack(paths["release"], paths["truth"], targets=10_000, **given)
    there = attack_in_parts(paths["release"], paths["truth"], **given)
    for name in ("prosecutor", "marketer", "journalist"):
        one, other = here[name], there[name]
        assert one.success is not None
        assert other.success is not None
        assert other.success.value == pytest.approx(one.success.value, rel=1e-12)
        assert other.success.n == one.success.n
        assert other.guess == pytest.approx(one.guess)
        assert other.raw == pytest.approx(one.raw)
        assert (other.control, other.control_is) == (one.control, one.control_is)
    assert there.facts["unique_rows"] == (1 if alone else 0)
    assert (there.facts["highest_risk"] == 1) == alone
    for name in ("released_rows", "classes", "people", "control", "knows"):
        assert there.facts[name] == here.facts[name]
    assert {attack.name for attack in here.attacks} - {attack.name for attack in there.attacks} == {"decoy or real"}


def test_a_release_of_tuples(tmp_path: Path) -> None:
    evidence = make_evidence()
    paths = evidence.write(tmp_path)
    there = attack_in_parts(paths["release"], paths["truth"], evidence.policy)
    sizes: dict[str, int] = {}
    for row in evidence.release:
        key = repr((row["age"], row["school"]))
        sizes[key] = sizes.get(key, 0) + 1
    success = there["marketer"].success
    assert success is not None
    assert success.value == pytest.approx(len(sizes) / len(evidence.release))
    assert there.facts["highest_risk"] == 1 / min(sizes.values())
    assert there["marketer"].raw is None  # people have several records
    assert "prosecutor" in there.text()
    text = " ".join(there.text().split())
    assert text.count("use shoal attack without --engine spark") == 1
    assert all(attack.name in text for attack in there.attacks)


def test_without_a_control_group_no_control_is_shown(tmp_path: Path) -> None:
    paths = write_people(tmp_path)
    there = attack_in_parts(paths["release"], paths["truth"], knows=["zip"])
    assert [attack.control for attack in there.attacks if attack.applies] == [None, None]
    (line,) = [line for line in there.text().splitlines() if line.startswith("  prosecutor")]
    assert line.split()[-2:] == ["–", "300"]


def test_what_is_refused(tmp_path: Path) -> None:
    paths = write_people(tmp_path)
    with pytest.raises(PolicyError, match="name the quasi-identifiers"):
        attack_in_parts(paths["release"], paths["truth"])
    with pytest.raises(PolicyError, match="no classes to be counted"):
        attack_in_parts(paths["release"], paths["truth"], {"anonymize": {"method": "z-anonymity"}})
    with pytest.raises(InputError, match="street"):
        attack_in_parts(paths["release"], paths["truth"], knows=["street"])
