"""What `init` proposes for the files of the table: the right person or a question, and no published identifier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from shoal.errors import ShoalError
from shoal.inspection import PersonDoubt, Proposal, Wishes, look, propose
from shoal.inspection.files.reading import read_data
from tests.first_release.expected import ASK, ROW
from tests.first_release.names import as_read
from tests.first_release.table import CASES

IDENTIFYING = {"person", "row number", "identifier", "drop"}
PUBLISHED = {"quasi", "sensitive", "carry", "attribute", "items"}

every_file = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@dataclass(frozen=True)
class Outcome:
    """What init did: a proposal, a question, or a refusal."""

    proposal: Proposal | None = None
    asked: tuple[str, ...] = ()
    refusal: str | None = None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@cache
def looked(case, folder):
    """Facts of the file and what its format suggests, or the reason why it was refused."""
    try:
        data = read_data(case.write(folder), 1_000_000)
        return look(data.table, converts=data.converts), data.known, None
    except ShoalError as error:
        return None, {}, str(error)


@cache
def proposed(case, folder, person=None):
    facts, known, refusal = looked(case, folder)
    if facts is None:
        return Outcome(refusal=refusal)
    try:
        return Outcome(propose(facts, Wishes(person=person).with_known(known)))
    except PersonDoubt as doubt:
        return Outcome(asked=tuple(one.column for one in doubt.candidates))
    except ShoalError as error:
        return Outcome(refusal=str(error))


def person_of(proposal):
    columns = proposal.columns("person")
    return columns[0] if columns else ROW


@every_file
def test_the_person_is_right_or_asked_for(case, folder):
    expected, found = as_read(case), proposed(case, folder)
    if found.refusal is not None:
        assert expected.may_refuse, found.refusal
    elif found.proposal is None:
        assert expected.may_ask, found.asked
        assert {ROW, ASK, *found.asked} & set(expected.persons)
    else:
        assert person_of(found.proposal) in expected.persons


@every_file
def test_no_identifier_is_published(case, folder):
    """Neither in what is proposed, nor after a question was answered."""
    expected, found = as_read(case), proposed(case, folder)
    if found.proposal is None and found.asked:
        answers = [person for person in expected.persons if person != ASK] or found.asked
        found = proposed(case, folder, answers[0])
    if found.proposal is None:
        assert expected.may_refuse, found.refusal
        return
    published = {role.column for role in found.proposal.roles if role.role in PUBLISHED}
    hidden = {column.name for column in expected.columns if set(column.roles) <= IDENTIFYING}
    shown = published & hidden
    assert shown <= {column.name for column in expected.columns if column.roles == ("drop",)}, shown


METHODS = {
    "k-varp": "varied",
    "flexible-k": "varied",
    "least-loss": "tuples",
    "z-anonymity": "z-anonymity",
    "k^m": "k^m",
}


@every_file
def test_the_method_fits(case, folder):
    """Events, sets, rows, or columns that are mostly missing; also after a question was answered."""
    expected, found = as_read(case), proposed(case, folder)
    if found.asked:
        found = proposed(case, folder, next((one for one in expected.persons if one != ASK), found.asked[0]))
    if found.proposal is None:
        assert expected.may_refuse, found.refusal
    else:
        assert METHODS[found.proposal.method] in expected.methods


@every_file
def test_rows_are_never_called_people(case, folder):
    """Where nothing says whose a row is, the proposal says so, and asks whether the file is about people at all."""
    found = proposed(case, folder).proposal
    if found is None:
        return
    said = " ".join([*(role.reason for role in found.roles), *(risk.counted for risk in found.pairs)])
    counts_rows = found.stream["person"] == ROW and not found.columns("person")
    assert ("of the people" in said) <= (not counts_rows)
    assert any("is the file about people at all?" in question for question in found.questions) == counts_rows
    assert any("rows are counted, not people" in question for question in found.questions) == counts_rows


def test_at_most_a_fifth_of_the_files_are_asked_about(folder):
    asked = [case.name for case in CASES if proposed(case, folder).asked]
    assert 0 < len(asked) <= len(CASES) / 5, asked
