"""The same methods on Spark: ``shoal.spark.anonymize(df, method)``, and ``shoal run --engine spark``."""

from shoal.spark.dataframe import anonymize
from shoal.spark.evidence import attack, audit
from shoal.spark.sets.run import SparkSets, anonymize_sets

__all__ = ["SparkSets", "anonymize", "anonymize_sets", "attack", "audit"]
