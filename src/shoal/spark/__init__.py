"""The same methods on Spark.

Entry points: ``run.py`` (``shoal run --engine spark``), ``streams/run.py`` (the same with ``[checkpoint]`` or Kafka),
``dataframe.py`` (``shoal.spark.anonymize``), ``evidence.py`` (``shoal.spark.audit`` and ``attack``).

A batch of z-anonymity, step by step:

1. ``run.py`` checks the policy, the key and the executors (``cluster/executor_check.py``).
2. ``records/files.py``: one task decodes each file into blocks, many rows as one binary value (``records/blocks.py``).
3. ``records/numbering.py``: the driver numbers all records by the sizes of the blocks. Spark reads the files of a
   DataFrame in an order of its own; ``records/file_order.py`` restores that of their names.
4. ``z/admit.py``: one task sees all records in order, moves the clock and refuses late ones; what shards need of it
   (``z/clocks.py``) is broadcast.
5. ``z/judge.py``: rows go to shards by (column, value); each shard counts people and compares them with z.
   ``z/epochs/``: with combine or a target, one task for each epoch decides what the shards passed.
6. ``z/output_ranges.py``: decisions go to ranges of the output, and are put in the order of one machine.
7. ``z/decide.py``: ranges write part files, trace and counts; the driver gets an ``Outcome`` (``outcome.py``).
8. ``run.py`` moves the parts to their place; ``dead_letters.py`` explains refused records. Of a DataFrame,
   ``batch_evidence.py`` writes trace and letters, and the rows are returned.

Other families differ in steps 4 to 6. ``tuples/`` and ``flexible/`` learn cuts, decide shards of similar rows, and
then the rows that are left over in one more shard. ``sets/``: the driver searches, tasks that keep the records answer
with counts. ``streams/`` repeats the steps for every micro-batch: plan, decide into a hidden folder, store the state of
the shards, commit, publish. The auditor shares no code with any of
this: ``shoal.auditor.spark`` runs its checks on parts of tables.

Words: a *block* is many rows as one value of Spark; a *shard* decides some of the records; a *range* or *part* is some
of the output; a *note* is what a shard reports next to its decisions; an *attempt* is one try to decide a micro-batch;
a *chain* is the files that lead to the state of a shard.
"""

from shoal.spark.dataframe import anonymize
from shoal.spark.evidence import attack, audit
from shoal.spark.sets.run import SparkSets, anonymize_sets

__all__ = ["SparkSets", "anonymize", "anonymize_sets", "attack", "audit"]
