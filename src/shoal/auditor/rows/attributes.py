"""One quasi-identifier, published and true side by side, as attacks and measures of use look at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from shoal.auditor.counting import Paths, numbered, shared_codes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.rows.quasi import Faults, LabelColumn, Quasi, RangeColumn, RangeFacts, quasi_of, unit_facts
from shoal.auditor.rows.rules import Rule


@dataclass(frozen=True, slots=True)
class Attribute(ABC):
    """One quasi-identifier in the release and in the truth."""

    name: str
    weight: float
    code: Ints
    """For every released row the number of the published value; -1 for null."""
    at_root: Bools
    """Which released rows show the whole domain."""
    loss: Floats
    """The loss of a released row in this column, from 0 to 1; 1 for null."""
    faults: Faults
    """Released rows by what is wrong with the published value, whatever the truth is."""
    carried: Bools
    """Which rows of the truth have a value."""
    usable: Bools
    """Which rows of the truth have no value or one that may be published."""

    @abstractmethod
    def covers(self, shown: Ints, known: Ints) -> Bools:
        """Return whether released rows cover rows of the truth, for pairs that both have a value."""


@dataclass(frozen=True, slots=True)
class Labels(Attribute):
    """A quasi-identifier published as a label."""

    true_code: Ints
    paths: Paths
    texts: list[str]

    def covers(self, shown: Ints, known: Ints) -> Bools:
        """Return whether the label is on the path from the true value to the root."""
        width = len(self.texts) + 1
        different, turn = numbered(self.true_code[known] * width + self.code[shown])
        covered: Bools = self.paths.level(different // width, different % width) >= 0
        return covered[turn]


@dataclass(frozen=True, slots=True)
class Spans(Attribute):
    """A quasi-identifier published as a range."""

    low: Floats
    high: Floats
    true_value: Floats
    """Clamped to the domain if the policy says so."""
    slack: float
    """How far a value may lie outside its range because it could not be read exactly."""
    are_moments: bool
    """Whether ends and values are microseconds since 1970."""

    def covers(self, shown: Ints, known: Ints) -> Bools:
        """Return whether the true value is within the range."""
        value = self.true_value[known]
        above: Bools = self.low[shown] <= value + self.slack
        below: Bools = value - self.slack <= self.high[shown]
        return above & below


def read_attribute(rule: Rule, release: Rows, truth: Rows, facts: RangeFacts | None = None) -> Attribute:
    """Read both sides of a quasi-identifier; of a part of the rows, with the facts of all of them."""
    return attribute_of(quasi_of(rule, unit_facts(rule, release, truth) if facts is None else facts), release, truth)


def attribute_of(quasi: Quasi, release: Rows, truth: Rows) -> Attribute:
    """Read both sides of a quasi-identifier."""
    (columns, faults), (recorded, usable) = quasi.read_shown(release), quasi.read_true(truth)
    texts: list[str] = []
    if isinstance(quasi, LabelColumn):  # number the texts of both sides together
        texts, (true, shown) = shared_codes(truth.text(quasi.name), release.text(quasi.name))
        columns, recorded = {quasi.label: Texts(shown, texts)}, {quasi.value: Texts(true, texts)}
    rows, records = Relation(columns), Relation(recorded)
    both = (
        quasi.name, quasi.weight, quasi.codes(rows), quasi.at_root(rows), quasi.loss(rows), faults,
        quasi.is_recorded(records), usable,
    )  # fmt: skip
    if isinstance(quasi, LabelColumn):
        return Labels(*both, records.codes(quasi.value), Paths(texts, quasi.rule.tree), texts)
    assert isinstance(quasi, RangeColumn)
    ends = rows[quasi.low], rows[quasi.high]
    return Spans(*both, *ends, records[quasi.value], quasi.slack, quasi.are_moments)
