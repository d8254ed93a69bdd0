"""What is wrong with a table, in our own words: pydantic finds it, this module says it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

Step = str | int


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a problem is: the model that owns the key, its field if it has one, and the path as written."""

    owner: type[BaseModel]
    field: FieldInfo | None
    steps: tuple[Step, ...]


def sentences(section: str, model: type[BaseModel], error: ValidationError) -> list[str]:
    """One sentence a problem, each starting with the path of its key."""
    found = []
    for item in error.errors(include_url=False):
        spot = find_spot(model, item["loc"])
        write = _SENTENCES.get(item["type"], _anything_else)
        steps, text = write(spot, {**item.get("ctx", {}), "input": item["input"]})
        found.append(f"{key_path(section, steps)}: {text}")
    return found


def key_path(section: str, steps: Iterable[Step]) -> str:
    """``[anonymize.attribute.site] z`` from ("anonymize", ("attribute", "site", "z"))."""
    names = [_bare(step) for step in steps if isinstance(step, str)]
    entry = "".join(f", entry {step + 1}" for step in steps if isinstance(step, int))
    if not names:
        return f"[{section}]{entry}"
    return f"[{'.'.join([section, *names[:-1]])}] {names[-1]}{entry}"


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
    """What to say of a key nobody knows."""
    near = nearest(word, known)
    return f"unknown {what}; " + (f'did you mean "{near}"?' if near else f"known are {', '.join(known)}")


def find_spot(model: type[BaseModel], loc: tuple[Step, ...]) -> Spot:
    """Follow pydantic's location through the models, leaving out the tags it adds for unions."""
    owner, steps, rest = model, [loc[0]] if loc else [], list(loc[1:])
    field = _field(owner, steps)
    while rest and field is not None and (models := _models_in(field.annotation)):
        if get_origin(field.annotation) is dict:
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


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


# ---- one function a kind of problem; each returns the path of the key and what to say of it

Written = tuple[tuple[Step, ...], str]
Writer = Callable[[Spot, Mapping[str, Any]], Written]


def _fixed(text: str) -> Writer:
    return lambda spot, _: (spot.steps, text)


def _missing(spot: Spot, _: Mapping[str, Any]) -> Written:
    hint = spot.field.description if spot.field else None
    return spot.steps, f"is missing; {hint or 'write it down'}"


def _unknown_key(spot: Spot, _: Mapping[str, Any]) -> Written:
    return spot.steps, unknown(str(spot.steps[-1]), spot.owner.model_fields)


def _bad_choice(spot: Spot, context: Mapping[str, Any]) -> Written:
    return spot.steps, one_of(context["input"], _literals(spot.field.annotation) if spot.field else [])


def _bad_kind(spot: Spot, context: Mapping[str, Any]) -> Written:
    known = [_tag(model) for model in _models_in(spot.field.annotation)] if spot.field else []
    return (*spot.steps, "kind"), one_of(context.get("tag"), known)


def _own_words(spot: Spot, context: Mapping[str, Any]) -> Written:
    return spot.steps, str(context["error"])


def _anything_else(spot: Spot, _: Mapping[str, Any]) -> Written:
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
