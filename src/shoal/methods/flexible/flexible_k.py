"""Flexible k-anonymity: sparse values are published under a common label of an ontology, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from shoal.crypto.keys import Secret, as_secret
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from shoal.kernels.flexible.rounds import form_groups
from shoal.methods.base import StreamMethod
from shoal.methods.flexible.calibration import Calibration
from shoal.methods.flexible.engine import METHOD, FlexibleEngine
from shoal.methods.flexible.settings import (
    Density,
    FlexibleSettings,
    Unknown,
)
from shoal.schema import Schema


class FlexibleK(StreamMethod):
    """Flexible k-anonymity: every row is published once enough people are there, none is suppressed.

    Of everything published so far: rows with equal normal quasi-identifiers come from at least `k` different people,
    and rows that also have equal labels of the sparse ones from at least K_s. So an attacker who does not know a
    person's sparse value finds one of k, one who knows it finds one of K_s. A row that cannot be published under these
    conditions stays pending, also after a flush; it is never published twice. Do not use it where rows must be
    published within a deadline: use :class:`shoal.LeastLoss`.

    Parameters
    ----------
    schema
        Quasi-identifiers; a :class:`shoal.Categorical` without a hierarchy is described by the ontology. Numbers and
        moments are published as cells of a fixed grid: without a `grid` an hour, or a 1,024th of the domain. People are
        counted by the person column: one human with two devices of different names counts twice.
    ontology
        A :class:`shoal.Ontology` with an attribute named as the column (or with a single one), or a table from columns
        to ontologies.
    k
        Size of the crowd a row hides in.
    sparse
        Names of the sparse quasi-identifiers, or "auto": of those that an ontology describes, the ones it tags as
        sparse; where it has no tag, the ones where at least a share `threshold` of the records have a rare value.
    threshold
        See `sparse`.
    p_sparse
        P(s), the share of records whose sparse value fewer than k people have. By default it is measured in the first
        `window` records and fixed from then on. K_s is P(s) times k, rounded up, at least 2; it is k where P(s) is
        below `floor`.
    k_s
        K_s itself, instead of P(s).
    floor
        See `p_sparse`.
    window
        Number of records after which groups are formed among the pending rows.
    criteria
        Without effect: the labels of a block are chosen together, at the least loss. Still accepted.
    density
        Larger or smaller k by place: ``{"place": {"centre": 4, "village": 10}}``, labels of the column's tree. The
        nearest label above a value applies, `k` where there is none; where an ontology has several equally near, the
        largest of theirs. A block needs the largest k of any value under its label; where the column is sparse, the
        largest of the table.
    density_from_data
        A larger k where few people are, measured instead of listed: ``{"place": {"level": 2, "classes":
        [{"fewer_than": 50, "k": 12}, {"fewer_than": 500, "k": 8}]}}``. Cells are the labels that many levels below the
        root, without `level` the values. People per cell are counted among the first `window` records, which are all
        pending until then; the classes are fixed from then on. Other cells need `k`; those where no one was, and
        unlisted values, as many as the first class.
    root
        Whether a root label, or the whole domain of a number, may be published.
    compare
        Has no effect here; as a key of a policy it decides whether ``shoal doctor`` compares with least-loss.
    remember
        Number of published groups that are remembered, so that rows can join them.
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

    method: ClassVar[str] = METHOD
    settings_class: ClassVar[type[FlexibleSettings]] = FlexibleSettings
    kernel: ClassVar[Any] = staticmethod(form_groups)
    _engine: FlexibleEngine
    _settings: FlexibleSettings

    def __init__(  # noqa: PLR0913 - the parameters of the method
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
        density_from_data: Mapping[str, Mapping[str, Any]] | None = None,
        root: bool = False,
        compare: bool = False,
        remember: int = 1_000_000,
        unknown: Unknown = "accept",
        key: Secret | bytes | None = None,
    ) -> None:
        given = {
            "k": k, "sparse": sparse, "threshold": threshold, "p_sparse": p_sparse, "k_s": k_s, "floor": floor,
            "window": window, "criteria": criteria, "density": density, "density_from_data": density_from_data,
            "root": root, "compare": compare, "remember": remember, "unknown": unknown,
        }  # fmt: skip
        self._start(FlexibleSettings.for_ontology(schema, ontology, given), as_secret(key))

    def _make_engine(self, settings: FlexibleSettings, secret: Secret) -> FlexibleEngine:
        return FlexibleEngine(settings, secret)

    @property
    def settings(self) -> FlexibleSettings:
        """The checked parameters."""
        return self._settings

    @property
    def frozen(self) -> Calibration | None:
        """Sparse columns, people per label, and measured density; None until the first window is full."""
        return self._engine.calibration

    def set_calibration(self, calibration: Calibration) -> None:
        """Use a calibration that was made elsewhere, instead of measuring the first window; before any record."""
        self._engine.set_calibration(calibration)
