"""A data frame in, an anonymized data frame of the same library out, with what was decided and how to check it."""

from shoal.frames.anonymize import anonymize
from shoal.frames.result import Anonymized

__all__ = ["Anonymized", "anonymize"]
