"""Output files are opened without following links; what a link points to is neither emptied nor made private."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.crypto.private_files import destroy, only_one, replace_private
from shoal.crypto.safe_open import create_file, is_regular, open_existing, open_or_create, open_to_read, write_file
from shoal.errors import ShoalError
from shoal.figures.lines import save
from shoal.reproduce.page import write_page
from shoal.reproduce.study import Table
from shoal.sanitize.keyring import new_keyring
from shoal.sanitize.pii import SealedHashes
from shoal.sanitize.stores.sqlite import SqliteStore
from shoal.sanitize.tags import as_blocks
from shoal.testing.visits import make_visits, write_visits_csv

CONTENT = b"somebody's file"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that is not an output."""
    path = tmp_path / "victim"
    path.write_bytes(CONTENT)
    path.chmod(0o644)
    return path


class Figure:
    """As much of a figure as is needed to save one."""

    def savefig(self, out: Any, **_: Any) -> None:
        if isinstance(out, str | os.PathLike):
            Path(out).write_bytes(b"png")
        else:
            out.write(b"png")


def hold(path: Path) -> None:
    with only_one(path):
        pass


WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "created": ("out", create_file),
    "reopened": ("out", open_existing),
    "opened or created": ("out", open_or_create),
    "read": ("out", open_to_read),
    "written": ("out", lambda path: write_file(path, "text", private=True)),
    "private": ("out.tmp", lambda path: replace_private(path.with_name("out"), b"data")),
    "destroyed": ("out", destroy),
    "lock": ("out.lock", hold),
    "hashes": ("out", lambda path: SealedHashes(path, new_keyring()).add(as_blocks(b"x" * 32, 32))),
    "database": ("out", lambda path: SqliteStore("internal", path, private=True)),
    "figure": ("out.png", lambda path: save(Figure(), path)),
    "page": ("index.html", lambda path: write_page(path.parent, title="t", sections=[])),
    "table": ("out.csv", lambda path: Table("out", "", [{"a": 1}]).write(path.parent)),
    "visits": ("out.csv", lambda path: write_visits_csv(path, make_visits(people=3, events=9, seed=1))),
}


@pytest.mark.parametrize("what", WRITERS)
def test_no_output_follows_a_link(tmp_path: Path, victim: Path, what: str) -> None:
    name, write = WRITERS[what]
    (tmp_path / name).symlink_to(victim)
    with pytest.raises((OSError, ShoalError), match="symbolic link"):
        write(tmp_path / name)
    assert victim.read_bytes() == CONTENT
    assert mode_of(victim) == 0o644
    assert (tmp_path / name).is_symlink()


@pytest.mark.parametrize("what", sorted(set(WRITERS) - {"reopened", "read", "destroyed"}))
def test_nothing_is_made_where_a_link_leads_nowhere(tmp_path: Path, what: str) -> None:
    name, write = WRITERS[what]
    (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises((OSError, ShoalError), match="symbolic link"):
        write(tmp_path / name)
    assert not (tmp_path / "nowhere").exists()


def test_a_linked_folder_is_the_users_choice(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    write_file(tmp_path / "linked" / "out", "text")
    assert (tmp_path / "real" / "out").read_text() == "text"


def test_an_older_file_is_replaced_not_emptied(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "out").hardlink_to(victim)
    write_file(tmp_path / "out", "new", private=True)
    assert (tmp_path / "out").read_text() == "new"
    assert mode_of(tmp_path / "out") == 0o600
    assert victim.read_bytes() == CONTENT
    assert mode_of(victim) == 0o644


def test_not_replaced_where_that_is_not_wanted(victim: Path) -> None:
    with pytest.raises(FileExistsError):
        create_file(victim, replace=False)


def test_modes(tmp_path: Path, victim: Path) -> None:
    previous = os.umask(0o022)
    try:
        for private, mode in ((True, 0o600), (False, 0o644)):
            create_file(tmp_path / "new", private=private).close()
            assert mode_of(tmp_path / "new") == mode
        open_existing(victim).close()
        assert mode_of(victim) == 0o644
        open_existing(victim, private=True).close()
        assert mode_of(victim) == 0o600
    finally:
        os.umask(previous)


def test_folders_and_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for write in (create_file, open_existing, open_or_create, is_regular):
        with pytest.raises(OSError, match="not a regular file"):
            write(tmp_path / "pipe")  # type: ignore[operator]
        with pytest.raises(IsADirectoryError):
            write(tmp_path)  # type: ignore[operator]
    assert not is_regular(tmp_path / "nothing")
