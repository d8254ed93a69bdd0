"""`shoal run --engine spark` for sets, and sets of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import PolicyError
from shoal.methods.registry import METHODS
from shoal.methods.sets.certificate import Certificate
from shoal.methods.sets.data import Ints
from shoal.methods.sets.result import published_order
from shoal.observe.counts import SetSummary
from shoal.observe.observer import Observer
from shoal.pipeline.sets.run import SetRun
from shoal.policy import Policy
from shoal.spark.cluster.session import find_spark, limit_batches, readable_errors, start_session
from shoal.spark.recipe import Recipe, mark_of, shared_secret
from shoal.spark.sets.people import SparkPeople

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ITEMS: Final = "items"


def is_of_sets(method: Any) -> bool:
    """Whether a method publishes sets."""
    name = getattr(method, "method", None)
    return name in METHODS and METHODS[name].family == "sets"


def set_recipe(method: str) -> Recipe:
    """What executors need to read sets: the mark of the key."""
    return Recipe(method, {}, mark_of(shared_secret()))


def check_sampler(settings: Any) -> None:
    """Refuse the paper's Markov chain, and local recoding."""
    if getattr(settings, "recoding", "global") != "global":
        raise PolicyError(
            '[anonymize] recoding: "local" does not run on Spark: it compares the sets of everybody at every step, and '
            "they are divided among executors; leave it out, or run on one machine"
        )
    if getattr(settings, "sampler", "exact") != "exact":
        raise PolicyError(
            "[anonymize] sampler: a chain looks at the sets of everybody at every step, and they are divided among "
            "executors; leave it out, or run on one machine"
        )


def run_sets(
    policy: Policy, observer: Observer, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SetSummary:
    """Run a checked policy of sets: the sets stay on executors, the release is one file, written by the driver."""
    find_spark()
    recipe = set_recipe(policy.anonymize.METHOD)
    session = start_session(master, settings)
    with readable_errors():
        try:
            return SetRun(policy, observer, SparkPeople(session, recipe, policy)).execute()
        finally:
            session.catalog.clearCache()


@dataclass(frozen=True, slots=True)
class SparkSets:
    """Sets of a DataFrame, anonymized."""

    rows: DataFrame
    """One list of labels per person, in the order of the release."""
    certificate: Certificate
    blocks: Mapping[str, tuple[str, ...]]
    """The items of every block, by its label."""
    error: float
    """The information lost."""


def anonymize_sets(frame: DataFrame, method: Any) -> SparkSets:
    """Anonymize the sets of a DataFrame; the same rows and the same certificate as on one machine.

    Parameters
    ----------
    frame
        A column of lists, or a column of people and one of items (or lists of them), in any order of rows.
    method
        A :class:`shoal.KmAnonymity` or :class:`shoal.KmApriori`.
    """
    check_sampler(method.settings)
    recipe = set_recipe(method.method)
    with readable_errors():
        limit_batches(frame.sparkSession)
        people = SparkPeople(frame.sparkSession, recipe)
        people.read_frame(frame)
        found = people.decide(method, None)

        def shuffle(content: npt.NDArray[np.intp], seed: int) -> Ints:
            return content[published_order(seed, len(content))].astype(np.int64)

        shown = people.show(found.blocks, found.certificate.seed, shuffle)
        rows = shown.frame(pa.schema([(ITEMS, pa.list_(pa.string()))]))
        return SparkSets(rows, found.certificate, found.blocks, found.error)
