"""Flexible k-anonymity: sparse values are shown under a common criterion of an ontology, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from shoal.crypto.keys import Secret, as_secret
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from shoal.methods.flexible.settings import Density, Unknown, check_flexible_settings
from shoal.methods.flexible.singles import FlexibleSingles
from shoal.schema import Schema


class FlexibleK(FlexibleSingles):
    """Every row leaves once enough people are there, none is suppressed.

    Of everything published so far: rows that are alike in their normal quasi-identifiers come from at least `k`
    different people, and those that are alike in the label of the sparse ones too from at least K_s. So whoever does
    not know a person's sparse value finds one of k, whoever knows it one of K_s. A row that cannot leave so waits, and
    goes on waiting after a flush; it is never published twice.

    Parameters
    ----------
    schema
        Quasi-identifiers; a :class:`shoal.Categorical` without a hierarchy is described by the ontology. Numbers and
        moments leave as cells of a fixed grid: without a `grid` an hour, or a 1,024th of the domain. People are
        counted by the person column: one human with two devices that are called differently counts twice.
    ontology
        A :class:`shoal.Ontology` with an attribute named as the column (or with a single one), or a table from columns
        to ontologies.
    k
        In how large a crowd a row hides.
    sparse
        Names of the sparse quasi-identifiers, or "auto": of those that an ontology describes the ones it says are, and
        where it is silent the ones whose values too few people have in a share of at least `threshold` of the records.
    threshold
        See `sparse`.
    p_sparse
        P(s), the share of records whose sparse value fewer than k people have. By default it is found out in the first
        `window` records, and stays as it is then. K_s is P(s) times k, rounded up, at least 2; it is k where P(s) is
        below `floor`.
    k_s
        K_s itself, instead of P(s).
    floor
        See `p_sparse`.
    window
        After how many records groups are formed among those that wait.
    criteria
        How many common criteria a block may show for the sparse values that are left over. A block keeps those it has
        shown, so with few of them rows may wait long that none of them covers.
    density
        Larger or smaller k by place: ``{"place": {"centre": 4, "village": 10}}``, labels of the column's tree; the
        nearest label above a value counts, `k` where there is none; where an ontology has several that are as near, the
        largest of theirs. A block needs the largest k that any value under its label asks for; where the column is
        sparse, the largest of the table.
    root
        Whether a root label, or the whole domain of a number, may leave.
    compare
        Has no effect here; as a key of a policy it says whether ``shoal doctor`` compares with least-loss.
    remember
        How many published groups are remembered, so that rows may join them.
    unknown
        What happens to a value that the column's hierarchy or ontology does not list. "accept": it is published as the
        label ``unknown``, which lies directly below the root and needs as many people as any other label. "refuse":
        the record goes to the dead letters.
    key
        At least 16 secret bytes for snapshots and table keys; see :class:`shoal.ZAnonymity`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shoal import Categorical, FlexibleK, Hierarchy, Ontology, Schema
    >>> phones = [{"model": m, "os": "Android"} for m in ("HTC One", "Samsung S3", "Huawei P8", "LG G2")]
    >>> phones += [{"model": "iPhone 6", "os": "iOS"}]
    >>> schema = Schema(
    ...     person="maid", carry=["mbps"],
    ...     quasi=[Categorical("network", Hierarchy.flat(["3G", "4G"])), Categorical("model")],
    ... )
    >>> flexible = FlexibleK(
    ...     schema, Ontology.from_table(phones, value="model", properties=["os"], tag="sparse"), k=4, k_s=2,
    ... )
    >>> models = ["iPhone 6", "HTC One", "iPhone 6", "Samsung S3", "Huawei P8"]
    >>> _ = flexible.push_batch(
    ...     pa.table({"maid": list("abcde"), "network": ["4G"] * 5, "model": models, "mbps": [5, 9, 7, 8, 2]})
    ... )
    >>> flexible.flush().rows.to_pydict()["model"]
    ['iPhone 6', 'iPhone 6', 'Android', 'Android', 'Android']
    """

    def __init__(  # noqa: PLR0913 - all by name, and each means something to a user
        self,
        schema: Schema,
        ontology: Ontology | Concepts | Mapping[str, Ontology | Concepts] | None,
        *,
        k: int = 6,
        sparse: Literal["auto"] | str | Sequence[str] = "auto",
        threshold: float = 0.1,
        p_sparse: float | None = None,
        k_s: int | None = None,
        floor: float = 0.05,
        window: int = 10_000,
        criteria: int = 1,
        density: Density | None = None,
        root: bool = False,
        compare: bool = False,
        remember: int = 1_000_000,
        unknown: Unknown = "accept",
        key: Secret | bytes | None = None,
    ) -> None:
        settings = check_flexible_settings(
            schema, ontology, k=k, sparse=sparse, threshold=threshold, p_sparse=p_sparse, k_s=k_s, floor=floor,
            window=window, criteria=criteria, density=density, root=root, compare=compare, remember=remember,
            unknown=unknown,
        )  # fmt: skip
        self._begin(settings, as_secret(key))
