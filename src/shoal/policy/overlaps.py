"""Places of a policy that must not be the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations

from shoal.policy.fields import Location


@dataclass(frozen=True, slots=True)
class Use:
    """A place and the key that names it."""

    key: str
    place: Location


def overlap_problems(inputs: list[Use], sink: Use | None, private: list[Use]) -> list[str]:
    """Outputs that would overwrite or feed an input or each other, and private files among published ones."""
    outputs = [use for use in (sink, *private) if use and not use.place.is_standard]
    inputs = [use for use in inputs if not use.place.is_standard]
    found = list(_input_problems(inputs, outputs))
    for first, second in combinations(outputs, 2):
        if _same(first.place, second.place):
            found.append(f"{second.key}: is the same place as {first.key}; choose another")
        elif first is sink and first.place.is_folder and _inside(second.place, first.place):
            found.append(
                f"{second.key}: lies in the folder of {first.key}, so it would be published with the rows; "
                "choose another place"
            )
    return found


def _input_problems(inputs: list[Use], outputs: list[Use]) -> Iterator[str]:
    for output in outputs:
        for source in inputs:
            if _same(output.place, source.place):
                yield f"{output.key}: is the same place as {source.key}; write somewhere else"
            elif _reads(source.place, output.place):
                yield (
                    f"{output.key}: is among the files that {source.key} reads, "
                    "so the output would become input; write somewhere else"
                )


def _real(place: Location) -> str:
    return os.path.realpath(place.path)


def _same(first: Location, second: Location) -> bool:
    if _real(first) == _real(second):
        return True
    try:
        return os.path.samefile(first.path, second.path)  # hard links, and file systems that ignore case
    except OSError:
        return False


def _inside(place: Location, folder: Location) -> bool:
    return _real(place).startswith(_real(folder).rstrip(os.sep) + os.sep)


def _reads(source: Location, output: Location) -> bool:
    if source.is_pattern:
        names, pattern = _real(output).split(os.sep), _real(source).split(os.sep)
        return _matches(names, pattern) or (output.is_folder and _matches(names, pattern[:-1]))
    return source.is_folder and _inside(output, source)


def _matches(names: list[str], pattern: list[str]) -> bool:
    if "**" in pattern:
        return fnmatchcase(os.sep.join(names), os.sep.join(pattern).replace("**" + os.sep, "*"))
    return len(names) == len(pattern) and all(map(fnmatchcase, names, pattern))
