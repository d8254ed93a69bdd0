"""The parameters of z-anonymity, checked all at once before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.z.columns import AttributeColumn, OnPrivate
from shoal.models.z.target import KTarget
from shoal.schema import duration_ns

_KNOWN: Final = ("z", "window", "on_private", "hierarchy")


@dataclass(frozen=True, slots=True)
class ZSettings:
    """Checked parameters; durations in nanoseconds."""

    person: str
    time: str
    attributes: tuple[AttributeColumn, ...]
    is_table: bool
    carry: tuple[str, ...]
    lateness_ns: int
    max_gap_ns: int
    rotation_ns: int
    k: int | None = None
    """How many people must share a released set, where rows wait for that."""

    target: KTarget | None = None
    """What z follows the stream for; None where it is fixed."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns read."""
        return (self.time, self.person, *(column.name for column in self.attributes), *self.carry)

    def describe(self) -> dict[str, Any]:
        """Everything that shapes the output, as plain values."""
        return {
            "person": self.person,
            "time": self.time,
            "attributes": [_describe(column) for column in self.attributes],
            "is_table": self.is_table,
            "carry": list(self.carry),
            "lateness_ns": self.lateness_ns,
            "max_gap_ns": self.max_gap_ns,
            "rotation_ns": self.rotation_ns,
            **({"k": self.k} if self.k is not None else {}),
            **({"target": self.target.describe()} if self.target is not None else {}),
        }


def _describe(column: AttributeColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "z": column.z,
        "window_ns": column.window_ns,
        "on_private": column.on_private,
        "hierarchy": column.hierarchy.to_dict() if column.hierarchy is not None else None,
    }


def settings_from(description: Mapping[str, Any]) -> ZSettings:
    """The settings that describe() described."""
    made = [
        AttributeColumn(
            **{**column, "hierarchy": Hierarchy.from_dict(column["hierarchy"]) if column["hierarchy"] else None}
        )
        for column in description["attributes"]
    ]
    rest = {name: value for name, value in description.items() if name not in ("attributes", "carry", "target")}
    target = KTarget(**description["target"]) if "target" in description else None
    return ZSettings(attributes=tuple(made), carry=tuple(description["carry"]), target=target, **rest)


class Checker:
    """Collects every problem of a set of parameters instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def duration(self, name: str, value: object, *, positive: bool) -> int:
        """Read a duration, or note what is wrong with it."""
        try:
            nanoseconds = duration_ns(value, name=name)
        except PolicyError as error:
            self.problems.extend(error.problems)
            return 1
        if positive and nanoseconds == 0:
            self.problems.append(f"{name}: must be longer than 0")
            return 1
        return nanoseconds

    def threshold(self, name: str, value: object) -> int:
        """Read a z, or note what is wrong with it."""
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            self.problems.append(f"{name}: must be a whole number of at least 1")
            return 1
        return value

    def target(
        self, target: object, shared: Mapping[str, Any], tables: Mapping[str, Any], combine: object
    ) -> KTarget | None:
        """Read what z follows the stream for, or note what does not go with it."""
        if target is None:
            return None
        given = [shared, *(own for own in tables.values() if isinstance(own, Mapping))]
        if any(own.get("z") is not None for own in given):
            self.problems.append("target: z follows the stream, so none can be given; leave z out, or the target")
        if any(own.get("on_private") == "generalize" for own in given):
            self.problems.append('target: goes with values as they are, not with on_private = "generalize"')
        if combine is not None:
            self.problems.append('target: goes without combine = "k", which promises what a target aims at')
        if not isinstance(target, KTarget):
            self.problems.append("target: must be a shoal.KTarget, such as KTarget(k=2, p=0.95)")
            return None
        return target

    def combination(self, combine: object, k: object) -> int | None:
        """Read how many people must share a set, or note what is wrong with it; None where nobody asked."""
        if combine is None and k is None:
            return None
        if combine != "k":
            self.problems.append('combine: must be "k", together with k = how many people must share a released set')
        if isinstance(k, bool) or not isinstance(k, int) or not 2 <= k < 2**31:
            self.problems.append('k: must be a whole number of at least 2, together with combine = "k"')
            return None
        return k

    def text(self, name: str, value: object) -> str:
        """Read a column name, or note what is wrong with it."""
        if not isinstance(value, str) or not value:
            self.problems.append(f"{name}: must be the name of a column")
        return str(value)

    def attribute(self, name: str, given: Mapping[str, Any]) -> AttributeColumn:
        """Read one attribute column."""
        self.problems += [
            f"{name}: unknown setting {key!r}; known are {', '.join(_KNOWN)}" for key in given if key not in _KNOWN
        ]
        on_private = given.get("on_private", "drop")
        hierarchy = given.get("hierarchy")
        if on_private not in get_args(OnPrivate):
            self.problems.append(f'{name}: on_private must be "drop", "blank" or "generalize"')
        if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
            self.problems.append(f"{name}: hierarchy must be a shoal.Hierarchy")
            hierarchy = None
        if (on_private == "generalize") != (hierarchy is not None):
            self.problems.append(f'{name}: on_private = "generalize" and a hierarchy go together; give both or neither')
        return AttributeColumn(
            name, self.threshold(f"{name}: z", given.get("z")),
            self.duration(f"{name}: window", given.get("window"), positive=True), on_private, hierarchy,
        )  # fmt: skip


def check_settings(  # noqa: PLR0913 - the method's parameters, all by name
    *,
    attribute: str | Mapping[str, Mapping[str, Any]],
    shared: Mapping[str, Any],
    person: str,
    time: str,
    carry: Sequence[str],
    lateness: object,
    max_gap: object,
    rotation: object,
    combine: object = None,
    k: object = None,
    target: object = None,
) -> ZSettings:
    """Check everything; raise one PolicyError that lists all problems."""
    checker = Checker()
    is_table = isinstance(attribute, Mapping)
    tables = attribute if isinstance(attribute, Mapping) else {attribute: {}}
    if not tables:
        checker.problems.append("attribute: name at least one column")
    columns = tuple(
        _attribute(checker, checker.text("attribute", name), given, _with_least(shared, target))
        for name, given in tables.items()
    )
    windows = [column.window_ns for column in columns] or [1]
    settings = ZSettings(
        person=checker.text("person", person),
        time=checker.text("time", time),
        attributes=columns,
        is_table=is_table,
        carry=tuple(checker.text("carry", name) for name in ([carry] if isinstance(carry, str) else carry)),
        lateness_ns=checker.duration("lateness", lateness, positive=False),
        max_gap_ns=checker.duration("max_gap", max_gap, positive=True),
        rotation_ns=min(windows) if rotation is None else checker.duration("rotation", rotation, positive=True),
        k=checker.combination(combine, k),
        target=checker.target(target, shared, tables, combine),
    )
    repeated = sorted({name for name in settings.columns if settings.columns.count(name) > 1})
    checker.problems += [
        f"column {name!r}: has two roles; a column is person, time, attribute or carried, once" for name in repeated
    ]
    if checker.problems:
        raise PolicyError(checker.problems)
    return settings


def _with_least(shared: Mapping[str, Any], target: object) -> Mapping[str, Any]:
    """With a target z is at least its least; what is wrong with the two together is told elsewhere."""
    return shared if target is None or shared.get("z") is not None else {**shared, "z": getattr(target, "least", 2)}


def _attribute(checker: Checker, name: str, given: Any, shared: Mapping[str, Any]) -> AttributeColumn:
    if not isinstance(given, Mapping):
        checker.problems.append(f'{name}: must be a table such as {{z = 20, window = "1h"}}')
        given = {}
    return checker.attribute(name, {**shared, **given})
