"""How values can be generalized: trees of labels, graphs of neighbours, and (in ontology) classes and properties."""

from shoal.hierarchies.graph import Graph
from shoal.hierarchies.hierarchy import Hierarchy

__all__ = ["Graph", "Hierarchy"]
