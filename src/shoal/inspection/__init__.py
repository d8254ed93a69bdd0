"""Look at data about people and propose what to do with each column, which method to use, and a policy."""

from shoal.inspection.facts import Facts, look
from shoal.inspection.proposal import Proposal, propose
from shoal.inspection.wishes import Wishes

__all__ = ["Facts", "Proposal", "Wishes", "look", "propose"]
