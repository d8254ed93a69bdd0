"""Every file of the table through init, run and audit as a new user calls them, and each release counted again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.scene import shoal
from tests.first_release.expected import ASK, ROW
from tests.first_release.names import as_read
from tests.first_release.release import Published
from tests.first_release.table import CASES

QUESTION = "whose row is it?"

pytestmark = pytest.mark.compiled
every_file = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@dataclass(frozen=True)
class Outcome:
    """How it ended for one file."""

    folder: Path
    asked: tuple[str, ...]
    refusal: str
    codes: tuple[int, ...] = ()
    said: str = ""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@cache
def outcome(case, folders):
    """Write the file, and type what init says to type."""
    folder = folders / case.name
    folder.mkdir()
    path, policy = case.write(folder), folder / "policy.toml"
    ended = shoal("init", path, "--out", policy, "--yes")
    asked = tuple(re.findall(r"--person (\S+)", ended.err)) if QUESTION in ended.err else ()
    if asked:
        assert ended.code == 2
        assert not policy.exists()
        answers = [person for person in as_read(case).persons if person != ASK]
        ended = shoal("init", path, "--out", policy, "--yes", "--person", *(answers[:1] or asked[:1]))
    if ended.code:
        return Outcome(folder, asked, ended.err + ended.out.decode())
    ran = shoal("run", policy, "--quiet")
    released = next(folder.glob(f"released{path.suffix if path.suffix in ('.jsonl', '.parquet') else '.csv'}"))
    files = ("--truth", path, "--trace", folder / "trace.parquet", "--policy", policy)
    judged = shoal("audit", released, *files)
    return Outcome(folder, asked, "", (ran.code, judged.code), ran.out.decode() + judged.out.decode())


def of_release(case, folders, count):
    """What `count` finds in the release of a file; nothing where the file is refused, with the reason."""
    found = outcome(case, folders)
    if found.refusal:
        assert case.expected.may_refuse, found.refusal
        return None
    return count(Published(case, found.folder))


def person_of(published):
    return published.policy["stream"]["person"]


@every_file
def test_it_is_published_or_refused(case, folders):
    """Whatever init writes runs, releases something, and passes the audit."""
    found = outcome(case, folders)
    if found.refusal:
        assert case.expected.may_refuse, found.refusal
    else:
        assert found.codes == (0, 0)


@every_file
def test_the_person_is_right(case, folders):
    found, expected = outcome(case, folders), as_read(case)
    if found.asked:
        assert expected.may_ask
        assert {ROW, *found.asked} & {*expected.persons} or ASK in expected.persons
    else:
        assert of_release(case, folders, person_of) in {None, *expected.persons}


@every_file
def test_enough_people_share_what_is_published(case, folders):
    assert not of_release(case, folders, Published.too_few)


@every_file
def test_no_identifier_is_published(case, folders):
    assert not of_release(case, folders, Published.identifiers)


@every_file
def test_what_is_published_is_true(case, folders):
    assert not of_release(case, folders, Published.untrue)


@every_file
def test_no_cell_is_invented(case, folders):
    """Where a record has no value, what is published of it has none."""
    assert not of_release(case, folders, Published.invented)


@every_file
def test_verdicts_say_whether_people_were_counted(case, folders):
    """In the summary of the run and in the first line of the audit, whenever nothing says whose a row is."""
    by_row, said = of_release(case, folders, person_of) == "row", outcome(case, folders).said
    if not said:
        assert outcome(case, folders).refusal
        return
    promise, verdict = re.search(r"promise\s+(.+)", said)[1], re.search(r"audit of .+", said)[0]
    assert ("rows, not people" in promise) == ("rows, not people" in verdict) == by_row


def test_questions_are_few(folders):
    asked = [case.name for case in CASES if outcome(case, folders).asked]
    assert 0 < len(asked) <= len(CASES) / 5, asked
