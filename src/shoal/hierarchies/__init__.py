"""Trees of labels that a value can be generalized along."""

from shoal.hierarchies.hierarchy import Hierarchy

__all__ = ["Hierarchy"]
