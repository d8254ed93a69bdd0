"""k^m-anonymity of sets: an attacker who knows up to m items of a person finds at least k people who have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from shoal.errors import PolicyError
from shoal.hierarchies.graph import Graph
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.neighbourhood import Neighbourhood
from shoal.methods.base import BatchMethod
from shoal.methods.policy_content import policy_of_sets
from shoal.methods.sets.certificate import Certificate, Certifier
from shoal.methods.sets.data import SetData
from shoal.methods.sets.graph_partition import GraphPartition
from shoal.methods.sets.local_recoding import LocalRecoding
from shoal.methods.sets.local_result import LocalKmResult
from shoal.methods.sets.partition import ErrorChoice, Partition
from shoal.methods.sets.records import read_records
from shoal.methods.sets.result import KmResult, number_records
from shoal.methods.sets.search import Progress, Search
from shoal.methods.sets.settings import Adversary, KmAprioriSettings, KmSettings, Recoding, Sampler
from shoal.methods.sets.tree_partition import TreePartition
from shoal.models.sample_size import Bound

Generalize = Hierarchy | Neighbourhood | Mapping[str, Iterable[str]] | Iterable[tuple[str, str]]


class KmAnonymity(BatchMethod):
    """k^m-anonymity by generalization: items are merged into blocks until up to m known items single no one out.

    Sizes that are affordable are counted, and the guarantee holds without exception; larger sizes are sampled, and it
    holds with a probability of at least sigma. Do not use it for several releases of the same people: the guarantee
    covers one release. Use :class:`shoal.KmApriori` where no sampling is wanted.

    Parameters
    ----------
    k
        The smallest crowd, or a list with one value for every size from 1 to m.
    m
        The number of items of a person that the adversary knows at most.
    sigma
        The probability that an itemset the adversary knows has k people; 1 counts all. Or a list by size.
    generalize
        How items may be merged: a :class:`shoal.Hierarchy` (any cut), :class:`shoal.Places` (neighbouring cells), or
        a graph: a table from an item to its neighbours, or pairs of items.
    error
        The cost of merging: ``"distance"`` (places), ``"ncp"``, or a function of a block's items and their weights.
    adversary
        ``"itemset"`` knows any itemset with equal probability; ``"person"`` picks a person first; or ``"both"``.
    bound
        The number of samples that must pass: ``"exact"``, or the papers' ``"hoeffding1"`` and ``"hoeffding2"``.
    trials
        Number of independent searches; the result with the smallest error is used.
    seed
        Seed of the random draws, used together with the data.
    counted
        ``"auto"`` counts what is affordable, ``"all"`` everything, a number the sizes up to it.
    sampler
        How the search draws: ``"exact"`` (independent uniform samples), the paper's Markov ``"chain"``, or
        ``"paper-chain"``, the chain with the paper's literal test of convergence. Certificates always use exact
        samples.
    joint
        Whether the confidences hold for all sizes at once.
    recoding
        ``"global"``: an item is published alike in all records; ``"local"``: in each record as precisely as possible.
        Local recoding needs a hierarchy that lists its items, and every size counted.

    Examples
    --------
    >>> import shoal
    >>> cities = shoal.Hierarchy.from_nested({"US": {"West": ["LA", "Seattle"], "East": ["New York", "Boston"]}})
    >>> trips = [{"LA"}, {"LA"}, {"New York", "Boston"}, {"New York", "Boston"}, {"LA", "Boston"}, {"LA", "New York"}]
    >>> result = shoal.KmAnonymity(k=2, m=2, sigma=1, generalize=cities).anonymize(trips)
    >>> sorted(result.blocks)
    ['East', 'West']
    """

    method: ClassVar[str] = "k^m"
    settings_class: ClassVar[type[KmSettings]] = KmSettings

    def __init__(  # noqa: PLR0913 - the parameters of the method
        self,
        k: int | Sequence[int] = 10,
        m: int = 5,
        sigma: float | Sequence[float] = 0.99,
        *,
        generalize: Any,
        error: ErrorChoice = None,
        adversary: Adversary = "itemset",
        bound: Bound = "exact",
        trials: int = 10,
        seed: int = 0,
        counted: str | int = "auto",
        sampler: Sampler = "exact",
        joint: bool = False,
        recoding: Recoding = "global",
    ) -> None:
        self.settings: KmSettings = KmSettings.checked({
            "k": k, "m": m, "sigma": sigma, "adversary": adversary, "bound": bound, "trials": trials, "seed": seed,
            "counted": counted, "sampler": sampler, "joint": joint, "recoding": recoding,
        })  # fmt: skip
        if recoding == "local":
            check_local(generalize, error)
        self._generalize = generalize
        self._error = error

    @property
    def policy(self) -> dict[str, Any]:
        """The promise as the content of a policy, which :func:`shoal.audit` reads.

        Which places or nodes of a graph are neighbours is not in it: the auditor then does not check that blocks are
        connected.
        """
        promised = {"k", "m", "sigma", "adversary", "joint", "recoding"}
        promise = {name: value for name, value in self.settings.to_dict().items() if name in promised}
        hierarchy = self._generalize.to_dict() if isinstance(self._generalize, Hierarchy) else None
        return policy_of_sets(self.method, promise, hierarchy)

    def anonymize(self, records: Any, *, progress: Progress | None = None) -> KmResult:
        """Generalize the sets of everybody at once.

        Parameters
        ----------
        records
            An iterable of sets, an Arrow list column, a path to a text file with one record per line, or (person, item)
            rows in any order: tuples, or a table of two columns.
        progress
            Called with the current activity, the size, and the number of blocks left.
        """
        read = read_records(records)
        partition = self.partition_of(sorted(read.labels))
        data = number_records(read, self.settings, partition.names)
        partition.start(data.weights)
        found, certificate = decide_blocks(Search(data, partition, self.settings, progress))
        if self.settings.recoding == "local":
            return _refined(data, found, certificate, self.settings, progress)
        return KmResult(self.settings, data, found, certificate)

    def partition_of(self, items: Sequence[str]) -> Partition:
        """A partition with every item in a block of its own; `items` are those that occur, sorted."""
        return make_partition(self._generalize, self._error, items=items)


class KmApriori(BatchMethod):
    """k^m-anonymity with certainty: every itemset of up to m items is counted.

    Do not use it where m is large or people have many items, because the number of itemsets explodes: use
    :class:`shoal.KmAnonymity`, which samples what it cannot count.

    Parameters
    ----------
    k
        The smallest crowd, or a list with one value for every size from 1 to m.
    m
        The number of items of a person that the adversary knows at most.
    generalize, error, recoding
        As for :class:`shoal.KmAnonymity`.

    Examples
    --------
    >>> import shoal
    >>> cities = shoal.Hierarchy.from_nested({"US": {"West": ["LA", "Seattle"], "East": ["New York", "Boston"]}})
    >>> result = shoal.KmApriori(k=2, m=1, generalize=cities).anonymize([{"LA"}, {"LA"}, {"Boston"}, {"New York"}])
    >>> sorted(result.blocks)
    ['East', 'LA', 'Seattle']
    >>> trips = [{"LA"}, {"LA"}, {"Boston"}, {"New York"}, {"Boston", "LA"}, {"New York", "LA"}]
    >>> local = shoal.KmApriori(k=2, m=2, generalize=cities, recoding="local").anonymize(trips)
    >>> [sorted(record) for record in local.records]
    [['LA'], ['LA'], ['East'], ['East'], ['East', 'LA'], ['East', 'LA']]

    References
    ----------
    Terrovitis, Mamoulis, Kalnis: Privacy-preserving anonymization of set-valued data. VLDB (2008).
    """

    method: ClassVar[str] = "k^m-apriori"
    settings_class: ClassVar[type[KmAprioriSettings]] = KmAprioriSettings

    def __init__(
        self, k: int | Sequence[int] = 10, m: int = 2, *, generalize: Any, error: ErrorChoice = None,
        recoding: Recoding = "global",
    ) -> None:  # fmt: skip
        self._counting = KmAnonymity(
            k, m, 1.0, generalize=generalize, error=error, counted="all", trials=1, recoding=recoding
        )

    @property
    def settings(self) -> KmSettings:
        """All parameters, those of counting included."""
        return self._counting.settings

    @property
    def policy(self) -> dict[str, Any]:
        """The promise as the content of a policy, as of :class:`shoal.KmAnonymity`."""
        policy = self._counting.policy
        return {"anonymize": {**policy["anonymize"], "method": self.method}}

    def anonymize(self, records: Any, *, progress: Progress | None = None) -> KmResult:
        """Generalize the sets of everybody at once; the parameters are those of :meth:`shoal.KmAnonymity.anonymize`."""
        return self._counting.anonymize(records, progress=progress)

    def partition_of(self, items: Sequence[str]) -> Partition:
        """A partition with every item in a block of its own; `items` are those that occur, sorted."""
        return self._counting.partition_of(items)


def make_partition(
    generalize: Generalize | object, error: ErrorChoice = None, *, items: Iterable[str] | None = None
) -> Partition:
    """A partition with every item in a block of its own.

    Parameters
    ----------
    generalize
        A hierarchy, places, a graph, a table from a name to its neighbours, or pairs of neighbours.
    error
        ``"distance"`` (places only; their default), ``"ncp"`` (the default elsewhere), or a function of the items
        of a block and their weights that returns the cost of the block.
    items
        The items there are; an open hierarchy needs them, everything else lists its own.
    """
    if isinstance(generalize, Hierarchy):
        return TreePartition(generalize, error, items)
    if isinstance(generalize, Neighbourhood):
        return GraphPartition(generalize, error)
    if isinstance(generalize, Iterable) and not isinstance(generalize, str | bytes):
        return GraphPartition(Graph(cast("Iterable[tuple[str, str]]", generalize)), error)
    raise PolicyError(
        "generalize: give a shoal.Hierarchy, shoal.Places, a table from an item to its neighbours, or pairs of items"
    )


def check_local(generalize: object, error: ErrorChoice) -> None:
    """Raise PolicyError if labels cannot differ in precision between records."""
    if not isinstance(generalize, Hierarchy):
        raise PolicyError('recoding: "local" needs a shoal.Hierarchy; places and graphs have no levels')
    if generalize.is_open:
        raise PolicyError(
            'recoding: "local" needs a hierarchy that lists its items: in an open one a label may be an item and a '
            "group of items"
        )
    if error not in (None, "ncp"):
        raise PolicyError('recoding: "local" measures the loss by "ncp"; leave error out')


def _refined(
    data: SetData, partition: Partition, certificate: Certificate, settings: KmSettings, progress: Progress | None
) -> LocalKmResult:
    """Refine labels record by record, and count everything again."""
    assert isinstance(partition, TreePartition)
    local = LocalRecoding(data, partition, settings)
    local.refine(progress)
    if not local.keeps_promise():  # two sets of labels had the same hash
        local = LocalRecoding(data, partition, settings)
    return LocalKmResult(settings, data, partition, replace(certificate, recoding="local"), local)


def decide_blocks(start: Search) -> tuple[Partition, Certificate]:
    """Merge blocks until the guarantee holds, and certify it."""
    settings = start.settings
    best, counted = _best_trial(start, settings.trials)
    return best.partition, Certifier(best, settings, counted=counted, may_join=True).certify()


Trial = tuple[Search, frozenset[int]]
"""A finished search, and the sizes it counted."""


def _best_trial(start: Search, trials: int) -> Trial:
    """The trial with the smallest error.

    The sizes counted first are the same in all trials and done once, unless nothing comes after them.
    """
    base = start.copy() if trials > 1 else start
    counted: set[int] = set()
    for size in start.sizes:
        if not start.should_count(size, counted):
            break
        start.enforce_counted(size)
        counted.add(size)
    rest = [size for size in start.sizes if size not in counted]
    best: Trial | None = (start, frozenset(counted)) if not rest else None
    for trial in range(0 if rest else 1, trials):
        found = _try(start.copy(), counted, rest, trial) if rest else _try(base.copy(), set(), start.sizes, trial)
        best = found if best is None else min(best, found, key=lambda one: one[0].partition.error)
    assert best is not None
    return best


def _try(search: Search, counted: set[int], sizes: Iterable[int], trial: int) -> Trial:
    done = set(counted)
    for size in sizes:
        if search.should_count(size, done):
            search.enforce_counted(size, trial)
            done.add(size)
        else:
            search.enforce_sampled(size, trial)
    return search, frozenset(done)
