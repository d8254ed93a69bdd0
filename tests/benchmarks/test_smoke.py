"""Every benchmark runs, at tiny sizes, and gives tables that make sense."""

from __future__ import annotations

import ast
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.measure import TIME_COLUMNS

import benchmarks
from tests.reference.effort import some_by_default

FOLDER = Path(benchmarks.__file__).parent
NOT_MEASURING = {"__main__", "fill", "compare", "compare_worker"}
NUMBERS = re.compile(r"(?<![\w.])(nan|inf)(?![\w.])", re.IGNORECASE)
SPEEDS = re.compile(r"per second of wall clock|per processor second|\bseconds\b")


def has_main(path):
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in ast.parse(path.read_text()).body)


NAMES = [path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem not in NOT_MEASURING and has_main(path)]

USUAL = (
    "z_speed",
    "z_model",
    "tuples_speed",
    "tuples_loss",
    "sets_speed",
    "flexible_speed",
    "flexible_compare",
    "limits",
)
"""Of every family, and one for each way of measuring. All the others run in `make test-all`."""

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_is_found_by_its_name(name, capsys):
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name}").main(["--help"])
    assert ended.value.code == 0
    assert "--tiny" in capsys.readouterr().out


@pytest.mark.parametrize("name", some_by_default(NAMES, USUAL))
def test_a_benchmark_runs_and_its_tables_make_sense(name, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    import_module(f"benchmarks.{name}").main(["--tiny", "--out", str(tmp_path)])
    assert len(capsys.readouterr().out.splitlines()) > 1
    result = json.loads((tmp_path / f"{name}.json").read_text())
    assert result["command"] == f"python -m benchmarks.{name} --tiny"
    assert f"benchmarks/{name}.py" in result["sources"]
    assert result["data"]
    assert result["blocks"]
    for block in result["blocks"].values():
        check_block(block)


def check_block(block):
    """Rows are as wide as the head, no number is missing, and seconds are always reported in both kinds."""
    if "text" in block:
        assert block["text"]
        return
    assert block["rows"]
    for row in block["rows"]:
        assert len(row) == len(block["columns"])
        assert not NUMBERS.search(" ".join(row))
        assert any(re.search(r"\d|–", cell) for cell in row)
    head = " | ".join([*block["columns"], *(row[0] for row in block["rows"])])
    if SPEEDS.search(head) and "wall clock" in head:
        assert "processor" in head
    for column in TIME_COLUMNS:
        if column in block["columns"]:
            at = block["columns"].index(column)
            assert all(float(row[at].replace(",", "")) > 0 for row in block["rows"])


def test_benchmarks_are_found():
    assert set(USUAL) <= set(NAMES)
