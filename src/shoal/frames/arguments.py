"""Checks what `shoal.anonymize` is called with: every wrong argument gets a sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import cache
from os import PathLike
from typing import Any, Final

import numpy as np

from shoal.errors import PolicyError
from shoal.frames.frame_input import FrameInput
from shoal.frames.frame_output import INTERVALS
from shoal.inspection.columns.column_names import printable
from shoal.inspection.wishes import Wishes
from shoal.methods.registry import METHODS
from shoal.methods.setting_problems import one_of
from shoal.policy.methods import section_for
from shoal.schema import ROWS

_ONE: Final = ("person", "time", "attribute", "items")
_SEVERAL: Final = ("quasi", "sensitive", "carry")
_LEAST: Final = {"k": 2, "z": 1, "m": 1}
_OTHERS: Final = ("window", "method", "policy", "intervals", "key")
_MOST_SHOWN: Final = 10
_NEAR: Final = 0.6
"""How similar a name must be to be suggested, from 0 to 1."""
_ALIKE: Final = 0.15
"""How much less similar than the most similar name it may be."""


class Arguments:
    """The keywords of a call; `columns` are those that name columns, as they were given."""

    def __init__(self, given: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self._given, self._settings = given, settings
        problems = [problem for name in (*_LEAST, *_OTHERS) if (problem := _problem(name, given[name]))]
        self.columns: dict[str, list[Any]] = {}
        for name in (*_ONE, *_SEVERAL):
            found = _labels(name, given[name])
            if isinstance(found, str):
                problems.append(found)
            elif found is not None:
                self.columns[name] = found
        if problems := [*problems, *_unknown_settings(settings)]:
            raise PolicyError(problems)

    def wishes(self, read: FrameInput) -> Wishes:
        """What is stated about the columns of a frame; raise PolicyError with suggestions if one does not exist."""
        found: dict[str, Any] = {}
        problems = []
        for role, labels in self.columns.items():
            by_label = [(label, _name(read, label)) for label in labels]
            problems += [_missing(read, role, label) for label, name in by_label
                         if name is None and not (role == "person" and label == ROWS)]  # fmt: skip
            names = [ROWS if name is None else name for _, name in by_label]
            twice = sorted({name for name in names if names.count(name) > 1})
            problems += [f"{role}: names {name!r} twice; name it once" for name in twice if name in read.labels]
            if isinstance(self._given[role], set | frozenset):
                names.sort(key=[*read.table.column_names, ROWS].index)
            found[role] = names[0] if role in _ONE else names
        if problems:
            raise PolicyError(problems)
        found |= {name: _plain(self._given[name]) for name in (*_LEAST, "window", "method")}
        settings = {name: _plain(value) for name, value in self._settings.items()}
        return Wishes(**found, settings=settings, index=read.index)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python, which alone are checked and written into policies."""
    return value.item() if isinstance(value, np.generic) else value


def _problem(name: str, value: Any) -> str | None:
    """What is wrong with an argument that names no column; None if nothing is."""
    if value is None:
        return None
    if name in _LEAST:
        return _number_problem(name, value)
    if name == "intervals":
        return None if value in INTERVALS else f"intervals: {one_of(value, INTERVALS)}"
    if name == "policy" and not isinstance(value, str | PathLike | Mapping):
        return f"policy: is {_shown(value)}; give the path of a policy, or its content as a dict"
    if name == "window" and not isinstance(value, str):
        return f'window: is {_shown(value)}; give a duration as text, such as "1h"'
    if name == "method" and section_for(value) is None:
        return f"method: {one_of(value, METHODS)}"
    return None


def _number_problem(name: str, value: Any) -> str | None:
    least, example = _LEAST[name], 5 if name != "m" else 2
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return f"{name}: is {_shown(value)}; give a whole number of at least {least}, such as {name}={example}"
    if value < least:
        return f"{name}: is {value}; give at least {least}, such as {name}={example}, or leave it out"
    return None


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | int | float | np.number):
        return repr(value.item() if isinstance(value, np.number) else value)
    return f"of type {type(value).__name__}"


# ---- columns


def _labels(role: str, given: Any) -> list[Any] | str | None:
    """The names that are given for a role; a sentence if they are none."""
    if given is None:
        return None
    if _is_label(given):
        return [given]
    if role in _ONE:
        return f"{role}: is {_shown(given)}; give the name of one column"
    if isinstance(given, Mapping):
        return f"{role}: is a dict; give names of columns only, and rules for each in a policy (policy=)"
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        return f"{role}: is {_shown(given)}; give a list of names of columns"
    labels = list(given)
    if not labels:
        return f"{role}: names no column; name at least one, or leave it out"
    wrong = [one for one in labels if not _is_label(one)]
    return f"{role}: has a name that is {_shown(wrong[0])}; give names of columns" if wrong else labels


def _is_label(one: Any) -> bool:
    return isinstance(one, str | int | np.integer) and not isinstance(one, bool)


def _name(read: FrameInput, label: Any) -> str | None:
    """The column of a label; None if there is none."""
    return next((name for name, own in read.labels.items() if label in (own, name)), None)


def _missing(read: FrameInput, role: str, label: Any) -> str:
    known = [name for name in read.labels if name]
    shown = ", ".join(repr(printable(name)) for name in known[:_MOST_SHOWN])
    shown += f" and {len(known) - _MOST_SHOWN} more" if len(known) > _MOST_SHOWN else ""
    if not isinstance(label, str):
        return f"{role}: no column is named {label}; columns are named, not counted: {shown}"
    near = _near(label, known)
    hint = f"did you mean {near}?" if near else f"known are {shown}"
    return f"{role}: column {printable(label)!r} does not exist; {hint}"


def _near(word: str, known: Iterable[str]) -> str:
    """Up to three names that were probably meant, the nearest first."""
    score = {name: SequenceMatcher(None, word.casefold(), name.casefold()).ratio() for name in known}
    best = max(score.values(), default=0.0)
    least = max(_NEAR, best - _ALIKE)
    close = sorted((name for name in score if score[name] >= least), key=lambda name: -score[name])[:3]
    *first, last = [repr(printable(name)) for name in close] or [""]
    return f"{', '.join(first)} or {last}" if first else last


# ---- settings


@cache
def _known_settings() -> frozenset[str]:
    sections = [section_for(method) for method in METHODS]
    return frozenset(name for section in sections if section is not None for name in section.model_fields)


def _unknown_settings(settings: Mapping[str, Any]) -> list[str]:
    if not settings:  # to know those of all methods loads all methods
        return []
    keywords = (*_ONE, *_SEVERAL, *_LEAST, *_OTHERS)
    known = [*keywords, *sorted(_known_settings() - {*keywords})]
    found = []
    for name in settings:
        if name not in known:
            near = _near(name, known)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(keywords)} and the method's settings"
            found.append(f"{name}: unknown argument; {hint}")
    return found
