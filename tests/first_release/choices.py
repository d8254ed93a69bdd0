"""What `init` chooses for the columns of a file of the table, once whose row it is was answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shoal.errors import ShoalError
from shoal.inspection import Facts, PersonDoubt, Proposal, Wishes, look, propose
from shoal.inspection.files.reading import FirstRows, read_data
from tests.first_release.cases import Case
from tests.first_release.expected import ASK, Column
from tests.first_release.names import as_read


@dataclass(frozen=True)
class Choice:
    """A file, what was seen of it, and what is proposed for it."""

    path: Path
    data: FirstRows
    facts: dict[str, Facts]
    proposal: Proposal
    person: str | None
    """What was answered when init asked whose row it is."""

    def roles(self, name: str) -> set[str]:
        """The roles of a column: one, or quasi and sensitive."""
        sensitive = {"sensitive"} if name in self.proposal.anonymize.get("sensitive", ()) else set()
        return {one.role for one in self.proposal.roles if one.column == name} | sensitive

    def kind(self, name: str) -> str | None:
        """How a column is generalized: as numbers, as moments or with a tree."""
        rule = self.proposal.anonymize.get("quasi", {}).get(name)
        if rule is None:
            return None
        return "tree" if rule["kind"] == "categorical" else "moments" if isinstance(rule["low"], str) else "numbers"

    def missing(self, name: str) -> set[str]:
        """The words that [source] says mean a missing value in a column."""
        words = self.data.source.get("nulls", [])
        return set(words.get(name, []) if isinstance(words, dict) else words)


@cache
def choice(case: Case, folder: Path) -> Choice | str:
    """The choice for a file; the reason if it is refused."""
    path = folder / case.name
    try:
        data = read_data(path if path.exists() else case.write(folder), 1_000_000)
        facts = look(data.table, converts=data.converts)
        wishes = Wishes(sees_all=data.is_all).with_known(data.known)
        person = None
        try:
            proposal = propose(facts, wishes)
        except PersonDoubt as doubt:
            right = [one for one in as_read(case).persons if one != ASK]
            person = right[0] if right else doubt.candidates[0].column
            wishes = Wishes(person=person, sees_all=data.is_all).with_known(data.known)
            proposal = propose(facts, wishes)
    except ShoalError as error:
        return str(error)
    return Choice(path, data, facts, proposal, person)


def columns_of(case: Case) -> tuple[Column, ...]:
    """What is expected of each column, by the name under which it is read."""
    return as_read(case).columns
