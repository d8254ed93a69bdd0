"""What only a person can decide about a proposal."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.inspection.columns.numeric_codes import may_be_codes
from shoal.inspection.columns.roles import Role
from shoal.inspection.draft import Draft
from shoal.inspection.table_facts import TableFacts


def questions(table: TableFacts, draft: Draft, roles: list[Role], family: str) -> list[str]:
    """The questions about all roles, in the order in which they matter."""
    found = []
    if table.wishes.is_live and draft.trees:
        found.append("hierarchies have the values of the messages that were looked at; a record with another value "
                     "is refused, so add what may come")  # fmt: skip
    if table.person is None and not table.wishes.counts_rows(table.facts):
        found.append("no column says whose row it is, so rows are counted, not people; if people have several "
                     "rows, name the column (person)")  # fmt: skip
        found.append("is the file about people at all? Prices, earthquakes and tree rings need no anonymity")
    elif table.person is not None and not table.person.is_sure:
        found.append(f"is {table.person.column!r} a person? If it is a device, a household or the number of a row, "
                     "several of them may belong to one person")  # fmt: skip
    found += [f"{name!r} has a handful of values, too few to be the people; if it is the person, no k is kept"
              for name in table.whose.too_few if table.person is None]  # fmt: skip
    found += [f"the labels of {one.column!r} are made of its values; if they name people, give a tree of your own"
              for one in roles
              if one.role == "quasi" and one.column in draft.trees and table.measure.of(one.column).unique > 0.5
              and table.facts[one.column].shape in ("words", "free", "set")]  # fmt: skip
    unsure = [one.column for one in roles if (one.role == "quasi" or one.is_generalized) and not one.is_sure]
    if unsure:
        found.append(f"can somebody know {_listed(unsure)} of a person? If not, it may be sensitive or carried")
    found += _code_questions(table, draft, roles)
    found += [f"l = 2 suppresses about {cost:.0%} of the rows, because most have the same {name!r}; to keep them, "
              "drop the column, or leave out l" for name, cost in draft.costs.items()]  # fmt: skip
    kept = [one.column for one in roles
            if one.role in ("sensitive", "carry") and not one.is_sure and not one.is_generalized]  # fmt: skip
    if kept:
        instead = "drop it" if family == "z" else "make it a quasi-identifier"
        found.append(f"{_listed(kept)}: published unchanged; if somebody can know it, {instead}")
    return found


def _code_questions(table: TableFacts, draft: Draft, roles: list[Role]) -> list[str]:
    ranges = [one.column for one in roles if one.role == "quasi" and one.column in draft.ends]
    codes = [name for name in ranges if may_be_codes(table.facts[name])]
    question = (f"are the numbers of {_listed(codes)} quantities? If they are codes of something else, ranges of "
                'them say nothing: give a tree, kind = "categorical"')  # fmt: skip
    return [question] if codes else []


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:6]))
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
