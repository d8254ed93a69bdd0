"""A wrong policy: exit code 2, every problem named by its key, and nothing is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene, shoal


def refused(scene: Scene, *texts: str) -> None:
    before = sorted(scene.folder.iterdir())
    ended = scene.run("--json")
    assert ended.code == 2, ended.err
    assert ended.out == b""
    assert all(sentence.startswith("shoal: ") for sentence in ended.sentences)
    for text in texts:
        assert text in ended.err
    assert sorted(path for path in scene.folder.iterdir() if path != scene.policy) == before


@pytest.mark.parametrize(
    ("section", "key", "value", "text"),
    [
        ("anonymize", "z", 0, "must be at least 1"),
        ("anonymize", "z", -3, "must be at least 1"),
        ("anonymize", "z", "two", "whole number"),
        ("anonymize", "window", -5, "cannot be negative"),
        ("anonymize", "window", "-5s", "not a duration"),
        ("anonymize", "window", 0, "longer than 0"),
        ("anonymize", "lateness", "soon", "not a duration"),
        ("anonymize", "method", "magic", "z-anonymity"),
        ("anonymize", "zz", 3, 'did you mean "z"?'),
        ("source", "kind", "xml", "csv"),
        ("source", "patth", "in.csv", 'did you mean "path"?'),
        ("sink", "delimiter", "ab", "one ASCII character"),
        ("sink", "path", "in.csv", "the same place as [source] path"),
        ("dead_letters", "path", "in.csv", "the same place as [source] path"),
        ("trace", "path", "out.csv", "the same place as [sink] path"),
    ],
)
def test_a_wrong_value(scene: Scene, section: str, key: str, value: Any, text: str) -> None:
    scene.sections.setdefault(section, {})[key] = value
    refused(scene, f"[{section}] {key}", text)


def test_a_link_to_the_source_is_the_source(scene: Scene) -> None:
    (scene.folder / "link.csv").symlink_to(scene.folder / "in.csv")
    scene.sections["sink"]["path"] = "link.csv"
    refused(scene, "the same place as [source] path")


@pytest.mark.parametrize("name", ["out.arrow.gz", "out.parquet.zst"])
def test_an_ending_that_would_lie(scene: Scene, name: str) -> None:
    scene.sections["sink"] = {"kind": name.split(".")[1], "path": name}
    refused(scene, "[sink] path", "leave out the ending")


def test_an_arrow_file_is_not_compressed(scene: Scene) -> None:
    scene.sections["sink"] = {"kind": "arrow", "path": "out.arrow", "compression": "zstd"}
    refused(scene, "[sink] compression", "leave it out")


def test_all_problems_at_once(scene: Scene) -> None:
    scene.sections["anonymize"].update(z=0, window="no")
    scene.sections["sink"]["oops"] = 1
    refused(scene, "[anonymize] z", "[anonymize] window", "[sink] oops")


def test_no_policy(tmp_path: Path) -> None:
    ended = shoal("run", tmp_path / "nowhere.toml")
    assert ended.code == 2
    assert ended.sentences == [f"shoal: {tmp_path / 'nowhere.toml'}: does not exist; check the path of the policy"]


def test_broken_toml(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[stream]\nperson = \n")
    ended = shoal("run", path)
    assert ended.code == 2
    assert ended.err.startswith(f"shoal: {path}: line 2, column 10: is not TOML")


@pytest.mark.parametrize("args", [["run"], ["nonsense"], ["run", "policy.toml", "--nonsense"]])
def test_wrong_usage(args: list[str]) -> None:
    assert shoal(*args).code == 2


@pytest.mark.parametrize("command", ["run", "doctor", "audit", "demo"])
def test_help(command: str) -> None:
    ended = shoal(command, "--help")
    assert ended.code == 0
    assert b"Examples" in ended.out
