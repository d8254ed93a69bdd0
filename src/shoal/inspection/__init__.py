"""Look at data about people and propose what to do with each column, which method to use, and a policy."""

from shoal.inspection.columns.facts import Facts, look
from shoal.inspection.proposal import PersonDoubt, Proposal, propose
from shoal.inspection.wishes import Wishes

__all__ = ["Facts", "PersonDoubt", "Proposal", "Wishes", "look", "propose"]
