"""Checks across tables. They read the policy as written, so that one wrong key does not hide other problems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from shoal.policy.fields import STANDARD, Location, key_path, locate
from shoal.policy.live.secrets import is_secret_name
from shoal.policy.method_base import KeyPath, MethodSection
from shoal.policy.methods import section_for
from shoal.policy.sanitize import sanitize_places
from shoal.schema import ROWS

Table = Mapping[str, Any]
_TIME: Final = "[stream] time"
_BOTH: Final = {"quasi", "[anonymize] sensitive"}
"""Roles that a column may have together: it is published generalized, and its values differ in every class."""
_PERSON: Final = "[stream] person"
_NO_PERSON: Final = "is missing; name the column of persons"
_OR_MAID: Final = ", or several in [sanitize] maid"
_KEYED_BY_COLUMN: Final = ("types", "nulls", "dates", "attribute", "quasi", "headers", "density_from_data")
_NO_SECRETS: Final = (("source", "key_column"), ("sink", "key"), ("source", "secrets"), ("sink", "secrets"))
"""Keys that name a column, or where a secret is."""
_CLIENTS: Final = (("source", "client"), ("sink", "client"))
"""Tables whose secrets are reported where they are checked."""
_KEYED_BY_LABEL: Final = ("tree", "reference", "density")


def part(table: Table, name: str) -> Table:
    """A section of the policy; empty if there is none."""
    found = table.get(name)
    return found if isinstance(found, Mapping) else {}


def without_secrets(table: Table) -> tuple[dict[str, Any], list[str]]:
    """The policy without keys that look like secrets, and a sentence for each."""
    problems: list[str] = []
    return _scrubbed(table, (), problems), problems


def _scrubbed(table: Table, steps: tuple[str, ...], problems: list[str]) -> dict[str, Any]:
    kept = {}
    for name, value in table.items():
        here = (*steps, name)
        is_column = bool(steps) and steps[-1] in _KEYED_BY_COLUMN
        if here in _NO_SECRETS or steps in _CLIENTS:
            kept[name] = value
        elif not is_column and is_secret_name(name):
            problems.append(
                f"{key_path(here[0], here[1:])}: secrets do not belong in a policy; "
                "put the secret in a file and name the file in the environment variable SHOAL_KEY_FILE"
            )
        elif isinstance(value, Mapping) and name not in _KEYED_BY_LABEL:
            kept[name] = _scrubbed(value, here, problems)
        else:
            kept[name] = value
    return kept


def column_problems(table: Table) -> list[str]:
    """Columns with two roles, and columns that the header does not have."""
    header = part(table, "source").get("header")
    known = header if isinstance(header, list) and part(table, "source").get("kind") == "csv" else None
    method = _method(table)
    first: dict[str, str] = {}
    found = []
    for key, name in _named_columns(table):
        if name in first and {_kind(key), _kind(first[name])} != _BOTH:
            found.append(f'{key}: the column "{name}" is already {first[name]}; a column has one role')
        is_row = key == _PERSON and name == ROWS
        if known is not None and name not in known and not is_row:
            found.append(f'{key}: the column "{name}" is not in [source] header; add it there')
        # Where time is not always published, it may also be a quasi-identifier or carried.
        if key != _TIME or method is None or method.PUBLISHES_TIME:
            first.setdefault(name, key)
    return found


def _kind(key: str) -> str:
    """Which role a key gives to a column."""
    return "quasi" if key.startswith("[anonymize.quasi]") else key


def stream_problems(table: Table) -> list[str]:
    """Problems of [stream], [source] and [sink] with the method."""
    method, stream = _method(table), table.get("stream")
    found: list[tuple[str, KeyPath, str]] = []
    if isinstance(stream, Mapping) and "person" not in stream and (method is None or method.NEEDS_PERSON):
        found.append(("stream", ("person",), _NO_PERSON + _OR_MAID * ("sanitize" in table)))
    if isinstance(stream, Mapping) and "time_unit" in stream and "time" not in stream:
        found.append(("stream", ("time_unit",), "is the unit of numbers in [stream] time; name that column too"))
    types = part(part(table, "source"), "types")
    if isinstance(stream, Mapping) and "time_unit" in stream and types.get(str(stream.get("time"))) == "timestamp":
        found.append(("source", ("types",), "the time is read by its time_unit; leave it out here"))
    if method is not None and isinstance(stream, Mapping):
        found += method.stream_problems(part(table, "anonymize"), stream)
        found += method.file_problems(part(table, "source"), part(table, "sink"), has_person="person" in stream)
    return [f"{key_path(section, steps)}: {text}" for section, steps, text in found]


def with_stream(table: Table) -> dict[str, Any]:
    """The policy with an empty [stream] if the method needs none."""
    method = _method(table)
    return {"stream": {}, **table} if method is not None and not method.NEEDS_PERSON else dict(table)


def _method(table: Table) -> type[MethodSection] | None:
    return section_for(part(table, "anonymize").get("method"))


def _named_columns(table: Table) -> Iterator[tuple[str, str]]:
    stream = part(table, "stream")
    carry = stream.get("carry")
    for key in ("person", "time"):
        if isinstance(stream.get(key), str):
            yield key_path("stream", (key,)), stream[key]
    # A name twice within carry is reported where carry is.
    for name in dict.fromkeys(carry if isinstance(carry, list) else []):
        if isinstance(name, str):
            yield "[stream] carry", name
    method = _method(table)
    if method is not None:
        for steps, name in method.named_columns(part(table, "anonymize")):
            yield key_path("anonymize", steps), name


def resume_problems(table: Table) -> list[str]:
    """Standard input and output cannot be resumed from a checkpoint."""
    if "checkpoint" not in table:
        return []
    method = _method(table)
    if method is not None and not method.IS_STREAM:
        return [
            f"[checkpoint]: {method.METHOD} decides all records at once, so there is nothing to resume; leave it out"
        ]
    found = []
    if STANDARD in _texts(part(table, "source").get("path")):
        found.append(
            "[checkpoint]: standard input cannot be read again after a crash; "
            "read from files, or leave [checkpoint] out"
        )
    if STANDARD in _texts(part(table, "sink").get("path")):
        found.append(
            "[checkpoint]: rows written to standard output cannot be taken back after a crash, so rows could be "
            "published twice; write to a file, or leave [checkpoint] out"
        )
    return found


def place_problems(table: Table, *, folder: Path, file: Path | None) -> list[str]:
    """Files and folders with two uses."""
    inputs = [Use("[source] path", place) for place in _places(part(table, "source"), folder)]
    inputs += [Use("[source] schema_file", place) for place in _places(part(table, "source"), folder, "schema_file")]
    inputs += _method_uses(table, folder)
    if file is not None:
        inputs.append(Use("the policy", Location(str(file), file)))
    sinks = [Use("[sink] path", place) for place in _places(part(table, "sink"), folder)[:1]]
    private = [
        Use(f"[{name}] path", place)
        for name in ("trace", "dead_letters", "checkpoint")
        for place in _places(part(table, name), folder)[:1]
    ]
    if sinks and "path" not in part(table, "dead_letters"):
        place = default_dead_letters(sinks[0].place)
        private.append(Use(f"[dead_letters] path (by default {place.text})", place))
    private += [Use("[sink] schema_file", place) for place in _places(part(table, "sink"), folder, "schema_file")]
    private += [Use(key, place) for key, place in sanitize_places(table, folder)]
    method = _method(table)
    for ending in method.next_to_sink() if sinks and method and not sinks[0].place.is_standard else ():
        place = next_to(sinks[0].place, ending)
        private.append(Use(f"[sink] path ({place.text} is written next to it)", place))
    return overlap_problems(inputs, sinks[0] if sinks else None, private)


def default_dead_letters(output: Location | None) -> Location:
    """Next to the output; in the current folder if the output is not a file."""
    if output is None or output.is_standard:
        return Location("shoal.dead.jsonl", Path.cwd() / "shoal.dead.jsonl")
    return next_to(output, ".dead.jsonl")


def next_to(sink: Location, ending: str) -> Location:
    """The file next to the sink whose name ends so."""
    return Location(sink.text.rstrip("/") + ending, sink.path.with_name(sink.path.name + ending))


def _method_uses(table: Table, folder: Path) -> list[Use]:
    """Hierarchies and other files that the method reads."""
    anonymize = part(table, "anonymize")
    method = _method(table)
    if method is None:
        return []
    files = {
        (*steps, "path"): described.get("path")
        for steps, described in method.hierarchy_tables(anonymize).items()
        if isinstance(described, Mapping)
    }
    files |= method.input_files(anonymize)
    return [
        Use(key_path("anonymize", steps), locate(text, folder))
        for steps, path in files.items()
        for text in _texts(path)
    ]


def _places(section: Table, folder: Path, key: str = "path") -> list[Location]:
    return [locate(text, folder) for text in _texts(section.get(key))]


def _texts(value: object) -> list[str]:
    entries = value if isinstance(value, list) else [value]
    return [text for text in entries if isinstance(text, str) and text.strip() and "\0" not in text]


# ---- places that must not be the same


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
                f"{second.key}: is in the folder of {first.key}, so it would be published with the rows; "
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
