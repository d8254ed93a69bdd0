"""The same methods on Spark: ``shoal.spark.anonymize(df, method)``, and ``shoal run --engine spark``."""

from shoal.spark.dataframe import anonymize
from shoal.spark.evidence import audit

__all__ = ["anonymize", "audit"]
