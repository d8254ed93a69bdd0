"""The parameters of z-anonymity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, PlainValidator, PrivateAttr, model_validator

from shoal.hierarchies import Hierarchy
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import AnyDuration, Count, Crowd, Duration, Given, PositiveDuration, Settings, require
from shoal.methods.z.columns import AttributeColumn, OnPrivate, Residual
from shoal.models.z.target import KTarget

_KEEPING_LEVEL: Final = (None, "drop", "blank")  # a misspelt one is reported as such
_UNUSED: Final = 'is used only with on_private = "generalize"; set that, or leave the hierarchy out'
_UNUSED_RULE: Final = 'is used only with on_private = "generalize"; set that, or leave it out'
_NEEDED: Final = {
    "z": "is missing; give the number of people that must share a value, or a target that z follows",
    "window": 'is missing; give how far back people count, such as "1h"',
}
_COMBINED: Final = (
    ("k", "combine", "is missing; give how many people must share what is released of a person in an epoch"),
    ("combine", "k", 'is missing; k goes with combine = "k", which keeps rows waiting for an epoch'),
)
_LONG_ROTATION: Final = (
    "rotation is longer than the window: the model of z-anonymity no longer applies, and what a person does "
    "in several windows can be linked; choose a rotation that is at most the window"
)


class Roles(NamedTuple):
    """The columns besides the attributes."""

    person: str
    time: str
    carry: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ZRule:
    """What holds for one attribute after the defaults are filled in."""

    name: str
    z: int
    window: Duration
    on_private: OnPrivate
    residual: Residual


def _tree(value: object) -> Hierarchy:
    if not isinstance(value, Hierarchy):
        raise ValueError("must be a shoal.Hierarchy")
    return value


def _target(value: object) -> KTarget:
    if not isinstance(value, KTarget):
        raise ValueError("must be a shoal.KTarget, such as KTarget(k=2, p=0.95)")
    return value


def attribute_tables(value: object) -> object:
    """One table for each attribute; raises ValueError."""
    if isinstance(value, str):
        value = {value: {}}
    if not isinstance(value, Mapping):
        raise ValueError("must be the name of a column, or a table with one entry a column")
    if not value:
        raise ValueError("names no column; name at least one")
    if not all(isinstance(name, str) and name.strip() for name in value):
        raise ValueError("must not be empty; name a column")
    return dict(value)


class ZColumnSettings(Settings):
    """What one attribute sets differently from the rest."""

    z: Count | None = None
    window: PositiveDuration | None = None
    on_private: OnPrivate | None = None
    hierarchy: Annotated[Any, PlainValidator(_tree)] | None = None
    residual: Residual | None = None


class ZSettings(Settings):
    """What z-anonymity is asked for: an attribute is published when z people had it within the window."""

    attribute: Annotated[Mapping[str, ZColumnSettings], BeforeValidator(attribute_tables)] = Field(
        description="name the column that is published only where enough people share its value"
    )
    z: Count | None = Field(None, description="People who must have exposed a value within the window.")
    window: PositiveDuration | None = Field(
        None, description='How far back people count: a duration such as `"1h"`. The window is closed.'
    )
    on_private: OnPrivate = Field(
        "drop",
        description='A value of too few people: `"drop"` the row, `"blank"` the value, or `"generalize"` it up the '
        "hierarchy to the most specific label that passes.",
    )
    hierarchy: Annotated[Any, PlainValidator(_tree)] | None = Field(
        None, description='The tree along which `on_private = "generalize"` goes up.'
    )
    residual: Residual = Field(
        "strict",
        description='Who counts for a label when a value is generalized: `"strict"` counts exposures that would be '
        'published at that label now, `"loose"` all that were not published below it.',
    )
    lateness: AnyDuration = Field(
        Duration("0s"), description="How long records wait so that late ones can be sorted in; 0 refuses late ones."
    )
    max_gap: PositiveDuration = Field(
        Duration("24h"),
        description="A record further ahead than this moves time only once a second person's record confirms it.",
    )
    rotation: PositiveDuration | None = Field(
        None, description="How long a pseudonym lasts; by default the (shortest) window."
    )
    target: Annotated[Any, PlainValidator(_target)] | None = Field(
        None, description="Instead of `z`: the share of people to keep k-anonymous; z then follows the stream."
    )
    combine: Literal["k"] | None = Field(
        None, description='`"k"` keeps rows to the end of their epoch, so that `k` people share all that is published.'
    )
    k: Crowd | None = Field(None, description='With `combine = "k"`: people who must share a published set of values.')

    _roles: Roles | None = PrivateAttr(default=None)
    _is_table: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _remember_form(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(given)
        made._is_table = isinstance(given, Mapping) and isinstance(given.get("attribute"), Mapping)  # noqa: SLF001
        return made

    def model_post_init(self, context: Any) -> None:
        """Keep the other columns that the settings were checked with."""
        self._roles = (context or {}).get("roles")

    @classmethod
    def for_columns(cls, person: str, time: str, carry: str | Sequence[str], given: Given) -> Self:
        """The settings for these columns; raises one PolicyError that lists everything that is wrong."""
        roles = Roles(person, time, (carry,) if isinstance(carry, str) else tuple(carry))
        named = {name: value for name, value in given.items() if value is not None}
        if isinstance(named.get("attribute"), Mapping):
            named["attribute"] = {column: _without_none(own) for column, own in named["attribute"].items()}
        settings, problems = cls.read(named, {"roles": roles})
        return require(settings, [*problems, *_role_problems(roles, own_tables(named))])

    # ---- checks

    @classmethod
    def cross_check(cls, given: Given) -> Iterator[Problem]:
        tables = own_tables(given)
        alone = isinstance(given.get("attribute"), str)
        for name, own in tables.items():
            place = () if alone else ("attribute", name)
            yield from (((*place, key), text) for key, text in _column_problems(given, own, alone=alone))
        if "hierarchy" in given and tables and all(_passes_over(given, own) for own in tables.values()):
            yield ("hierarchy",), _UNUSED
        if "residual" in given and tables and all(_keeps_level(given, own) for own in tables.values()):
            yield ("residual",), _UNUSED_RULE
        yield from (((key,), text) for key, other, text in _COMBINED if key not in given and other in given)
        if "target" in given:
            yield from _target_problems(given, tables)

    def warnings(self) -> list[str]:
        found = [
            f"{name}: z = 1 releases everything; choose a z that hides a person in a crowd"
            for name, column in self.columns.items()
            if column.z == 1
        ]
        shortest = min(column.window for column in self.columns.values())
        return [*found, _LONG_ROTATION] if self.rotation is not None and self.rotation > shortest else found

    # ---- what the parameters mean

    @property
    def is_table(self) -> bool:
        """Whether the attributes are given as a table, even if of one column."""
        return self._is_table

    @property
    def k_target(self) -> KTarget | None:
        """What z follows the stream for; None where it is fixed."""
        return self.target

    @property
    def columns(self) -> dict[str, ZRule]:
        """Every attribute with what holds for it."""
        return {name: self._rule(name, own) for name, own in self.attribute.items()}

    def _rule(self, name: str, own: ZColumnSettings) -> ZRule:
        z, window = own.z or self.z, own.window or self.window
        if z is None and self.k_target is not None:
            z = self.k_target.least
        assert z is not None, "cross_check asks for z"
        assert window is not None, "cross_check asks for window"
        return ZRule(name, z, window, own.on_private or self.on_private, own.residual or self.residual)

    @property
    def attributes(self) -> tuple[AttributeColumn, ...]:
        """The attribute columns with everything the engine needs."""
        return tuple(
            AttributeColumn(rule.name, rule.z, int(rule.window), rule.on_private, self._tree_of(rule), rule.residual)
            for rule in self.columns.values()
        )

    def _tree_of(self, rule: ZRule) -> Hierarchy | None:
        found: Hierarchy | None = self.attribute[rule.name].hierarchy or self.hierarchy
        return found if rule.on_private == "generalize" else None

    @property
    def roles(self) -> Roles:
        """The columns besides the attributes."""
        assert self._roles is not None, "a method checks its settings with its columns"
        return self._roles

    @property
    def person(self) -> str:
        """The column that names the person."""
        return self.roles.person

    @property
    def time(self) -> str:
        """The column that names the moment."""
        return self.roles.time

    @property
    def carry(self) -> tuple[str, ...]:
        """Columns published unchanged."""
        return self.roles.carry

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Names of all columns read."""
        return (self.time, self.person, *self.attribute, *self.carry)

    @property
    def lateness_ns(self) -> int:
        """How long records wait to be sorted."""
        return int(self.lateness)

    @property
    def max_gap_ns(self) -> int:
        """The longest gap that one person's record may open."""
        return int(self.max_gap)

    @property
    def rotation_ns(self) -> int:
        """How long a pseudonym lasts."""
        return int(self.rotation or min(column.window for column in self.columns.values()))

    def without_carry(self) -> Self:
        """The same settings for a stream without carried columns."""
        made = self.model_copy()
        made._roles = Roles(self.person, self.time, ())  # noqa: SLF001
        return made

    # ---- for snapshots and reports

    def to_header(self) -> dict[str, Any]:
        return {
            **super().to_header(), "is_table": self.is_table, "roles": list(self.roles),
            "attribute": [[name, own.to_header()] for name, own in self.attribute.items()],  # their order counts
            "target": None if self.target is None else self.target.describe(),
        }  # fmt: skip

    @classmethod
    def from_header(cls, header: Given) -> Self:
        given = {name: value for name, value in header.items() if name not in ("is_table", "roles")}
        if given["residual"] == "strict":  # the default; given where nothing is generalized, it would be refused
            del given["residual"]
        given["attribute"] = {name: _with_tree(own) for name, own in given["attribute"]}
        if not header["is_table"]:
            (given["attribute"],) = given["attribute"]
        person, time, carry = header["roles"]
        if given["target"] is not None:
            given["target"] = KTarget(**given["target"])
        return cls.for_columns(person, time, carry, _with_tree(given))

    def describe(self) -> dict[str, Any]:
        """What is promised, in plain values, for the guarantee."""
        return {
            "person": self.person, "time": self.time, "attributes": [_described(one) for one in self.attributes],
            "is_table": self.is_table, "carry": list(self.carry), "lateness_ns": self.lateness_ns,
            "max_gap_ns": self.max_gap_ns, "rotation_ns": self.rotation_ns,
            **({"k": self.k} if self.k is not None else {}),
            **({"target": self.target.describe()} if self.target is not None else {}),
        }  # fmt: skip


def _described(column: AttributeColumn) -> dict[str, Any]:
    tree = column.hierarchy.to_dict() if column.hierarchy is not None else None
    rule = {"residual": column.residual} if tree is not None else {}
    return {"name": column.name, "z": column.z, "window_ns": column.window_ns, "on_private": column.on_private,
            "hierarchy": tree, **rule}  # fmt: skip


def _with_tree(own: Given) -> dict[str, Any]:
    return {**own, "hierarchy": Hierarchy.from_dict(own["hierarchy"]) if own["hierarchy"] else None}


def _without_none(own: Any) -> Any:
    return {name: value for name, value in own.items() if value is not None} if isinstance(own, Mapping) else own


def _role_problems(roles: Roles, attributes: Mapping[str, Given]) -> Iterator[Problem]:
    for role, name in (("person", roles.person), ("time", roles.time), *(("carry", name) for name in roles.carry)):
        if not isinstance(name, str) or not name:
            yield (role,), "must be the name of a column"
    names = [roles.time, roles.person, *attributes, *roles.carry]
    for name in sorted({name for name in names if isinstance(name, str) and names.count(name) > 1}):
        yield (f"column {name!r}",), "has two roles; a column is person, time, attribute or carried, once"


def own_tables(given: Given) -> dict[str, Given]:
    """Attributes and what they set themselves; what is not a table is reported elsewhere."""
    attribute = given.get("attribute")
    if isinstance(attribute, str):
        return {attribute: {}}
    if not isinstance(attribute, Mapping):
        return {}
    return {name: own for name, own in attribute.items() if isinstance(own, Mapping)}


def _target_problems(given: Given, tables: Mapping[str, Given]) -> Iterator[Problem]:
    """What cannot be combined with a z that follows the stream."""
    places: dict[tuple[str, ...], Given] = {(): given} | {("attribute", name): own for name, own in tables.items()}
    for place, holder in places.items():
        if "z" in holder:
            yield (
                (*place, "z"),
                "cannot be combined with a target, which z then follows; leave one of them out",
            )
        if holder.get("on_private") == "generalize":
            yield (*place, "on_private"), 'must be "drop" or "blank" with a target, which needs values as they are'
    if "combine" in given:
        yield ("combine",), "promises what a target aims at; leave one of them out"


def _column_problems(given: Given, own: Given, *, alone: bool) -> Iterator[tuple[str, str]]:
    """What one attribute lacks; `own` wins over what is given for all."""
    where = "" if alone else ", here or for all attributes"
    for key, text in _NEEDED.items():
        if key not in own and key not in given and not (key == "z" and "target" in given):
            yield key, text + where
    on_private = _effective(given, own, "on_private")
    if on_private == "generalize" and "hierarchy" not in own and "hierarchy" not in given:
        yield "hierarchy", f'is missing; on_private = "generalize" needs one{where}'
    if on_private in _KEEPING_LEVEL:
        yield from ((key, text) for key, text in (("hierarchy", _UNUSED), ("residual", _UNUSED_RULE)) if key in own)


def _passes_over(given: Given, own: Given) -> bool:
    """Whether the column has no use for the hierarchy given for all."""
    return "hierarchy" in own or _keeps_level(given, own)


def _keeps_level(given: Given, own: Given) -> bool:
    return _effective(given, own, "on_private") in _KEEPING_LEVEL


def _effective(given: Given, own: Given, key: str) -> object:
    return own.get(key, given.get(key))
