"""What a careful person would choose for a data file, and how the file is written.

A role says what happens to a column:

- person: whose record it is; counted, never published
- row number: 0..n-1 or 1..n in the order of the rows; never published
- identifier: finds somebody without any other column (name, phone, account, exact address); never published
- quasi: may be known to an attacker; published generalized
- sensitive: what nobody should learn; protected by diversity, never published exactly if most values are unique
- time: the clock of the records, which orders them and is not published
- value, items: what z-anonymity and k^m publish
- carried: published unchanged, since it harms nobody
- drop: not published, since it is no use or too risky (free text, copies of other columns)

`identifier` and `drop` are the same for a release. Kinds count for columns that are published:
a boolean is a category with two values, a code is no quantity although it may consist of digits.
"""

from __future__ import annotations

from dataclasses import dataclass

ROLES = ("person", "row number", "identifier", "quasi", "sensitive", "time", "value", "items", "carried", "drop")
KINDS = ("numeric", "category", "boolean", "time", "code", "text")
METHODS = ("z-anonymity", "k^m", "tuples", "varied", "none")
UNPUBLISHED = frozenset({"person", "row number", "identifier", "drop", "time"})

ROW = "row"
"""Every row is somebody else, or the file is not about people and rows are counted."""

ASK = "ask"
"""The file alone does not tell: to choose without a question is wrong."""


@dataclass(frozen=True)
class Column:
    """A column by its name in the file, in the order of the file; names may be empty or repeated.

    The first of several roles or kinds is the best one; the others are acceptable.
    """

    name: str
    roles: tuple[str, ...]
    kinds: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def must_not_be_published(self) -> bool:
        return set(self.roles) <= UNPUBLISHED

    @property
    def must_be_sensitive(self) -> bool:
        return self.roles == ("sensitive",)


@dataclass(frozen=True)
class Reading:
    """How the file is written. Lines of items, and access logs, have no columns that pandas could read."""

    format: str
    has_header: bool | None
    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    is_quoted: bool = False
    is_header_short: bool = False


@dataclass(frozen=True)
class Expected:
    """What is right for one file.

    persons: the column that says who, or ROW, or ASK; the first is the best, the others are as good.
    may_ask: a question with the right answer among its candidates is acceptable; implied by ASK.
    may_refuse: an error that gives the reason is acceptable, since there is nothing to publish.
    about_people: None if the file does not tell.
    """

    persons: tuple[str, ...]
    about_people: bool | None
    methods: tuple[str, ...]
    columns: tuple[Column, ...]
    reason: str
    may_ask: bool = False
    may_refuse: bool = False

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def read_columns(text: str, missing: dict[str, tuple[str, ...]]) -> tuple[Column, ...]:
    """Columns from lines like `income = sensitive | quasi, numeric`; the name before the sign may be empty."""
    columns = []
    for line in text.strip("\n").splitlines():
        if line.strip():
            name, _, rest = line.partition("=")
            roles, _, kinds = rest.rpartition(",")
            columns.append(Column(name.strip(), _words(roles), _words(kinds), missing.get(name.strip(), ())))
    if unknown := set(missing) - {column.name for column in columns}:
        raise ValueError(f"missing words for columns that are not listed: {sorted(unknown)}")
    return tuple(columns)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|"))
