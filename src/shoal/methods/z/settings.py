"""The parameters of z-anonymity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, PlainValidator, PrivateAttr, model_validator

from shoal.hierarchies import Hierarchy
from shoal.methods.base import Guarantee
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import AnyDuration, Count, Crowd, Duration, Given, PositiveDuration, Settings, require
from shoal.methods.z.crowds.columns import AttributeColumn, OnPrivate, Residual
from shoal.methods.z.setting_checks import Roles, own_tables, problems_together, role_problems
from shoal.models.z.target.target import KTarget
from shoal.schema import format_duration

_LONG_ROTATION: Final = (
    "rotation is longer than the window: the model of z-anonymity no longer applies, and what a person does "
    "in several windows can be linked; choose a rotation that is at most the window"
)


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
        return require(settings, [*problems, *role_problems(roles, own_tables(named))])

    # ---- checks

    @classmethod
    def cross_check(cls, given: Given) -> Iterator[Problem]:
        yield from problems_together(given)

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


def guarantee_of(settings: ZSettings) -> Guarantee:
    """What is promised of every published row."""
    promises = [
        f"every published {column.name!r} was exposed by at least {column.z} different people "
        f"within the {format_duration(column.window_ns)} up to it"
        for column in settings.attributes
    ]
    target, max_delay_ns = settings.target, settings.lateness_ns
    if target is not None:
        promises.append(
            f"z follows the stream, never below {target.least}, and values are withheld, so that at least "
            f"{target.p:g} of the people shown in an epoch are {target.k}-anonymous by all that is released of them: "
            "that is aimed at, not promised"
        )
    if settings.k is not None:
        max_delay_ns += settings.rotation_ns
        promises.append(
            f"the set of all values published of a person in an epoch of {format_duration(settings.rotation_ns)} is "
            f"shared by at least {settings.k} different people; rows wait for that to the end of their epoch"
        )
    return Guarantee(
        method="z-anonymity", statement="; ".join(promises), parameters=settings.describe(),
        max_delay_ns=max_delay_ns, max_pending=None if max_delay_ns else 0,
    )  # fmt: skip
