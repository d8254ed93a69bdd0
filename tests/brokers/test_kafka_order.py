"""What is published does not depend on how partitions are fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.forker import ENDED, Forker
from tests.brokers.kafka_scene import Stage
from tests.brokers.kafka_server import Kafka


@pytest.mark.parametrize("partitions", [1, 4, 16])
@pytest.mark.parametrize("method", ["z", "least-loss", "flexible"])
def test_any_fetch_size(kafka: Kafka, kafka_forker: Forker, tmp_path: Path, method: str, partitions: int) -> None:
    stage = Stage(kafka, kafka_forker, tmp_path, method, partitions, rows=600, commits=1)
    for fetch in (1, 7, 20_000):
        scene = stage.scene()
        assert scene.run(fetch=fetch) in ENDED, scene.errors
        assert scene.result() == stage.expected


def test_partitions_that_are_ahead_are_paused(kafka: Kafka, kafka_forker: Forker, tmp_path: Path) -> None:
    """Few records may wait in memory; a partition that is paused and resumed loses and repeats none."""
    stage = Stage(kafka, kafka_forker, tmp_path, "z", partitions=3, is_skewed=True)
    for pending in (1, 25):
        scene = stage.scene()
        assert scene.run(fetch=7, pending=pending) in ENDED, scene.errors
        assert scene.result() == stage.expected
