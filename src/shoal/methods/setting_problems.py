"""What is wrong with settings, in shoal's own sentences: pydantic finds the errors, this module words them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from shoal.methods.renamed_keys import renamed, renamed_word

Step = str | int
Problem = tuple[tuple[Step, ...], str]
"""The path of a key, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a problem is: the model that owns the key, its field if it has one, and the path as written."""

    owner: type[BaseModel]
    field: FieldInfo | None
    steps: tuple[Step, ...]


def problems_of(model: type[BaseModel], error: ValidationError) -> list[Problem]:
    """One sentence for each problem, with the path of its key."""
    found = []
    for item in error.errors(include_url=False):
        write = _SENTENCES.get(item["type"], _anything_else)
        found.append(write(find_spot(model, item["loc"]), {**item.get("ctx", {}), "input": item["input"]}))
    return found


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    if not isinstance(word, str) or not word:
        return None
    known = list(known)
    begun = [name for name in known if len(word) > 2 and name.startswith(word.lower())]
    close = begun or get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return close[0] if close else None


def one_of(word: object, known: Iterable[str]) -> str:
    """``must be one of "a", "b"``, with the nearest if one is near."""
    known = list(known)
    near = nearest(word, known)
    choice = ", ".join(f'"{value}"' for value in known)
    must = f"must be {choice}" if len(known) == 1 else f"must be one of {choice}"
    return must + (f'; did you mean "{near}"?' if near and near != word else "")


def unknown(word: str, known: Iterable[str], *, what: str = "key") -> str:
    """The sentence about an unknown key."""
    near = nearest(word, known)
    return f"unknown {what}; " + (f'did you mean "{near}"?' if near else f"known are {', '.join(known)}")


def find_spot(model: type[BaseModel], loc: tuple[Step, ...]) -> Spot:
    """Follow pydantic's location through the models, without the tags it adds for unions."""
    owner, steps, rest = model, [loc[0]] if loc else [], list(loc[1:])
    field = _field(owner, steps)
    while rest and field is not None and (models := _models_in(field.annotation)):
        if get_origin(field.annotation) in (dict, Mapping):
            steps.append(rest.pop(0))
        if len(models) > 1 and rest:
            tag = rest.pop(0)
            models = [choice for choice in models if _tag(choice) == tag]
        if not rest:
            break
        owner = models[0]
        steps.append(rest.pop(0))
        field = _field(owner, steps)
    return Spot(owner, field, (*steps, *rest))


def _field(owner: type[BaseModel], steps: list[Step]) -> FieldInfo | None:
    return owner.model_fields.get(str(steps[-1])) if steps else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _tag(model: type[BaseModel]) -> str:
    return str(get_args(model.model_fields["kind"].annotation)[0])


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if get_origin(annotation) in (Union, UnionType, dict) or hasattr(annotation, "__metadata__"):
        return [value for part in get_args(annotation) for value in _literals(part)]
    return []


# ---- one function for each kind of error

Writer = Callable[[Spot, Mapping[str, Any]], Problem]


def _fixed(text: str) -> Writer:
    return lambda spot, _: (spot.steps, text)


def _missing(spot: Spot, _: Mapping[str, Any]) -> Problem:
    hint = spot.field.description if spot.field else None
    return spot.steps, f"is missing; {hint or 'write it down'}"


def _unknown_key(spot: Spot, context: Mapping[str, Any]) -> Problem:
    key, known = str(spot.steps[-1]), spot.owner.model_fields
    return spot.steps, renamed(key, context["input"], known) or unknown(key, known)


def _bad_choice(spot: Spot, context: Mapping[str, Any]) -> Problem:
    word, known = context["input"], _literals(spot.field.annotation) if spot.field else []
    return spot.steps, renamed_word(str(spot.steps[-1]), word) or one_of(word, known)


def _bad_kind(spot: Spot, context: Mapping[str, Any]) -> Problem:
    known = [_tag(model) for model in _models_in(spot.field.annotation)] if spot.field else []
    return (*spot.steps, "kind"), one_of(context.get("tag"), known)


def _own_words(spot: Spot, context: Mapping[str, Any]) -> Problem:
    return spot.steps, str(context["error"])


def _anything_else(spot: Spot, _: Mapping[str, Any]) -> Problem:
    return spot.steps, "has a value that cannot be used; see the reference of the policy file"


_SENTENCES: Final[dict[str, Writer]] = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "literal_error": _bad_choice,
    "union_tag_invalid": _bad_kind,
    "union_tag_not_found": _bad_kind,
    "value_error": _own_words,
    "string_type": _fixed("must be text, in quotes"),
    "int_type": _fixed("must be a whole number"),
    "float_type": _fixed("must be a number"),
    "finite_number": _fixed("must be a number that is not infinite"),
    "bool_type": _fixed("must be true or false"),
    "dict_type": _fixed("must be a table"),
    "model_type": _fixed("must be a table"),
    "model_attributes_type": _fixed("must be a table"),
    "greater_than_equal": lambda spot, context: (spot.steps, f"must be at least {context['ge']}"),
    "greater_than": lambda spot, context: (spot.steps, f"must be above {context['gt']:g}"),
    "less_than_equal": lambda spot, context: (spot.steps, f"must be at most {context['le']}"),
}
