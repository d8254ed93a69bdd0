"""What a run writes: never through a link, for the owner alone where it is private; and keys that others can read."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.scene import Scene, encode, shoal

CONTENT = b"somebody's file"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file that no run may touch."""
    path = tmp_path / "victim"
    path.write_bytes(CONTENT)
    path.chmod(0o644)
    yield path
    assert path.read_bytes() == CONTENT
    assert mode_of(path) == 0o644


def sections(**others: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"trace": {"path": "trace.parquet"}, "checkpoint": {"path": "state"}, **others}


LINKS = [
    "out.csv", "out.csv.partial", "out.csv.dead.jsonl", "trace.parquet", "trace.parquet.parts/.part-00000.parquet.tmp",
    "state/lock", "state/key",
]  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_a_run_follows_no_link(scene: Scene, victim: Path, name: str) -> None:
    scene.sections |= sections()
    place = scene.folder / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim)
    ended = scene.run()
    if name.startswith("trace.parquet.parts"):
        assert ended.code == 0, "a left-over temporary file is removed, and so is a link"
        return
    assert ended.code == 1
    assert len(ended.sentences) == 1
    assert place.name in ended.err
    assert "a symbolic link" in ended.err or "is a link" in ended.err
    assert place.is_symlink()


def test_a_refused_link_creates_no_file(scene: Scene, victim: Path) -> None:
    scene.sections["trace"] = {"path": "trace.parquet"}
    (scene.folder / "trace.parquet").symlink_to(victim)
    assert scene.run().code == 1
    assert not list(scene.folder.glob("*.partial"))


def test_the_doctor_reports_a_link_before_the_run(scene: Scene, victim: Path) -> None:
    (scene.folder / "out.csv").symlink_to(victim)
    scene.write_policy()
    ended = shoal("doctor", scene.policy)
    assert ended.code == 1
    assert b"out.csv: is a symbolic link, which is not followed" in ended.out


@pytest.mark.parametrize(
    ("key", "path", "sentence"),
    [
        ("sink", "file/out.csv", "a part of the path is a file, not a folder"),
        ("sink", "file/", "is a file where a folder is needed"),
        ("sink", "x" * 250 + ".csv", "the name is too long"),
        ("sink", "parts/", "more.csv: is among the parts but was not written by this run"),
        ("trace", "file/trace.parquet", "a part of the path is a file, not a folder"),
        ("dead_letters", "file/dead.jsonl", "a part of the path is a file, not a folder"),
        ("checkpoint", "file", "is a file where a folder is needed"),
        ("checkpoint", "file/state", "a part of the path is a file, not a folder"),
    ],
)
def test_the_doctor_finds_what_cannot_be_written(scene: Scene, key: str, path: str, sentence: str) -> None:
    """As the run does."""
    scene.write("file", "")
    (scene.folder / "parts").mkdir()
    scene.write("parts/more.csv", "")
    scene.sections[key] = {**scene.sections.get(key, {}), "path": path}
    ended = scene.run()
    assert ended.code == 1
    assert sentence in ended.err
    ended = shoal("doctor", scene.policy)
    assert ended.code == 1
    assert sentence in ended.out.decode()


@pytest.mark.parametrize("with_truth", [True, False])
def test_a_report_on_private_input_is_private(scene: Scene, with_truth: bool) -> None:
    scene.run()
    truth = ["--truth", "in.csv"] if with_truth else []
    ended = shoal("report", "out.csv", "--policy", scene.policy, *truth, "--out", "report")
    assert ended.code == 0, ended.err
    made = {path.name: mode_of(path) for path in (scene.folder / "report").iterdir()}
    assert set(made) == {"windows.csv", "costs.csv", "windows.png"}
    assert {mode & 0o077 == 0 for mode in made.values()} == {with_truth}


@pytest.mark.parametrize("name", ["windows.csv", "costs.csv", "windows.png"])
def test_a_report_follows_no_link(scene: Scene, victim: Path, name: str) -> None:
    scene.run()
    (scene.folder / "report").mkdir()
    (scene.folder / "report" / name).symlink_to(victim)
    ended = shoal("report", "out.csv", "--policy", scene.policy, "--out", "report")
    assert ended.code == 1
    assert f"{name}: " in ended.err
    assert "is a symbolic link" in ended.err


@pytest.mark.parametrize("name", ["visits.csv", "policy.toml"])
def test_the_demo_follows_no_link(scene: Scene, victim: Path, name: str) -> None:
    (scene.folder / name).symlink_to(victim)
    ended = shoal("demo", "--out", scene.folder, "--people", "20", "--events", "50")
    assert ended.code == 1
    assert f"{name}: is a symbolic link" in ended.err


class TestReadableKey:
    """Everything that reads the key warns where others can read it, too."""

    @pytest.fixture
    def sentence(self, key: Path) -> str:
        key.chmod(0o644)
        return f"{key}: this key can be read or changed by others (mode 0644); run: chmod 600 {key}"

    def test_run(self, scene: Scene, sentence: str) -> None:
        ended = scene.run("--json", "--quiet")
        assert ended.code == 0
        assert ended.sentences == [f"shoal: warning: {sentence}"]
        assert ended.summary["warnings"] == [sentence]

    def test_run_on_sets(self, scene: Scene, sentence: str) -> None:
        scene.sections |= {
            "stream": {"person": "user"},
            "anonymize": {"method": "k^m", "item": "site", "k": 2, "m": 1, "generalize": {"balanced": 2}},
        }
        scene.write("in.csv", encode("csv", [{"user": str(n), "site": "ab"[n % 2]} for n in range(8)]))
        ended = scene.run("--json", "--quiet")
        assert ended.code == 0, ended.err
        assert ended.sentences == [f"shoal: warning: {sentence}"]
        assert ended.summary["warnings"] == [sentence]

    def test_doctor(self, scene: Scene, sentence: str) -> None:
        scene.write_policy()
        assert f"look   key          {sentence}" in shoal("doctor", scene.policy).out.decode()

    def test_audit_of_a_sealed_trace(self, scene: Scene, sentence: str) -> None:
        scene.sections |= {"trace": {"path": "trace.parquet"}}
        scene.run()
        ended = shoal("audit", "out.csv", "--truth", "in.csv", "--trace", "trace.parquet", "--policy", scene.policy)
        assert ended.code == 0
        assert ended.sentences == [f"shoal: warning: {sentence}"]

    def test_private_again(self, scene: Scene, sentence: str, key: Path) -> None:
        key.chmod(0o600)
        assert scene.run("--quiet").err == ""
