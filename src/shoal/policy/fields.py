"""Types of values in a policy, each with its own error sentence."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, PlainValidator, ValidationInfo, WrapValidator

from shoal.decode.header_names import SHORT
from shoal.methods.setting_problems import Step
from shoal.methods.settings import Duration, Names, Settings, is_whole, read_duration, require_positive

STANDARD = "-"


class Section(Settings):
    """A table of the policy."""

    def plain_fields(self) -> dict[str, Any]:
        """The fields for the fingerprint of a policy, independent of how it is written."""
        return {name: getattr(self, name) for name in type(self).model_fields}


def key_path(section: str, steps: Iterable[Step]) -> str:
    """``[anonymize.attribute.site] z`` from ("anonymize", ("attribute", "site", "z"))."""
    names = [_key(step) for step in steps if isinstance(step, str)]
    entry = "".join(f", entry {step + 1}" for step in steps if isinstance(step, int))
    if not names:
        return f"[{section}]{entry}"
    return f"[{'.'.join([section, *names[:-1]])}] {names[-1]}{entry}"


def _key(name: str) -> str:
    """A key in TOML syntax."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Location:
    """A file, folder or pattern: `text` as in the policy, `path` relative to the policy's folder."""

    text: str
    path: Path

    @property
    def is_standard(self) -> bool:
        """Whether it is standard input or output."""
        return self.text == STANDARD

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, by its name or because it exists."""
        return not self.is_standard and (self.text.endswith(("/", os.sep)) or self.path.is_dir())

    @property
    def working(self) -> Path:
        """Where it is written before it is finished."""
        return self.path if self.is_folder else self.path.with_name(f"{self.path.name}.partial")

    @property
    def is_pattern(self) -> bool:
        """Whether it contains wildcards and is not the name of an existing file."""
        return has_magic(self.text) and not self.path.exists()


def locate(text: object, folder: Path) -> Location:
    """The location of a path relative to a folder."""
    if not isinstance(text, str):
        raise ValueError("must be a path as text")
    if not text.strip() or "\0" in text:
        raise ValueError('must not be empty; write a path, or "-" for standard input or output')
    return Location(text, Path(text) if text == STANDARD else folder / text)


def _location(value: object, info: ValidationInfo) -> Location:
    return locate(value, (info.context or {}).get("folder", Path()))


def _file_location(value: object, info: ValidationInfo) -> Location:
    place = _location(value, info)
    if place.is_standard or place.text.endswith("/"):
        raise ValueError("must be a file")
    return place


def _kept_location(value: object, info: ValidationInfo) -> Location:
    place = _location(value, info)
    if place.is_standard:
        raise ValueError("must be a path; standard input and output store nothing")
    return place


def _locations(value: object, info: ValidationInfo) -> tuple[Location, ...]:
    texts = value if isinstance(value, list | tuple) else [value]
    if not texts:
        raise ValueError("names no file; name at least one")
    places = tuple(_location(text, info) for text in texts)
    if len(set(places)) < len(places):
        raise ValueError("names a file twice; name it once")
    return places


def _interval(value: Any) -> int:
    if isinstance(value, str | Duration):
        return require_positive(read_duration(value))
    if not is_whole(value):
        raise ValueError('must be a duration such as "30s" or a whole number of rows')
    if value < 1:
        raise ValueError('must be at least 1 row, or a duration such as "30s"')
    return int(value)


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    if any(word != word.strip() for word in words):
        raise ValueError("has spaces around a word; leave them out, they are ignored")
    return words


def _by_column(value: Any, read: Any) -> Any:
    if not isinstance(value, Mapping):
        return read(value)
    if not all(isinstance(name, str) and name.strip() for name in value):
        raise ValueError('must be a list of words, or a table such as {column = ["?"]}')
    return {name: read(words) for name, words in value.items()}


def _delimiter(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in '"\r\n\0':
        raise ValueError("must be one ASCII character that is neither a quote nor the end of a line")
    return text


def _header(value: object) -> tuple[str, ...] | Literal["short"]:
    if value == SHORT:
        return SHORT
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name.strip() for name in value):
        raise ValueError('must be a list of names, such as ["a", "b"], or "short"')
    if len(set(value)) < len(value):
        raise ValueError("names something twice; name it once")
    return tuple(value)


def _separator(text: str) -> str:
    if not text or any(character in text for character in '"\r\n\0'):
        raise ValueError("must be text of at least one character, without quotes and ends of lines")
    return text


Words = Annotated[Names, AfterValidator(_bare)]
WordsOrColumns = Annotated[Words, WrapValidator(_by_column)]
"""Words for all columns, or those of each column by its name."""
Delimiter = Annotated[str, AfterValidator(_delimiter)]
Separator = Annotated[str, AfterValidator(_separator)]
Header = Annotated[tuple[str, ...] | Literal["short"], PlainValidator(_header)]
Interval = Annotated[int, PlainValidator(_interval)]
Place = Annotated[Location, PlainValidator(_location)]
KeptPlace = Annotated[Location, PlainValidator(_kept_location)]
FilePlace = Annotated[Location, PlainValidator(_file_location)]
Places = Annotated[tuple[Location, ...], PlainValidator(_locations)]
