"""What the tuple methods share as seen from outside: their common parameters."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from shoal.crypto.keys import as_secret
from shoal.methods.settings import signature_of
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.methods.tuples.singles import TupleSingles
from shoal.schema import Schema


class TupleMethod(TupleSingles):
    """A tuple method with checked parameters."""

    settings_class: ClassVar[type[TupleSettings]] = TupleSettings

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__signature__ = signature_of(cls.settings_class, "schema")  # type: ignore[attr-defined]

    def __init__(self, schema: Schema, **given: Unpack[TupleParameters]) -> None:
        self._start_checked(schema, **given)

    def _start_checked(self, schema: Schema, *, key: Any = None, **given: Any) -> None:
        unknown = sorted(set(given) - set(self.settings_class.model_fields))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {', '.join(unknown)}")
        self._begin(self.settings_class.for_schema(schema, given), as_secret(key))
