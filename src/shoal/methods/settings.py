"""Settings of a method: one class describes its parameters to Python, policy files, the docs and snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
)

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.setting_problems import Problem, problems_of
from shoal.schema import Categorical, Numeric, Schema, duration_ns

MOST: Final = 2**31 - 1
Given = Mapping[str, Any]
Checked = TypeVar("Checked")


class Settings(BaseModel):
    """Named parameters: unknown names are refused, types are taken as written, nothing changes later."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    @classmethod
    def cross_check(cls, given: Given) -> Iterable[Problem]:
        """Conflicts between parameters as written, so that one wrong value does not hide other problems."""
        return ()

    @classmethod
    def read(cls, given: Given, context: Given | None = None) -> tuple[Self | None, list[Problem]]:
        """The settings, or None if they cannot be used, and all problems."""
        problems = list(cls.cross_check(given))
        try:
            return cls.model_validate(dict(given), context=context), problems
        except ValidationError as error:
            return None, [*problems, *problems_of(cls, error)]

    def warnings(self) -> list[str]:
        """Sentences about settings that are allowed but rarely intended."""
        return []

    def to_header(self) -> dict[str, Any]:
        """The settings as plain values for a snapshot; :meth:`from_header` reads them."""
        return {name: _plain(getattr(self, name)) for name in type(self).model_fields}

    @classmethod
    def from_header(cls, header: Given) -> Self:
        """The settings that :meth:`to_header` wrote."""
        return cls.checked(header)

    @classmethod
    def checked(cls, given: Given) -> Self:
        """The settings; raises one PolicyError that lists everything that is wrong."""
        settings, problems = cls.read(given)
        return require(settings, problems)


def require(settings: Checked | None, problems: Iterable[Problem]) -> Checked:
    """The settings; raises PolicyError if there are problems."""
    found = [f"{'.'.join(map(str, steps))}: {text}" for steps, text in problems]
    if found or settings is None:
        raise PolicyError(found)
    return settings


def signature_of(settings: type[Settings], *first: str) -> Signature:
    """The signature of a method with these settings, for help(): `first` by position, the rest by name."""
    leading = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in first]
    named = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(field.default, "given", field.default))
        for name, field in settings.model_fields.items()
    ]
    return Signature([*leading, *named, Parameter("key", Parameter.KEYWORD_ONLY, default=None)])


class SchemaSettings(Settings):
    """Settings of a method that reads the columns of a :class:`shoal.Schema`."""

    _schema: Schema | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        """Keep the schema that the settings were checked with."""
        self._schema = (context or {}).get("schema")

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The columns and their roles (pydantic's deprecated method of this name is not needed)."""
        assert self._schema is not None, "a method checks its settings with its schema"
        return self._schema

    @classmethod
    def schema_problems(cls, schema: Schema, given: Given) -> Iterable[Problem]:
        """Conflicts with the schema."""
        return ()

    @classmethod
    def for_schema(cls, schema: object, given: Given) -> Self:
        """The settings for these columns; raises one PolicyError that lists everything that is wrong."""
        settings, problems = cls.read(given, {"schema": schema})
        if not isinstance(schema, Schema):
            return require(settings, [(("schema",), "must be a shoal.Schema"), *problems])
        return require(settings, [*problems, *cls.schema_problems(schema, given)])

    def to_header(self) -> dict[str, Any]:
        return {"schema": self.schema.describe(), **super().to_header()}

    @classmethod
    def from_header(cls, header: Given) -> Self:
        given = {name: value for name, value in header.items() if name != "schema"}
        return cls.for_schema(schema_from(header["schema"]), given)


def schema_from(described: Given) -> Schema:
    """The schema that its describe() described."""
    return Schema(**{**described, "quasi": [_role_from(dict(role)) for role in described["quasi"]]})


def _role_from(described: dict[str, Any]) -> Numeric | Categorical:
    if described.pop("kind") == "numeric":
        return Numeric(**described)
    tree = described.pop("hierarchy")
    return Categorical(**described, hierarchy=Hierarchy.from_dict(tree) if tree else None)


def _plain(value: Any) -> Any:
    if isinstance(value, Duration):
        return f"{int(value)}ns"
    if isinstance(value, Settings):
        return value.to_header()
    if isinstance(value, Hierarchy):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value


# ---- kinds of values, each with its own sentence for what is wrong


class Duration(int):
    """A duration in nanoseconds that remembers how it was written.

    >>> Duration("2min") == Duration(120) == 120_000_000_000
    True
    """

    given: str | int | float

    def __new__(cls, given: str | int | float) -> Self:
        made = super().__new__(cls, duration_ns(given, name="duration"))
        made.given = given
        return made

    @property
    def ns(self) -> int:
        """Its length."""
        return int(self)

    def __getnewargs__(self) -> tuple[Any]:
        return (self.given,)

    def __repr__(self) -> str:
        return f"Duration({self.given!r})"


def read_duration(value: Any) -> Duration:
    """A duration from text or seconds; raises ValueError."""
    try:
        return value if isinstance(value, Duration) else Duration(value)
    except PolicyError as error:
        raise ValueError(error.problems[0].removeprefix("duration: ")) from None


def require_positive(duration: Duration) -> Duration:
    """Raise ValueError for a duration of 0."""
    if duration <= 0:
        raise ValueError("must be longer than 0 seconds")
    return duration


def is_duration_text(value: object) -> bool:
    """Whether a value is text that reads as a duration."""
    try:
        return isinstance(value, str) and Duration(value) >= 0
    except PolicyError:
        return False


def is_whole(value: object) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def _span(value: Any) -> int:
    if isinstance(value, str | Duration):
        return read_duration(value)
    if not is_whole(value):
        raise ValueError('must be a whole number of arrivals, or a duration such as "30min"')
    if not 0 <= value <= MOST:
        raise ValueError(f"must be a number of arrivals from 0 to {MOST}")
    return int(value)


def _positive_span(span: int) -> int:
    if isinstance(span, Duration):
        return require_positive(span)
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


Count = Annotated[int, Field(ge=1, le=MOST)]
Crowd = Annotated[int, Field(ge=2, le=MOST)]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, AfterValidator(_filled)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
AnyDuration = Annotated[Duration, PlainValidator(read_duration)]
PositiveDuration = Annotated[Duration, PlainValidator(read_duration), AfterValidator(require_positive)]
Span = Annotated[int, PlainValidator(_span)]
"""A count of arrivals, or a duration."""
PositiveSpan = Annotated[int, PlainValidator(_span), AfterValidator(_positive_span)]
