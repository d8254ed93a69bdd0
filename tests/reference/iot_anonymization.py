"""IoT Anonymization: as K-VARP, but of equally similar partitions the biggest is merged; merged ones are not reused."""

from __future__ import annotations

from dataclasses import dataclass

from tests.reference.k_varp import KVarpTwin, Partition, jaccard
from tests.reference.tuples import Cluster, Held


@dataclass
class IotAnonymizationTwin(KVarpTwin):
    """`likeness` is not used. In paper mode every row of a cluster shows every range (the paper's imputation)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.imputes = self.exact_reuse = True

    def rank(self, first: Held, partition: Partition) -> tuple[float, ...]:
        return -jaccard(first, partition), -len(partition), partition[0].number

    def reusable(self, cluster: Cluster) -> bool:
        return len(cluster.patterns) == 1
