"""The order of files: records come by the name of their file, then by their place in it.

Spark reads the largest pieces of files first, and several of them in one task, so the order of its partitions is not
that of the files. Every row therefore carries its file and the start of its piece as far as the task that packs it;
blocks end where a piece ends. The driver then gives pieces their place in the stream. No row moves between tasks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shoal.spark.records.blocks import BLOCKS, COUNT, one_row
from shoal.spark.records.columns import BLOCK, PART

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE: Final = "_shoal_file"
"""The path of a row's file, or a hash of it: fewer bytes for each row."""
START: Final = "_shoal_start"
"""Where the piece of the file begins that a task reads."""
RUN: Final = "_shoal_run"
"""The number of a piece among those of its task."""
PLACED: Final = pa.schema([*BLOCKS, (RUN, pa.int32()), (FILE, pa.string()), (START, pa.int64())])
"""Blocks of one piece each."""
_KEEP_ORDER: Final = frozenset(
    {"EventTimeWatermark", "Filter", "Generate", "LogicalRelation", "Project", "Relation", "StreamingRelation",
     "SubqueryAlias", "View"}
)  # fmt: skip
"""Steps of a plan that hand on rows as they come."""
_METADATA: Final = "_metadata"
_LOCAL_NAME: Final = re.compile(r"^file:/+", re.MULTILINE)
"""Spark writes names of local files with one slash or with three."""


def with_files(frame: DataFrame) -> DataFrame | None:
    """A DataFrame with the file and piece of every row; None if it does not read files, or rows have moved since.

    Of a streaming DataFrame the files are not known before it is read: its rows carry the path itself.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    if FILE in frame.columns:
        return frame
    if _METADATA in frame.columns or not _keeps_order(frame) or (not frame.isStreaming and _count_files(frame) < 2):
        return None
    path = f.col(f"{_METADATA}.file_path")
    file = path if frame.isStreaming else f.xxhash64(path)
    try:
        return frame.select("*", file.alias(FILE), f.col(f"{_METADATA}.file_block_start").alias(START))
    except AnalysisException:  # a source without this column
        return None


def moves_rows(frame: DataFrame) -> bool:
    """Whether rows move between tasks before they are in the DataFrame, as in a sort, a join or a repartition."""
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark shows plans in no other way
    return "Exchange" in str(plan.toString())


def _keeps_order(frame: DataFrame) -> bool:
    """Whether rows are handed on as files have them, from one read."""
    nodes = _nodes(frame._jdf.queryExecution().analyzed())  # noqa: SLF001
    if not all(node.nodeName() in _KEEP_ORDER or _is_coalesce(node) for node in nodes):
        return False
    return frame.isStreaming or not moves_rows(frame)  # a condition may hide a join


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for place in range(children.size()):
        yield from _nodes(children.apply(place))


def _is_coalesce(node: Any) -> bool:
    return node.nodeName() == "Repartition" and not node.shuffle()


def _count_files(frame: DataFrame) -> int:
    return len(frame._jdf.inputFiles())  # noqa: SLF001 - the names themselves would be fetched one by one


# ---- on executors


def pieces_of(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int] | None, pa.RecordBatch]]:
    """The parts of a batch that come from one piece of a file each: file and start, and the rows."""
    if FILE not in batch.schema.names:
        yield None, batch
        return
    runs = [pc.run_end_encode(batch.column(name)) for name in (FILE, START)]
    ends = {0, *(end for run in runs for end in run.run_ends.to_pylist())}
    for start, end in pairwise(sorted(ends)):
        piece = batch.slice(start, end - start)
        yield (str(piece.column(FILE)[0]), piece.column(START)[0].as_py()), piece


def placed_block(block: pa.RecordBatch, run: int, file: str, start: int) -> pa.RecordBatch:
    """A block with its piece of a file."""
    values = dict(zip(block.schema.names, block.columns, strict=True))
    return one_row(PLACED, {**values, RUN: run, FILE: file, START: start})


# ---- on the driver


def in_order_of_files(blocks: DataFrame, frame: DataFrame) -> tuple[DataFrame, list[tuple[int, int, int]]]:
    """Blocks with new parts, which are in the order of files; and the new part, block and size of each.

    `frame` is that of with_files.
    """
    from pyspark.sql import functions as f

    found = [tuple(row) for row in blocks.select(PART, RUN, BLOCK, COUNT, FILE, START).collect()]
    if not found:
        return blocks.select(*BLOCKS.names), []
    pieces = {(part, run): (file, start) for part, run, _, _, file, start in found}
    paths = _paths(frame, {file for file, _ in pieces.values()})
    in_order = sorted(pieces, key=lambda piece: (paths[pieces[piece][0]], pieces[piece][1], piece))
    ranks = {piece: rank for rank, piece in enumerate(in_order)}
    by_part = sorted(pieces)
    firsts = [bisect_left(by_part, (part, 0)) for part in range(by_part[-1][0] + 1)]
    first = f.element_at(_numbers(firsts), f.col(PART) + 1)
    part = f.element_at(_numbers([ranks[piece] for piece in by_part]), first + f.col(RUN) + 1)
    names = [part.alias(name) if name == PART else f.col(name) for name in BLOCKS.names]
    return blocks.select(*names), [(ranks[part, run], block, count) for part, run, block, count, _, _ in found]


def _numbers(numbers: Sequence[int]) -> Any:
    """Numbers as one constant of Spark."""
    from pyspark.sql import functions as f

    return f.split(f.lit(",".join(map(str, numbers))), ",").cast("array<int>")


def _paths(frame: DataFrame, files: set[str]) -> Mapping[str, list[str]]:
    """The paths behind what rows carry, as lists of folders: so one machine sorts files."""
    if dict(frame.dtypes)[FILE] == "string":
        return {file: _parts(file) for file in files}
    found = _hashes(frame)
    if not files <= found.keys():  # the source names its files in another way: ask it once more
        from pyspark.sql import functions as f

        rows = frame.select(FILE, f.col(f"{_METADATA}.file_path")).distinct().collect()
        found = {str(file): _parts(path) for file, path in rows}
    return found


def _hashes(frame: DataFrame) -> dict[str, list[str]]:
    """All files of a DataFrame by the hash that its rows carry, as far as they are named in the same way."""
    from pyspark.sql import functions as f

    session: Any = frame.sparkSession
    as_json = session._jvm.com.fasterxml.jackson.databind.ObjectMapper()  # noqa: SLF001 - one call for all names
    names = "\n".join(orjson.loads(as_json.writeValueAsString(frame._jdf.inputFiles())))  # noqa: SLF001
    names = _LOCAL_NAME.sub("file:/", names)
    hashes = f.transform(f.split(f.lit(names), "\n"), lambda name: f.xxhash64(name))
    (row,) = session.range(1).select(hashes).collect()
    return {str(one): _parts(name) for one, name in zip(row[0], names.split("\n"), strict=True)}


def _parts(path: str) -> list[str]:
    return unquote(path).split("/")
