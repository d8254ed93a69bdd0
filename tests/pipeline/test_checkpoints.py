"""The checkpoint folder: unique names, which checkpoint counts, and when others are removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.errors import CheckpointError
from shoal.pipeline.checkpoints import Checkpoint, CheckpointFolder, Progress


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[CheckpointFolder]:
    made = CheckpointFolder(tmp_path / "state", warn=lambda sentence: None)
    yield made
    made.release()


def checkpoint(epoch: int) -> Checkpoint:
    return Checkpoint(Progress(policy="p", sources={}, epoch=epoch), b"state")


def names(folder: CheckpointFolder) -> set[str]:
    return {path.name for path in folder.path.glob("checkpoint-*")}


def epoch(found: Checkpoint | None) -> int | None:
    return found and found.progress.epoch


def test_names_are_unique_although_numbers_repeat(folder: CheckpointFolder, tmp_path: Path) -> None:
    """A process that was shut out does not overwrite what its successor wrote."""
    folder.release()
    successor = CheckpointFolder(tmp_path / "state", warn=lambda sentence: None)
    first, second = folder.write(checkpoint(1)), successor.write(checkpoint(2))
    successor.release()
    assert first[:19] == second[:19] == "checkpoint-00000000"
    assert names(folder) == {first, second}


def test_a_process_that_lost_its_folder_while_writing_reports_it(
    folder: CheckpointFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor removes what was unfinished, so the rename fails."""
    real = os.replace

    def take_over_first(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", real)
        successor = CheckpointFolder(tmp_path / "state", warn=lambda sentence: None, take_over=True)
        successor.commit(checkpoint(2), lambda name: None)
        successor.release()
        Path(source).unlink(missing_ok=True)
        real(source, target)

    monkeypatch.setattr(os, "replace", take_over_first)
    with pytest.raises(CheckpointError, match="another process has taken over"):
        folder.write(checkpoint(1))


def test_published_ones_count_and_not_the_newest(folder: CheckpointFolder) -> None:
    first, second, _ = (folder.write(checkpoint(epoch)) for epoch in (1, 2, 3))
    assert epoch(folder.latest()) == 3
    assert epoch(folder.load((second, first))) == 2
    assert names(folder) == {second, first}, "others are removed, or a crash loop would fill the disk"


def test_nothing_published_is_a_first_start_or_an_error(folder: CheckpointFolder) -> None:
    """A second checkpoint exists only if the first was published: then the sink has lost its record."""
    assert folder.load(()) is None
    folder.write(checkpoint(1))
    assert folder.load(()) is None
    folder.write(checkpoint(2))
    with pytest.raises(CheckpointError, match="the sink does not know them"):
        folder.load(())


def test_the_one_before_is_used_if_the_published_one_is_damaged(folder: CheckpointFolder) -> None:
    first, second = (folder.write(checkpoint(epoch)) for epoch in (1, 2))
    (folder.path / second).write_bytes(b"")
    assert epoch(folder.load((second, first))) == 1
    (folder.path / first).unlink()
    with pytest.raises(CheckpointError, match=f"{second}: this checkpoint is damaged.*{first}: .*cannot be read"):
        folder.load((second, first))


def test_nothing_is_removed_before_it_is_published(folder: CheckpointFolder) -> None:
    written = [folder.write(checkpoint(epoch)) for epoch in range(4)]
    assert names(folder) == set(written)
    folder.prune(written[-1])
    assert names(folder) == {written[-1]}
    written.append(folder.write(checkpoint(5)))
    folder.prune(written[-1])
    assert names(folder) == set(written[-2:])


def test_the_one_loaded_stays_with_the_next_one(folder: CheckpointFolder) -> None:
    first, second = (folder.write(checkpoint(epoch)) for epoch in (1, 2))
    folder.load((first,))
    third = folder.write(checkpoint(3))
    folder.prune(third)
    assert names(folder) == {first, third}, second


def test_newer_ones_and_their_temporary_files_stay(folder: CheckpointFolder) -> None:
    """A process that wakes up late does not remove what its successor wrote; older leftovers are removed."""
    mine = folder.write(checkpoint(1))
    of_successor = {"checkpoint-00000001-00000000", "checkpoint-00000002-00000000.tmp"}
    for name in (*of_successor, "checkpoint-00000000-00000000.tmp"):
        (folder.path / name).touch()
    folder.prune(mine)
    assert names(folder) == {mine, *of_successor}


def test_names_of_earlier_versions(folder: CheckpointFolder) -> None:
    name = folder.write(checkpoint(1))
    (folder.path / name).rename(folder.path / "checkpoint-00000000")
    assert epoch(folder.latest()) == 1
    folder.prune(folder.write(checkpoint(2)))
    assert "checkpoint-00000000" in names(folder)
    folder.prune(folder.write(checkpoint(3)))
    assert "checkpoint-00000000" not in names(folder)
