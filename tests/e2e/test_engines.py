"""Options of one engine that the other would ignore are refused before anything is read."""

from __future__ import annotations

import pytest

from tests.e2e.scene import Scene, shoal


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["run", "--master", "local[2]"], "--master: is for --engine spark"),
        (["doctor", "--master", "local[2]"], "--master: is for --engine spark"),
        (["run", "--shards", "4"], "--shards: is for --engine spark"),
        (["run", "--engine", "spark", "--shards", "0"], "--shards 0: must be from 1 to 10,000"),
        (["audit", "--policy", "p.toml", "--master", "local[2]"], "--master: is for --engine spark"),
        (["attack", "--truth", "in.csv", "--master", "local[2]"], "--master: is for --engine spark"),
        (["run", "--follow"], "--follow and --once are for --engine spark"),
        (["run", "--once"], "--follow and --once are for --engine spark"),
        (["run", "--engine", "spark", "--follow", "--once"], "leave one of them out"),
        (["run", "--engine", "spark", "--upgrade"], "--upgrade: is for runs on one machine"),
        (["run", "--engine", "spark", "--worker", "0"], "--worker: is for runs on one machine"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_of_the_other_engine(scene: Scene, options: list[str], words: str) -> None:
    scene.write_policy()
    ended = shoal(options[0], scene.policy, *options[1:])
    assert ended.code == 2
    assert len(ended.sentences) == 1
    assert words in ended.sentences[0]
    assert not (scene.folder / "out.csv").exists()
