"""What a study reads off a run: rounds, pools of reusable clusters, crowds; tables and the page."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import OutputError
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import remove_values
from shoal.reproduce.page import Section, write_page
from shoal.reproduce.study import Claim, Table, claims_table
from shoal.reproduce.tuples.running import (
    judge,
    loss_if_imputed_is_lost,
    pool_sizes,
    read_decisions,
    rounds_taken,
    run_method,
)

# Two clusters of two, a row that left by the first of them, a suppressed one.
TRACE = pa.table(
    {
        "row": pa.array([0, 2, 1, 3, 4, 5], pa.int64()),
        "group": pa.array([0, 0, 1, 1, 0, None], pa.int64()),
        "delay": pa.array([3, 1, 3, 1, 3, 2], pa.int64()),
        "reused": pa.array([False, False, False, False, True, None]),
    }
)


def test_rounds_of_a_trace() -> None:
    decisions = read_decisions(TRACE)
    assert decisions.round_of_row.tolist() == [0, 0, 1, 1, 2, 3]
    assert decisions.left.tolist() == [3, 3, 4, 4, 7, 7]
    assert decisions.formed.tolist() == [3, 4]
    # Row 4 arrived after the round of arrival 3, was there in that of arrival 4, and left in the next.
    assert rounds_taken(decisions).tolist() == [1, 1, 2, 2, 2, 2]


def test_clusters_ready_for_reuse() -> None:
    sizes = pool_sizes(read_decisions(TRACE), np.arange(8), reuse=3)
    # Formed after arrivals 3 and 4, each ready from the next on until it is older than 3.
    assert sizes.tolist() == [0, 0, 0, 0, 1, 2, 2, 1]


def test_a_run_and_its_audit() -> None:
    stream = remove_values(imitate_adult(120, seed=1), at_most=2, seed=1)
    settings = {"k": 3, "deadline": 20, "reuse": 5, "missing": "covered"}
    outcome = run_method("fads", stream, settings)
    assert outcome.rows.num_rows + outcome.metrics["suppressed"] == 120
    assert outcome.trace.num_rows == 120
    assert len(read_decisions(outcome.trace).formed) == outcome.metrics["formed"]
    crowds = judge(outcome)
    assert crowds.is_kept
    assert (crowds.below_k_share, crowds.alone_share) == (0, 0)
    assert crowds.smallest is not None
    assert crowds.smallest >= 3


def test_loss_with_filled_in_values_counted_as_lost() -> None:
    stream = remove_values(imitate_adult(150, seed=1), at_most=3, seed=1)
    settings = {"k": 5, "deadline": 40, "reuse": 5, "missing": "paper"}
    k_varp, iot = (run_method(name, stream, settings) for name in ("k-varp", "iot-anonymization"))
    assert loss_if_imputed_is_lost(k_varp) == pytest.approx(k_varp.metrics["loss"]), "nothing is filled in"
    rows = [one["row"] for one in iot.trace.to_pylist() if one["verdict"] == "released"]
    originals, released, expected = stream.table.to_pylist(), iot.rows.to_pylist(), 0.0
    leaves = {role.name: role.hierarchy for role in stream.schema.quasi if hasattr(role, "hierarchy")}
    ranges = {role.name: role.high - role.low for role in stream.schema.quasi if hasattr(role, "high")}
    for row, shown in zip(rows, released, strict=True):
        losses = []
        for name in stream.quasi:
            if originals[row][name] is None:
                losses += [1.0] * (shown[name] is not None)
            elif shown[name] is None:
                losses.append(1.0)
            elif name in ranges:
                losses.append((shown[name]["hi"] - shown[name]["lo"]) / ranges[name])
            else:
                below = leaves[name].leaf_counts[leaves[name].labels.index(shown[name])]
                losses.append((below - 1) / (leaves[name].leaf_counts[0] - 1))
        expected += sum(losses) / len(losses)
    expected = (expected + len(iot.trace) - len(rows)) / len(iot.trace)
    assert loss_if_imputed_is_lost(iot) == pytest.approx(expected)
    assert expected > iot.metrics["loss"]


def test_the_audit_convicts_k_varp_as_published() -> None:
    stream = remove_values(imitate_adult(150, seed=1), at_most=3, seed=1)
    crowds = judge(run_method("k-varp", stream, {"k": 5, "deadline": 40, "reuse": 5, "missing": "paper"}))
    assert not crowds.is_kept
    assert crowds.smallest == 1
    assert crowds.below_k_share > 0.5
    assert 0 < crowds.alone_share <= crowds.below_k_share


# ---- tables and pages


def test_a_table_as_csv(tmp_path: Path) -> None:
    table = Table(
        "losses", "Losses", [{"method": "a, b", "loss": 0.125, "rows": 3}, {"method": "c", "loss": 1.0, "rows": None}]
    )
    table.write(tmp_path)
    with (tmp_path / "losses.csv").open() as file:
        assert list(csv.reader(file)) == [["method", "loss", "rows"], ["a, b", "0.1250", "3"], ["c", "1.0000", ""]]
    with pytest.raises(OutputError, match=r"losses\.csv: cannot be written"):
        table.write(tmp_path / "nowhere")


def test_a_page_escapes_and_folds(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    long = Table("long", "Many <rows>", [{"number": number} for number in range(50)])
    claims = claims_table(
        "claims", [Claim("k < l & so on", "it is", agrees=False, why="because"), Claim("", "", None, "")]
    )
    section = Section("One & two", ["a < b"], ["a.png"], [long, claims])
    page = write_page(tmp_path, title="A <title>", sections=[section]).read_text()
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "<p>a &lt; b</p>" in page
    assert "k &lt; l &amp; so on" in page
    assert "<td>no</td>" in page
    assert "data:image/png;base64,iVBORw==" in page
    assert page.count("<details>") == 1
    with pytest.raises(OutputError):
        write_page(tmp_path / "nowhere", title="", sections=[])
