"""FADS: a tuple that must leave takes its k - 1 nearest with it."""

from __future__ import annotations

from typing import ClassVar

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.method import TupleMethod


class Fads(TupleMethod):
    """k-anonymity of a tuple stream within a deadline: an expiring tuple leaves with its k - 1 nearest.

    When a tuple's deadline comes, the k - 1 nearest held tuples of other people are found; all k leave with ranges
    and labels that cover them. If a cluster published not long ago covers the tuple at no greater loss, the tuple
    leaves as one more of it instead, and the others stay.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`: which columns say who, which are quasi-identifiers, which are sensitive.
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
    number: ClassVar[int] = t.FADS
