"""Every notebook in the examples runs from top to bottom; its checks are in its cells."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does; the value of a last expression is what it shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None


def test_there_is_one_for_each_family() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["events", "measurements", "rows", "sets"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    cells = content["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # outputs would grow old
            shown.append(run_cell("".join(cell["source"]), names))
    pages = [one._repr_html_() for one in shown if hasattr(one, "counts") and hasattr(one, "_repr_html_")]
    assert pages
    assert all("<svg" in page for page in pages)
