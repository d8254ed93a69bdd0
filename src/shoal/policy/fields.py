"""Kinds of values a policy holds, each with its own sentence for what is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationInfo

from shoal.errors import PolicyError
from shoal.schema import duration_ns

STANDARD = "-"


class Section(BaseModel):
    """A table of the policy: unknown keys are refused, types are taken as written, nothing changes later."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    @classmethod
    def cross_check(cls, table: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
        """What is wrong between keys of the table as written, as (path of the key, sentence)."""
        return []

    def plain_fields(self) -> dict[str, Any]:
        """What the table says, whichever way it is written: what counts for the fingerprint of a policy."""
        return {name: getattr(self, name) for name in type(self).model_fields}


@dataclass(frozen=True, slots=True)
class Location:
    """A file, folder or pattern: `text` as the policy has it, `path` from the policy's folder."""

    text: str
    path: Path

    @property
    def is_standard(self) -> bool:
        """Whether it stands for standard input or output."""
        return self.text == STANDARD

    @property
    def is_folder(self) -> bool:
        """Whether it is meant as a folder, or is one already."""
        return not self.is_standard and (self.text.endswith(("/", os.sep)) or self.path.is_dir())

    @property
    def is_pattern(self) -> bool:
        """Whether it holds wildcards and is not the name of a file that exists."""
        return has_magic(self.text) and not self.path.exists()


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: as the policy gives it, and in nanoseconds."""

    given: str | int | float
    ns: int


def locate(text: object, folder: Path) -> Location:
    """The place a text means, seen from a folder."""
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
        raise ValueError("must be a path; standard input and output keep nothing")
    return place


def _locations(value: object, info: ValidationInfo) -> tuple[Location, ...]:
    texts = value if isinstance(value, list | tuple) else [value]
    if not texts:
        raise ValueError("names no file; name at least one")
    places = tuple(_location(text, info) for text in texts)
    if len(set(places)) < len(places):
        raise ValueError("names a file twice; name it once")
    return places


def _duration(value: object) -> Duration:
    try:
        nanoseconds = duration_ns(value, name="duration")
    except PolicyError as error:
        raise ValueError(error.problems[0].removeprefix("duration: ")) from None
    assert isinstance(value, str | int | float)
    return Duration(value, nanoseconds)


def is_duration_text(value: object) -> bool:
    """Whether a value is text that reads as a duration."""
    try:
        return isinstance(value, str) and duration_ns(value, name="duration") >= 0
    except PolicyError:
        return False


def _positive(duration: Duration) -> Duration:
    if duration.ns <= 0:
        raise ValueError("must be longer than 0 seconds")
    return duration


def _interval(value: object) -> Duration | int:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise ValueError('must be at least 1 row, or a duration such as "30s"')
        return value
    if not isinstance(value, str):
        raise ValueError('must be a duration such as "30s" or a whole number of rows')
    return _positive(_duration(value))


def _span(value: object) -> Duration | int:
    if isinstance(value, str):
        return _duration(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError('must be a whole number of arrivals, or a duration such as "30min"')
    if not 0 <= value < 2**31:
        raise ValueError("must be a number of arrivals from 0 to 2147483647")
    return value


def _longer_than_nothing(span: Duration | int) -> Duration | int:
    if isinstance(span, Duration):
        return _positive(span)
    if span < 1:
        raise ValueError("must be at least 1 arrival")
    return span


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _listed(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list of texts, such as ["a", "b"]')
    return tuple(value)


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names something twice; name it once")
    return names


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    if any(word != word.strip() for word in words):
        raise ValueError("has spaces around a word; leave them out, they do not count")
    return words


def _delimiter(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in '"\r\n\0':
        raise ValueError("must be one ASCII character that is neither a quote nor the end of a line")
    return text


def _separator(text: str) -> str:
    if not text or any(character in text for character in '"\r\n\0'):
        raise ValueError("must be text of at least one character, without quotes and ends of lines")
    return text


Name = Annotated[str, AfterValidator(_filled)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
Words = Annotated[Names, AfterValidator(_bare)]
Delimiter = Annotated[str, AfterValidator(_delimiter)]
Separator = Annotated[str, AfterValidator(_separator)]
AnyDuration = Annotated[Duration, PlainValidator(_duration)]
PositiveDuration = Annotated[Duration, PlainValidator(_duration), AfterValidator(_positive)]
Interval = Annotated[Duration | int, PlainValidator(_interval)]
Span = Annotated[Duration | int, PlainValidator(_span)]
PositiveSpan = Annotated[Duration | int, PlainValidator(_span), AfterValidator(_longer_than_nothing)]
Place = Annotated[Location, PlainValidator(_location)]
KeptPlace = Annotated[Location, PlainValidator(_kept_location)]
FilePlace = Annotated[Location, PlainValidator(_file_location)]
Places = Annotated[tuple[Location, ...], PlainValidator(_locations)]
