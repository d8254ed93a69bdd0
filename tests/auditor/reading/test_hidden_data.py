"""The auditor checks what a file contains besides its rows: metadata, dictionaries, values under nulls."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from shoal import Fads, Numeric, Schema
from shoal.auditor import audit
from tests.auditor.cases import NAMES, Case
from tests.auditor.tuples.naive import RELEASE, TRUTH, Run, records
from tests.auditor.tuples.naive import table as tuple_table
from tests.auditor.z.naive import table, trace_table

PERSON = "person 3"


@pytest.fixture
def case():
    return Case()


def to_file(shown, path):
    if path.suffix == ".parquet":
        pq.write_table(shown, path)
    else:
        with pa.ipc.new_file(path, shown.schema) as file:
            file.write_table(shown)


def look(case, path):
    return audit(path, table(case.truth, NAMES), trace_table(case.trace), case.promised)


FORMATS = pytest.mark.parametrize("suffix", [".parquet", ".arrow"])


def shown_of(case):
    return table(case.release, case.columns)


def in_schema(shown, key, value):
    return shown.replace_schema_metadata({key: value})


def in_field(shown, key, value):
    return shown.cast(shown.schema.set(0, shown.schema.field(0).with_metadata({key: value})))


@FORMATS
def test_a_plain_file_is_acquitted(case, suffix, tmp_path):
    to_file(shown_of(case), tmp_path / f"a{suffix}")
    report = look(case, tmp_path / f"a{suffix}")
    assert report.findings == (), report.text()


@FORMATS
@pytest.mark.parametrize("place", [in_schema, in_field])
@pytest.mark.parametrize(("key", "value"), [("a", PERSON), (PERSON, "a"), ("a", f'{{"who": ["{PERSON}"]}}')])
def test_an_identifier_in_metadata(case, suffix, tmp_path, place, key, value):
    to_file(place(shown_of(case), key, value), tmp_path / f"a{suffix}")
    report = look(case, tmp_path / f"a{suffix}")
    assert {found.code for found in report.violations} == {"raw-identifier"}
    assert {found.code for found in report.warnings} == {"unexpected-metadata"}


VERSION, ROWS = "org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata"


def schema_of_spark(**more):
    items = {"type": "array", "elementType": "string", "containsNull": True}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": more} for name, kind in (("a", "long"), ("b", items))
    ]
    return json.dumps({"type": "struct", "fields": fields})


@pytest.mark.parametrize(
    ("key", "value", "is_usual"),
    [
        (VERSION, "4.3.0", True), (VERSION, "4.3 of nobody", False), (ROWS, schema_of_spark(), True),
        (ROWS, schema_of_spark(comment="nobody"), False), (ROWS, '{"type": "struct", "who": "nobody"}', False),
        (ROWS, "nobody", False), (ROWS, "[1]", False),
        (ROWS, '{"type": "struct", "fields": [3]}', False),
        (ROWS, schema_of_spark().replace("long", "of nobody"), False),
    ],
)  # fmt: skip
def test_what_spark_writes_by_itself_is_usual(case, tmp_path, key, value, is_usual):
    to_file(in_schema(shown_of(case), key, value), tmp_path / "a.parquet")
    codes = [found.code for found in look(case, tmp_path / "a.parquet").findings]
    assert codes == ([] if is_usual else ["unexpected-metadata"])


def test_an_identifier_in_the_schema_of_spark(case, tmp_path):
    named = json.dumps(
        {"type": "struct", "fields": [{"name": PERSON, "type": "long", "nullable": True, "metadata": {}}]}
    )
    to_file(in_schema(shown_of(case), ROWS, named), tmp_path / "a.parquet")
    assert "raw-identifier" in {found.code for found in look(case, tmp_path / "a.parquet").violations}


@FORMATS
@pytest.mark.parametrize("place", [in_schema, in_field])
def test_metadata_without_an_identifier_is_a_warning(case, suffix, tmp_path, place):
    to_file(place(shown_of(case), "owner", "nobody"), tmp_path / f"a{suffix}")
    report = look(case, tmp_path / f"a{suffix}")
    assert [found.code for found in report.findings] == ["unexpected-metadata"]


def test_metadata_of_pandas(case, tmp_path):
    path = tmp_path / "a.parquet"
    shown_of(case).to_pandas().to_parquet(path)
    assert look(case, path).findings == ()
    written = pq.read_table(path)
    said = json.loads(written.schema.metadata[b"pandas"])
    for more in ({"creator": {"library": PERSON}}, {"column_indexes": [{"name": PERSON}]}):
        pq.write_table(written.replace_schema_metadata({"pandas": json.dumps(said | more)}), path)
        assert {found.code for found in look(case, path).violations} == {"raw-identifier"}
    for strange in (json.dumps(said | {"more": 1}), json.dumps(said | {"attributes": {"a": 1}}), "no JSON", "[]"):
        pq.write_table(written.replace_schema_metadata({"pandas": strange}), path)
        assert {found.code for found in look(case, path).warnings} == {"unexpected-metadata"}


def batches_with(path, shown, metadata, *, is_file):
    opened = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with opened(path, shown.schema) as file:
        for batch in shown.to_batches(max_chunksize=3):
            file.write_batch(batch, custom_metadata=metadata)


@pytest.mark.parametrize("is_file", [True, False])
def test_metadata_of_arrow_batches(case, tmp_path, is_file):
    path = tmp_path / "a.arrow"
    batches_with(path, shown_of(case), None, is_file=is_file)
    assert look(case, path).findings == ()
    batches_with(path, shown_of(case), {"who": PERSON}, is_file=is_file)
    report = look(case, path)
    assert {found.code for found in report.findings} == {"raw-identifier", "unexpected-metadata"}


def test_metadata_at_the_end_of_an_arrow_file(case, tmp_path):
    path, shown = tmp_path / "a.arrow", shown_of(case)
    with pa.ipc.new_file(path, shown.schema, metadata={"who": PERSON}) as file:
        file.write_table(shown)
    assert {found.code for found in look(case, path).findings} == {"raw-identifier", "unexpected-metadata"}


def test_entries_that_a_dictionary_holds_twice(case):
    shown = shown_of(case)
    encoded = shown.column("site").combine_chunks().dictionary_encode()
    twice = pa.concat_arrays([encoded.dictionary, encoded.dictionary])
    second = pc.add(encoded.indices, pa.array([len(encoded.dictionary)] * len(shown), pa.int32()))
    places = pc.if_else(pa.array([row % 2 == 0 for row in range(len(shown))]), encoded.indices, second)
    place = shown.schema.get_field_index("site")
    marked = shown.set_column(place, "site", pa.DictionaryArray.from_arrays(places, twice))
    assert "hidden-value" in {found.code for found in look(case, marked).violations}


def numbered_people(person):
    """An honest release whose people are numbers, as are a part of a column's name and the sensitive values."""
    count = 60
    truth = pa.table({"id": [str(row) for row in range(count)], "PM 2": [row % 7 for row in range(count)],
                      "grade": [str(row % 4) for row in range(count)]})  # fmt: skip
    truth = truth.rename_columns([person, "PM 2", "grade"])
    rules = {"k": 3, "deadline": 20, "reuse": 10}
    made = Fads(Schema(person=person, quasi=[Numeric("PM 2", 0, 10)], sensitive=["grade"]), **rules, key=bytes(16))
    releases = [made.push_batch(truth), made.flush()]
    quasi = {"PM 2": {"kind": "numeric", "low": 0, "high": 10}}
    promised = {"stream": {"person": person},
                "anonymize": {"method": "fads", "quasi": quasi, "sensitive": ["grade"], **rules}}  # fmt: skip
    shown, trace = (
        pa.Table.from_batches([getattr(release, part) for release in releases]) for part in ("rows", "trace")
    )
    return truth, shown, trace, promised


def test_numbers_that_writers_add_are_not_identifiers(tmp_path):
    """Numbers of rows and versions, and the policy's own names of columns, are not identifiers."""
    truth, shown, trace, promised = numbered_people("id")
    shown.to_pandas().to_parquet(tmp_path / "a.parquet")
    for release in (shown, shown.to_pandas(), tmp_path / "a.parquet"):
        report = audit(release, truth, trace, promised)
        assert report.ok, report.text()
    report = audit(shown.replace_schema_metadata({"who": "17"}), truth, trace, promised)
    assert {found.code for found in report.violations} == {"raw-identifier"}


def test_row_numbers_are_not_identifiers():
    truth, shown, trace, promised = numbered_people("row")
    assert audit(shown, truth.drop(["row"]), trace, promised).findings == ()


def test_an_index_is_a_column(case, tmp_path):
    frame = shown_of(case).to_pandas()
    frame.index = pd.Index([PERSON] * len(frame))
    frame.to_parquet(tmp_path / "a.parquet")
    assert "extra-column" in {found.code for found in look(case, tmp_path / "a.parquet").violations}
    assert "extra-column" in {found.code for found in look(case, pa.Table.from_pandas(frame)).violations}
    assert "extra-column" in {found.code for found in look(case, frame).violations}
    numbered = shown_of(case).to_pandas()
    numbered = pd.concat([numbered.iloc[:1], numbered.iloc[1:]])
    numbered.index = range(5, 5 + len(numbered))
    assert look(case, numbered).ok


@FORMATS
@pytest.mark.parametrize(
    ("more", "codes"), [("rare.example", {"hidden-value"}), (PERSON, {"hidden-value", "raw-identifier"})]
)
def test_values_of_a_dictionary_that_no_row_has(case, suffix, tmp_path, more, codes):
    shown = shown_of(case)
    encoded = shown.column("site").combine_chunks().dictionary_encode()
    larger = pa.concat_arrays([encoded.dictionary, pa.array([more], encoded.dictionary.type)])
    place = shown.schema.get_field_index("site")
    shown = shown.set_column(place, "site", pa.DictionaryArray.from_arrays(encoded.indices, larger))
    to_file(shown, tmp_path / f"a{suffix}")
    assert {found.code for found in look(case, tmp_path / f"a{suffix}").violations} == codes
    assert {found.code for found in look(case, shown).violations} == codes


def test_values_under_a_null():
    run = Run(records(150, people=60, missing=0.3))
    shown = tuple_table(run.release, RELEASE)
    assert audit(shown, tuple_table(run.truth, TRUTH), policy=run.promised).ok
    texts = pa.array([value or "person 5" for value in shown.column("tree").to_pylist()])
    nulls = shown.column("tree").combine_chunks()
    under = pa.Array.from_buffers(pa.string(), len(texts), [nulls.buffers()[0], *texts.buffers()[1:]])
    assert under.to_pylist() == nulls.to_pylist()
    place = shown.schema.get_field_index("tree")
    report = audit(shown.set_column(place, "tree", under), tuple_table(run.truth, TRUTH), policy=run.promised)
    assert {found.code for found in report.violations} == {"hidden-value", "raw-identifier"}


def test_values_under_a_null_struct_or_list():
    ranges = pa.StructArray.from_arrays(
        [pa.array([1, 7]), pa.array([2, 9])], ["lo", "hi"], mask=pa.array([False, True])
    )
    lists = pa.ListArray.from_arrays([0, 1, 2], pa.array(["a", PERSON]), mask=pa.array([False, True]))
    for hiding, count in ((ranges, 2), (lists, 1)):
        report = audit(
            pa.table({"items": hiding}), policy={"anonymize": {"method": "k^m", "item": "items", "k": 1, "m": 1}}
        )
        assert [found.count for found in report.violations if found.code == "hidden-value"] == [count]


def test_the_header_of_a_gzip_file(case, tmp_path):
    path = tmp_path / "a.csv.gz"
    rows = [",".join(case.columns), *(",".join(str(row[name]) for name in case.columns) for row in case.release)]
    plain = gzip.compress("".join(f"{row}\n" for row in rows).encode(), mtime=0)
    for flags, more, violations, warnings in (
        (0, b"", set(), set()),
        (8, b"a.csv\x00", set(), set()),
        (8, f"{PERSON}\x00".encode(), {"raw-identifier"}, set()),
        (16, b"nothing\x00", set(), {"unexpected-metadata"}),
        (16, f"{PERSON}\x00".encode(), {"raw-identifier"}, {"unexpected-metadata"}),
        (4, b"\x02\x00ab", set(), {"unexpected-metadata"}),
    ):
        path.write_bytes(plain[:3] + bytes([flags]) + plain[4:10] + more + plain[10:])
        report = look(case, path)
        assert {found.code for found in report.violations} == violations
        assert {found.code for found in report.warnings} == warnings
        second = gzip.compress(b"", mtime=0)
        path.write_bytes(plain + second[:3] + bytes([flags]) + second[4:10] + more + second[10:])
        report = look(case, path)
        assert {found.code for found in report.violations} == violations, "in a second member"
        assert {found.code for found in report.warnings} == warnings


@pytest.mark.parametrize(
    ("more", "codes"), [(b"0.1 seconds", {"hidden-value"}), (PERSON.encode(), {"hidden-value", "raw-identifier"})]
)
def test_bytes_after_the_end_of_an_arrow_stream(case, tmp_path, more, codes):
    path, shown = tmp_path / "a.arrow", shown_of(case)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, shown.schema) as stream:
        stream.write_table(shown)
    assert look(case, path).findings == ()
    path.write_bytes(path.read_bytes() + more)
    assert {found.code for found in look(case, path).violations} == codes
