"""What a run says, and with which exit code it ends, when little is left of its input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from tests.e2e.scene import Ended
from tests.e2e.scene import shoal as command

EVENTS = """
[stream]
person = "who"
time = "ts"
[source]
kind = "csv"
path = "in.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "1h"
[sink]
kind = "csv"
path = "out.csv"
"""
PEOPLE = """
[stream]
person = "who"
[source]
kind = "csv"
path = "in.csv"
types = {{age = "int64"}}
[anonymize]
method = "fads"
k = {k}
deadline = 3
reuse = 0
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 100
[anonymize.quasi.town]
kind = "categorical"
hierarchy = {{kind = "nested", tree = {{all = {{a = {{}}, b = {{}}}}}}}}
[sink]
kind = "csv"
path = "out.csv"
"""


def ran(folder: Path, policy: str, rows: str, *options: str) -> Ended:
    (folder / "policy.toml").write_text(policy)
    (folder / "in.csv").write_text(rows)
    return command("run", folder / "policy.toml", "--quiet", *options)


def events(*times: int) -> str:
    return "ts,who,site\n" + "".join(f"{ts},p{number % 3},a.example\n" for number, ts in enumerate(times))


def people(*ages: Any) -> str:
    return "who,age,town\n" + "".join(f"p{number},{age},a\n" for number, age in enumerate(ages))


def test_a_clock_that_is_wrong_refuses_the_rest(tmp_path: Path) -> None:
    ended = ran(tmp_path, EVENTS, events(90_000, 90_001, 90_002, *range(200, 220)), "--json")
    assert ended.code == 3
    assert "20 late" in ended.err
    assert "Try this first: column 'ts': older than the newest event" in ended.err
    assert (ended.summary["exit_code"], ended.summary["ok"]) == (3, False)
    assert (tmp_path / "out.csv").exists(), "what could be released is there"


def test_half_refused_is_not_yet_a_failure(tmp_path: Path) -> None:
    assert ran(tmp_path, EVENTS, events(90_000, 90_001, 90_002, 200, 201, 202)).code == 0
    assert ran(tmp_path, EVENTS, events(90_000, 90_001, 90_002, 200, 201, 202, 203)).code == 3


def test_nothing_released_because_everybody_is_alone(tmp_path: Path) -> None:
    rows = "ts,who,site\n" + "".join(f"{ts},p{ts},site{ts}.example\n" for ts in range(20))
    ended = ran(tmp_path, EVENTS, rows)
    assert ended.code == 3
    assert "nothing was released of 20 rows; 20 suppressed (100.0%)" in ended.err


@pytest.mark.parametrize("policy", [EVENTS, PEOPLE.format(k=2)])
def test_an_input_without_records_is_a_warning(tmp_path: Path, policy: str) -> None:
    header = "ts,who,site\n" if policy == EVENTS else "who,age,town\n"
    ended = ran(tmp_path, policy, header)
    assert ended.code == 0
    assert "warning: the input has no records" in ended.err


def test_wrong_types_refuse_most_records(tmp_path: Path) -> None:
    ended = ran(tmp_path, PEOPLE.format(k=2), people(*[30] * 9, *[30.5] * 10))
    assert ended.code == 3
    assert "10 of 19 rows (52.6%) were refused: 10 unreadable" in ended.err
    assert "check the kind, the delimiter and the types" in ended.err


FEW_PEOPLE = "who,age,town\n" + "p0,20,a\np1,20,a\np2,20,a\n" + "p0,90,b\np1,90,b\n" * 3
"""Three people, then six rows of two of them."""


def test_more_than_half_suppressed_is_a_warning(tmp_path: Path) -> None:
    ended = ran(tmp_path, PEOPLE.format(k=3), FEW_PEOPLE, "--json")
    assert (ended.code, ended.summary["released"], ended.summary["suppressed"]) == (0, 3, 6)
    assert ended.summary["outcome"].startswith("only 3 of 9 rows (33.3%) were released; 6 suppressed (66.7%)")
    assert ended.summary["outcome"] in ended.summary["warnings"]
    assert ended.summary["outcome"] in ended.err


@pytest.mark.parametrize("diversity", ["", 'l = 2\nsensitive = ["ill"]\n'])
def test_what_to_try_first_names_diversity_where_it_is_asked_for(diversity: str, tmp_path: Path) -> None:
    policy = PEOPLE.format(k=3).replace("reuse = 0\n", f"reuse = 0\n{diversity}")
    rows = "who,age,town,ill\n" + "".join(f"p{number},20,a,flu\n" for number in range(9))
    rows += "" if diversity else "".join(f"q{number % 2},90,b,flu\n" for number in range(20))
    ended = ran(tmp_path, policy, rows)
    assert ("or less diversity (l, entropy_l, t)" in ended.err) == bool(diversity)
    assert "Try this first: choose a smaller k, a longer deadline, " in ended.err


def test_a_run_that_was_finished_before_ends_alike(tmp_path: Path) -> None:
    policy = PEOPLE.format(k=4) + '[checkpoint]\npath = "state"\n'
    first = ran(tmp_path, policy, FEW_PEOPLE, "--json")
    again = command("run", tmp_path / "policy.toml", "--quiet", "--json")
    assert (first.code, again.code) == (3, 3)
    assert again.summary["finished_before"]
    assert again.summary["outcome"] == first.summary["outcome"]


def test_the_report_warns_where_most_records_are_missing(tmp_path: Path) -> None:
    ran(tmp_path, PEOPLE.format(k=3) + '[trace]\npath = "trace.parquet"\n', FEW_PEOPLE)
    given = (
        "--truth",
        tmp_path / "in.csv",
        "--trace",
        tmp_path / "trace.parquet",
        "--policy",
        tmp_path / "policy.toml",
    )
    page = tmp_path / "report.html"
    assert command("report", tmp_path / "out.csv", *given, "--out", page).code == 0
    assert "Only 33.3% of the records were released." in page.read_text()


@pytest.mark.parametrize(("sites", "released"), [("pear", 0), ("apple", 4)])
def test_sets_of_unknown_items(tmp_path: Path, sites: str, released: int) -> None:
    policy = """
    [stream]
    person = "who"
    [source]
    kind = "csv"
    path = "in.csv"
    [anonymize]
    method = "k^m"
    item = "site"
    k = 2
    m = 1
    generalize = {hierarchy = {kind = "nested", tree = {all = {apple = {}, plum = {}}}}}
    [sink]
    kind = "csv"
    path = "out.csv"
    """
    ended = ran(tmp_path, policy, "who,site\n" + "".join(f"p{number},{sites}\n" for number in range(4)), "--json")
    assert (ended.code, ended.summary["released"]) == (0 if released else 3, released)
    if not released:
        assert "4 unknown-item" in ended.err
        assert "the generalization lacks an item" in ended.err
        assert not (tmp_path / "out.csv").exists()
        assert len((tmp_path / "out.csv.dead.jsonl").read_text().splitlines()) == 4


def test_a_frame_says_the_same_in_its_warnings() -> None:
    table = pa.table({"who": [row // 2 for row in range(60)], "age": list(range(60))})
    result = shoal.anonymize(table, k=25, person="who", quasi=["age"], deadline=30)  # 31 rows pending are of 16 people
    assert len(result) == 0
    assert [text for text in result.warnings if text.startswith("nothing was released of 60 rows")]
    assert "nothing was released" in repr(result)


def test_values_that_stand_where_a_record_has_none_are_warned_of(tmp_path: Path) -> None:
    rows = people(*[30, "", 31, 32] * 5)
    policy = PEOPLE.format(k=2).replace('"fads"', '"k-varp"')
    ended = ran(tmp_path, policy, rows)
    assert ended.code == 0
    ages = [line.split('","')[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert all(age.startswith('"[') for age in ages), "five of the records have none"
    assert ended.sentences == [
        "shoal: warning: 5 published values stand where the record has none, so means and shares of the release "
        'are wrong; set [anonymize] missing = "hidden", or "covered" if that is meant'
    ]
    assert ran(tmp_path, policy.replace("k = 2", 'k = 2\nmissing = "covered"'), rows).sentences == []
