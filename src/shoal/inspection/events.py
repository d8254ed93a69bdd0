"""Events for z-anonymity: their columns, and the shortest window in which enough of them have z people."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.errors import PolicyError
from shoal.inspection.columns.arrays import Flags, Integers, is_there, value_codes
from shoal.inspection.columns.facts import Facts
from shoal.inspection.columns.roles import Role, names_people
from shoal.inspection.draft import Draft
from shoal.inspection.table_facts import TableFacts
from shoal.schema import duration_ns

_WINDOWS: Final = ("1h", "6h", "1d", "7d", "30d", "365d")
_WAITS: Final = ("10s", "1min", "5min", "30min", "2h", "12h", "2d", "7d")
_ENOUGH: Final = 0.4
"""The share of events that is worth publishing."""

_FEW_COMMON: Final = 0.1
"""The share of events that z-anonymity would publish, below which rows are generalized instead."""
_FEW_VALUES: Final = 50
"""Different values up to which another column of events may be published unchanged."""


def events_draft(table: TableFacts) -> Draft:
    """What z-anonymity needs: who, when, what, z and a window; raise PolicyError if a column is not found."""
    person, time, attribute = table.person, table.time, table.attribute
    if person is None or time is None or attribute is None:
        found = {"person": person, "time": time, "attribute": attribute}
        raise PolicyError([f"{what}: not found; name the column" for what, one in found.items() if one is None])
    window = _window(table, person, time, attribute).window
    roles = [time, attribute, *(_other_column(table, name) for name in table.others if name != attribute.column)]
    rules = {"method": "z-anonymity", "attribute": attribute.column, "z": table.z, "window": window}
    rules |= {"k": table.wishes.k} if table.wishes.k is not None else {}
    return Draft(roles, {**rules, **order_settings(table.facts[time.column]), **table.wishes.settings})


def has_common_values(table: TableFacts, person: Role, time: Role, attribute: Role) -> bool:
    """Whether enough people have the same values within some window, so that z-anonymity would publish any."""
    return _window(table, person, time, attribute).released >= _FEW_COMMON


def _window(table: TableFacts, *columns: Role) -> Choice:
    person, time, attribute = (table.facts[one.column] for one in columns)
    return choose_window(person, time, attribute, z=table.z, window=table.wishes.window)


def _other_column(table: TableFacts, name: str) -> Role:
    """Another column of events: carried if at least k people share each of its values."""
    if name in (table.wishes.carry or ()):
        return Role(name, "carry", "as given")
    identifier = table.identifier_role(name)
    if identifier is not None:
        return identifier
    one, risk = table.facts[name], table.measure.of(name)
    is_plain = one.kind in ("text", "whole", "number") and one.shape != "set" and not names_people(one)
    if is_plain and not risk.rare and one.distinct <= _FEW_VALUES:
        return Role(name, "carry", f"few values, shared by many: {risk.words()}", is_sure=False)
    return Role(name, "drop", f"published unchanged it would single people out: {risk.words()}")


class Choice(NamedTuple):
    """A window, and the share of events that are released with it by a rough count."""

    window: str
    released: float


def choose_window(person: Facts, time: Facts, attribute: Facts, *, z: int, window: str | None) -> Choice:
    """The given window, or the shortest of an hour to a year that releases 40% of the events by a rough count."""
    moment, usable = nanoseconds(time)
    who, what = value_codes(person.values)[usable], value_codes(attribute.values)[usable]
    tried = []
    for name in (window,) if window else _WINDOWS:
        length = duration_ns(name, name="window")
        tried.append(Choice(name, _released(who, what, moment[usable] // length, z)))
        if tried[-1].released >= _ENOUGH:
            return tried[-1]
    return max(tried, key=lambda choice: choice.released)


def _released(who: Integers, what: Integers, when: Integers, z: int) -> float:
    """The share of events whose value at least z people have in the same piece of time."""
    when = when - when.min()
    group = np.unique(when * (int(what.max()) + 1) + what, return_inverse=True)[1].astype(np.int64)
    width = int(who.max()) + 1
    people = np.bincount(np.unique(group * width + who) // width)
    return float((people[group] >= z).mean())


def order_settings(time: Facts) -> dict[str, str]:
    """`lateness` and `max_gap` for rows in this order: how late they come, and how far time jumps ahead."""
    moment, usable = nanoseconds(time)
    newest = np.maximum.accumulate(moment[usable])
    late = int((newest - moment[usable]).max())
    jump = int(np.diff(newest).max(initial=0))
    found = {"lateness": _longer(late, ("5min", "1h", *_WINDOWS[2:], "3650d", "36500d"))}
    gap = _longer(jump, ("24h", *_WINDOWS[3:], "3650d", "36500d"))
    return found if gap == "24h" else {**found, "max_gap": gap}


def waiting_times(time: Facts, arrivals: int) -> dict[str, str]:
    """`deadline` and `reuse` as durations: about as long as this many rows take to arrive, and a tenth of that."""
    moment, usable = nanoseconds(time)
    times = moment[usable]
    span = int(times.max() - times.min())
    wait = span * arrivals // max(1, len(times) - 1)
    return {"deadline": _longer(wait, _WAITS), "reuse": _longer(wait // 10, _WAITS)}


def _longer(nanoseconds: int, durations: tuple[str, ...]) -> str:
    return next((one for one in durations if duration_ns(one, name="") > nanoseconds), durations[-1])


def nanoseconds(time: Facts) -> tuple[Integers, Flags]:
    """Times since 1970, and which rows have one; raise PolicyError if none has."""
    column = time.values
    usable = is_there(column)
    if time.kind != "moment" or not usable.any():
        raise PolicyError(f"column {time.name!r}: has no usable time; write ISO 8601 or whole numbers since 1970")
    whole = column.cast(pa.timestamp("ns"), safe=False).cast(pa.int64())
    return np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False), np.int64), usable
