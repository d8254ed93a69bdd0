"""`shoal run --engine spark` for sets, and sets of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.registry import METHODS
from shoal.methods.sets.certificate import Certificate
from shoal.methods.sets.data import Ints
from shoal.methods.sets.result import published_order
from shoal.observe.counts import SetSummary
from shoal.observe.observer import Observer
from shoal.pipeline.sets.run import SetRun, free_root
from shoal.policy import Policy, load_policy
from shoal.spark.cluster.session import find_spark, limit_batches, readable_errors, start_session
from shoal.spark.recipe import Recipe, mark_of, shared_secret
from shoal.spark.records.frames import quoted
from shoal.spark.records.numbering import require_columns
from shoal.spark.sets.people import SparkPeople

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ITEMS: Final = "items"


def is_of_sets(policy_or_method: Any) -> bool:
    """Whether a method, or that of a loaded policy, publishes sets."""
    name = getattr(policy_or_method, "method", None)
    if isinstance(policy_or_method, Policy):
        name = policy_or_method.anonymize.METHOD
    return name in METHODS and METHODS[name].family == "sets"


def set_recipe(method: str) -> Recipe:
    """What executors need to read sets: the mark of the key."""
    return Recipe(method, {}, mark_of(shared_secret()))


def check_sampler(settings: Any) -> None:
    """Refuse the paper's Markov chain, local recoding, and leaving items out."""
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
    if getattr(settings, "drop_rare", None) is not None:
        raise PolicyError("[anonymize] drop_rare: is not counted across executors; leave it out, or run on one machine")


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


def anonymize_sets(frame: DataFrame, policy_or_method: Any) -> SparkSets:
    """Anonymize the sets of a DataFrame; the same rows and the same certificate as on one machine.

    Parameters
    ----------
    frame
        A column of lists, or a column of people and one of items (or lists of them), in any order of rows. With a
        policy it may have other columns.
    policy_or_method
        A :class:`shoal.KmAnonymity` or :class:`shoal.KmApriori`, or the path of a policy file, of which ``[stream]``
        and ``[anonymize]`` count.
    """
    given: Any = load_policy(policy_or_method) if isinstance(policy_or_method, str | PathLike) else policy_or_method
    policy: Policy | None = given if isinstance(given, Policy) else None
    section: Any = given.settings if policy is None else policy.anonymize
    check_sampler(section)
    recipe = set_recipe(given.method if policy is None else section.METHOD)
    with readable_errors():
        limit_batches(frame.sparkSession)
        people = SparkPeople(frame.sparkSession, recipe)
        facts = people.read_frame(frame if policy is None else _columns(frame, policy))
        method = given if policy is None else _method_of(policy, facts.labels)
        found = people.decide(method, None)

        def shuffle(content: npt.NDArray[np.intp], seed: int) -> Ints:
            return content[published_order(seed, len(content))].astype(np.int64)

        shown = people.show(found.blocks, found.certificate.seed, shuffle)
        rows = shown.frame(pa.schema([(ITEMS if policy is None else section.column, pa.list_(pa.string()))]))
        return SparkSets(rows, found.certificate, found.blocks, found.error)


def _columns(frame: DataFrame, policy: Policy) -> DataFrame:
    """The columns of people and items that a policy names."""
    section: Any = policy.anonymize
    names = [section.item] if policy.stream.person is None else [str(policy.stream.person), section.item]
    require_columns(frame, names)
    return frame.select(*map(quoted, names))


def _method_of(policy: Policy, items: Sequence[str]) -> Any:
    section: Any = policy.anonymize
    parameters = policy.parameters()
    if "generalize" not in parameters:  # a tree over the items that there are
        parameters["generalize"] = Hierarchy.balanced(items, section.generalize.balanced, free_root(items))
    return METHODS[section.METHOD].load()(**parameters)
