"""Messages of a broker, without the broker, next to loops of orjson and fastavro: python -m benchmarks.messages"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import orjson
import pyarrow as pa

from benchmarks.measure import Cost, Report, least, measured, parse, parser, rate_columns
from benchmarks.z_stream import make_stream
from shoal import ZAnonymity
from shoal.avro.types import record_schema
from shoal.decode.json_records import Columns
from shoal.decode.messages import MessageDecoder, Messages, avro_parser, json_parser
from shoal.encode.messages import AvroMessages, JsonMessages, MessageEncoder

TRIES = 5
Z = 10
BATCH = 20_000
Way = Callable[[], object]


def batches(values: list[bytes]) -> Iterator[list[bytes]]:
    """As many messages as are fetched at once."""
    return (values[at : at + BATCH] for at in range(0, len(values), BATCH))


def decode(decoder: MessageDecoder, values: list[bytes]) -> None:
    """Messages to batches."""
    for part in batches(values):
        decoder.decode(Messages(part))


def encode(encoder: MessageEncoder, rows: pa.RecordBatch) -> None:
    """Batches to messages."""
    for at in range(0, rows.num_rows, BATCH):
        encoder.values(rows.slice(at, BATCH))


def whole_way(decoder: MessageDecoder, encoder: MessageEncoder, values: list[bytes], window: int) -> None:
    """Decode, anonymize, encode: all that a run does between fetching and sending."""
    method = ZAnonymity(person="user", time="ts", attribute="site", z=Z, window=window)
    method.bind(decoder.schema)
    encoder.open(method.output_schema)
    for part in batches(values):
        decoded = decoder.decode(Messages(part))
        encoder.values(method.push_batch(decoded.batch, refused=decoded.places).rows)


def loads_only(values: list[bytes]) -> None:
    """The least that any reader of JSON does: objects, no columns."""
    for value in values:
        orjson.loads(value)


def loads_to_arrow(values: list[bytes]) -> None:
    """Objects with a loop, columns by pyarrow: what one would write by hand, without checks."""
    for part in batches(values):
        pa.RecordBatch.from_pylist([orjson.loads(value) for value in part])


def dumps(rows: pa.RecordBatch) -> None:
    """Objects and texts, one by one."""
    for at in range(0, rows.num_rows, BATCH):
        for row in rows.slice(at, BATCH).to_pylist():
            orjson.dumps(row)


def avro_values(rows: pa.RecordBatch, schema: Any) -> list[bytes]:
    """Every row as fastavro writes it."""
    found = []
    for row in rows.to_pylist():
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        found.append(out.getvalue())
    return found


def read_avro(values: list[bytes], schema: Any) -> None:
    """Records, no columns."""
    for value in values:
        fastavro.schemaless_reader(io.BytesIO(value), schema, None)


def ways(rows: pa.RecordBatch, window: int, folder: Path) -> dict[str, Way]:
    """What is measured, by name."""
    needed = Columns("messages", tuple(rows.schema.names), {one.name: one.type for one in rows.schema})
    schema = record_schema(rows.schema, "visit")
    (folder / "visit.avsc").write_text(json.dumps(schema))
    parsed = fastavro.parse_schema(schema)
    texts, records = [orjson.dumps(row) for row in rows.to_pylist()], avro_values(rows, parsed)
    from_json = MessageDecoder(json_parser(), needed)
    from_avro = MessageDecoder(avro_parser(schema=folder / "visit.avsc"), needed)
    to_json, to_avro = JsonMessages(), AvroMessages("visit")
    to_avro.open(rows.schema)
    return {
        "JSON, decode": lambda: decode(from_json, texts),
        "orjson.loads, no columns": lambda: loads_only(texts),
        "orjson.loads, then pyarrow": lambda: loads_to_arrow(texts),
        "JSON, encode": lambda: encode(to_json, rows),
        "to_pylist, then orjson.dumps": lambda: dumps(rows),
        "Avro, decode": lambda: decode(from_avro, records),
        "fastavro, read, no columns": lambda: read_avro(records, parsed),
        "Avro, encode": lambda: encode(to_avro, rows),
        "to_pylist, then fastavro": lambda: avro_values(rows, parsed),
        "JSON, decode, z-anonymity, encode": lambda: whole_way(from_json, to_json, texts, window),
        "Avro, decode, z-anonymity, encode": lambda: whole_way(from_avro, AvroMessages("rows"), records, window),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; keep the figures as JSON."""
    given = parse(parser(__doc__), arguments)
    report = Report(__file__, given)
    stream = make_stream(5_000, 200, 50) if given.tiny else make_stream()
    rows = stream.batch.slice(0, 2_000 if given.tiny else 300_000)
    best: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        measured_ways = ways(rows, stream.window, Path(folder))
        for _ in range(1 if given.tiny else TRIES):
            for name, way in measured_ways.items():
                cost = measured(way)[0]
                best[name] = least(cost, best.get(name, cost))
    report.figures = {name: vars(cost) | {"messages": rows.num_rows} for name, cost in best.items()}
    report.table(
        "ways", ["", *rate_columns("messages")], [[name, *cost.rates(rows.num_rows)] for name, cost in best.items()]
    )
    report.write()


if __name__ == "__main__":
    main()
