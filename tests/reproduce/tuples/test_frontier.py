"""The frontier of loss against delay."""

from __future__ import annotations

from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.tuples.frontier import draw_frontier, frontier


def test_a_record_for_each_run_and_a_picture(tmp_path):
    stream = imitate_adult(200, seed=1)
    found = list(frontier(stream.table, stream.schema, ["fads", "least-loss"], [20, 60], k=5, reuse=0, key=bytes(16)))
    assert [(one["method"], one["deadline"]) for one in found] == [
        ("fads", 20), ("fads", 60), ("least-loss", 20), ("least-loss", 60)
    ]  # fmt: skip
    assert all(0 < one["loss"] < 1 and 0 < one["delay"] <= one["deadline"] for one in found)
    assert found[3]["loss"] < found[1]["loss"]
    assert found[2]["delay"] < found[3]["delay"]
    draw_frontier(tmp_path / "frontier.png", found, title="Loss against delay")
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
