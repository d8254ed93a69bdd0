"""What a value can be generalized along: trees of labels, and who lies beside whom."""

from shoal.hierarchies.graph import Graph
from shoal.hierarchies.hierarchy import Hierarchy

__all__ = ["Graph", "Hierarchy"]
