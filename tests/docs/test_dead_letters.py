"""Every reason of a dead letter has a row in docs/howto/operations.md, and every row has a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa
import pytest

import shoal.decode
from shoal.decode.base import Decoded
from shoal.decode.columns import misfit_reason
from shoal.decode.csv import CsvDecoder
from shoal.decode.messages import json_parser
from shoal.decode.prepared import with_times
from shoal.decode.zeek import ZeekDecoder
from shoal.hierarchies import Hierarchy
from shoal.methods.release import UNREADABLE
from shoal.methods.schema_reader import tuple_reasons
from shoal.methods.z.reader import reasons_of
from shoal.methods.z.settings import ZSettings
from shoal.pipeline.doctor.sets import _REASONS
from shoal.pipeline.sets.reading import SetReader
from shoal.policy import parse_policy
from shoal.schema import Categorical, Numeric, Schema
from shoal.sources.kafka.shares import Keying
from tests.decode.test_csv import Memory
from tests.docs.pages import ROOT

MODULES = [
    *(f"shoal.decode.{module.name}" for module in iter_modules(shoal.decode.__path__)),
    "shoal.methods.schema_reader", "shoal.methods.z.reader", "shoal.pipeline.sets.reading", "shoal.sanitize.intake",
    "shoal.sources.logged.logged",
]  # fmt: skip
NOT_REASONS = {"_REMEDY", "_HAS_ZONE", "_LINE"}
SETS = {
    "stream": {"person": "who"},
    "source": {"kind": "csv", "path": "in.csv"},
    "anonymize": {"method": "k^m", "item": "site", "k": 2, "m": 1, "generalize": {"balanced": 2}},
    "sink": {"kind": "csv", "path": "out.csv"},
}


def constants() -> Iterator[str]:
    """Sentences that modules which refuse records have as constants."""
    for module in map(import_module, MODULES):
        for name, value in vars(module).items():
            if re.fullmatch("[A-Z_0-9]+", name) and name not in NOT_REASONS:
                several = value.values() if isinstance(value, dict) else [value]
                yield from (one for one in several if isinstance(one, str) and " " in one)


def literals() -> Iterator[str]:
    """Sentences that are written where a record is refused."""
    for path in (ROOT / "src" / "shoal").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "Refus" not in text or path.name == "pass_through.py":  # its source gives every reason
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"Refused", "Refusal"} and node.args:
                last = node.args[-1]
                if isinstance(last, ast.Constant) and isinstance(last.value, str):
                    yield last.value


def computed() -> Iterator[str]:
    """Sentences that functions put together."""
    yield misfit_reason(pa.int64())
    yield misfit_reason(pa.timestamp("us", tz="UTC"))
    for header, data in ((None, b"a,b,c\n1,2\n"), (["a", "b", "c"], b"1,2\n")):
        for part in CsvDecoder(Memory(data), columns=["a"], header=header).batches():
            yield from (one.reason for one in part.refused)
    log = b"#separator \\x09\n#fields\ta\tb\tc\n#types\tstring\tstring\tstring\n1\t2\n"
    for part in ZeekDecoder(Memory(log), columns=["a"]).batches():
        yield from (one.reason for one in part.refused)
    yield from (one.reason for one in json_parser().parse([b"{", b"1"])[1])
    batch = pa.record_batch({"time": [2**62]})
    yield from (one.reason for one in with_times(Decoded(batch, (), {}), "time", "s").refused)
    reader = SetReader(parse_policy(SETS), known=["a"], where="tree", letter=lambda letter, record: None)
    yield reader._unknown
    yield Keying("site").misplaced


def rows() -> list[list[str]]:
    """The cells of both tables of reasons."""
    page = (ROOT / "docs" / "howto" / "operations.md").read_text(encoding="utf-8")
    part = page.split("## Dead letters\n")[1].split("\n## ")[0]
    assert f"`{UNREADABLE}`" in part
    found = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return [cells for cells in found if "`" in cells[0]]


def beginnings() -> list[str]:
    return [text for cells in rows() for text in re.findall("`([^`]+)`", cells[1 if len(cells) == 4 else 0])]


def begins(sentence: str, beginning: str) -> bool:
    return re.match(re.escape(beginning).replace("…", r"\d+"), sentence) is not None


@pytest.fixture(scope="module")
def sentences() -> set[str]:
    return {*constants(), *literals(), *computed()}


def test_every_sentence_is_listed(sentences):
    assert [one for one in sentences if not any(begins(one, known) for known in beginnings())] == []


def test_every_listed_beginning_is_that_of_a_sentence(sentences):
    assert [known for known in beginnings() if not any(begins(one, known) for one in sentences)] == []


def test_every_name_that_letters_are_counted_by_is_listed():
    quasi = [Numeric("<column>", low=0, high=1)], [Categorical("<column>", Hierarchy.from_nested({"any": ["a"]}))]
    settings = ZSettings.for_columns("user", "ts", (), {"attribute": "<column>", "z": 2, "window": "1h"})
    expected = set(reasons_of(settings))
    expected |= {name for one in quasi for name in tuple_reasons(Schema(person="user", quasi=one))}
    expected |= set(_REASONS) - {UNREADABLE}
    assert {cells[0].strip("`") for cells in rows() if len(cells) == 4} == expected
