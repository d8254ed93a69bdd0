"""FADS: an expiring tuple is published together with its k - 1 nearest."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.fads import run_fads
from shoal.methods.base import StreamMethod
from shoal.methods.tuples.decider.sequential import SequentialDecider
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Schema


class Fads(StreamMethod):
    """k-anonymity of a tuple stream within a deadline: an expiring tuple is published with its k - 1 nearest.

    When a tuple's deadline comes, the k - 1 nearest pending tuples of other people are found; all k are published with
    ranges and labels that cover them. If a recently published cluster covers the tuple at no greater loss, the tuple is
    published as one more row of that cluster instead, and the others stay pending.

    Do not use it where an attacker knows when tuples arrived, unless ``groups=True``; with missing values,
    :class:`shoal.LeastLoss` loses less.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`: which column identifies people, which are quasi-identifiers, which are sensitive.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    Examples
    --------
    >>> from shoal.schema import Numeric, Schema
    >>> fads = Fads(Schema(person="id", quasi=[Numeric("age", low=0, high=100)]), k=2, deadline=2, reuse=0)
    >>> [fads.push({"id": who, "age": age}) for who, age in (("ann", 31.0), ("bob", 60.0), ("cat", 33.0))][-1]
    [{'age': {'lo': 31.0, 'hi': 33.0}}, {'age': {'lo': 31.0, 'hi': 33.0}}]

    References
    ----------
    Guo, Zhang: Fast clustering-based anonymization approaches with time constraints for data streams.
    Knowledge-Based Systems 46 (2013); as used in Mohammadian, Noferesti, Jalili: FAST (2014).

    Notes
    -----
    The deadline is kept by age, never by the size of a buffer alone; k counts people; missing values are allowed.
    """

    method: ClassVar[str] = "fads"
    kernel: ClassVar[Any] = staticmethod(run_fads)
    settings_class: ClassVar[type[TupleSettings]] = TupleSettings

    def __init__(self, schema: Schema, **given: Unpack[TupleParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: TupleSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD] = t.FADS
        reader = TupleReader(settings, secret)
        decider = SequentialDecider(reader.shape, reader.codes, plan, ratios, run=run_fads)
        return TupleEngine(self.method, settings, secret, reader, decider)
