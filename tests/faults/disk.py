"""A disk that can fail at any step: every call that changes it is counted, and one may be the last.

Patched in a child process. Three ways to die at a step: `before` it, `after` it, or `torn`, with half of
what was to be written. `power` is a power cut as hard as fsync allows: whatever was not synced is undone, contents as
well as names. `full` lets this step and all later ones that need room fail.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_REAL = {name: getattr(os, name) for name in ("fsync", "replace", "unlink", "mkdir", "rmdir", "open", "fdopen")}
_TAKES_ROOM = ("create", "write", "mkdir")


class Disk:
    """Counts steps under one folder and makes one of them the last."""

    def __init__(self, root: Path, *, at: int | None = None, how: str = "before") -> None:
        self.root = str(root)
        self.steps: list[str] = []
        self._counting = threading.Lock()
        self._at = at
        self._how = how
        self._synced: dict[int, bytes] = {}
        self._undo: list[tuple[str, Callable[[], None]]] = []

    def install(self) -> None:
        """Take the place of the functions that change a disk."""
        for name in ("fsync", "replace", "unlink", "mkdir", "rmdir", "open", "fdopen"):
            setattr(os, name, getattr(self, f"_{name}"))

    # ---- dying

    def step(self, name: str, path: Any, act: Callable[[], Any], torn: Callable[[], Any] | None = None) -> Any:
        """Do something that changes the disk, or die at it."""
        base = re.sub(r"(checkpoint-\d+)-[0-9a-f]{8}", r"\1", os.path.basename(os.fspath(path)))  # less what is random
        with self._counting:  # several threads write, and each step has a number of its own
            self.steps.append(f"{name} {base}")
            number = len(self.steps)
        is_now = self._at == number
        if self._how == "full" and self._at is not None and number >= self._at and name in _TAKES_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        if is_now and self._how in ("before", "power"):
            self._die()
        if is_now and self._how == "torn":  # threads take turns: the step may be another one that does not write
            if torn is not None:
                torn()
            self._die()
        try:
            return act()
        finally:  # also after a step that failed: a folder may be there already
            if is_now and self._how == "after":
                self._die()

    def _die(self) -> None:
        if self._how == "power":
            self._lose_what_was_not_synced()
        os.kill(os.getpid(), signal.SIGKILL)

    def _lose_what_was_not_synced(self) -> None:
        for _, undo in reversed(self._undo):
            undo()
        for folder, _, names in os.walk(self.root):
            for path in (Path(folder, name) for name in names):
                kept = self._synced.get(path.stat().st_ino)
                if kept is not None:
                    path.write_bytes(kept)

    def _named(self, path: Any, undo: Callable[[], None]) -> None:
        self._undo.append((os.path.dirname(os.path.abspath(path)), undo))

    def _put_back(self, path: Any, content: bytes) -> None:
        Path(path).write_bytes(content)
        self._synced[os.stat(path).st_ino] = content

    # ---- calls of the os module

    def _is_ours(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.abspath(path).startswith(self.root)

    def _open(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        if not self._is_ours(path) or not flags & (os.O_WRONLY | os.O_RDWR):
            return int(_REAL["open"](path, flags, mode, **options))
        is_new = not os.path.exists(path)
        handle = int(
            self.step("create" if is_new else "open", path, lambda: _REAL["open"](path, flags, mode, **options))
        )
        if is_new:
            self._synced[os.fstat(handle).st_ino] = b""
            self._named(path, lambda: Path(path).exists() and _REAL["unlink"](path))
        else:
            self._synced.setdefault(os.fstat(handle).st_ino, Path(path).read_bytes())
        return handle

    def _fdopen(self, handle: int, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = _REAL["fdopen"](handle, mode, *args, **options)
        path = os.readlink(f"/proc/self/fd/{handle}")
        return _File(file, path, self) if mode != "rb" and self._is_ours(path) else file

    def _fsync(self, handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        self.step("fsync", path, lambda: None)  # a killed process loses nothing of this, so it may be skipped
        if os.path.isdir(path):
            self._undo = [(folder, undo) for folder, undo in self._undo if folder != path]
        else:
            self._synced[os.fstat(handle).st_ino] = Path(path).read_bytes()

    def _replace(self, source: Any, target: Any) -> None:
        if not self._is_ours(target):  # compiled kernels are cached like this, once
            _REAL["replace"](source, target)
            return
        before = Path(target).read_bytes() if os.path.exists(target) else None
        self.step("replace", target, lambda: _REAL["replace"](source, target))

        def undo() -> None:
            _REAL["replace"](target, source)
            if before is not None:
                self._put_back(target, before)

        self._named(target, undo)

    def _unlink(self, path: Any, **options: Any) -> None:
        if not self._is_ours(path):
            _REAL["unlink"](path, **options)
            return
        before = Path(path).read_bytes() if os.path.exists(path) else b""
        self.step("unlink", path, lambda: _REAL["unlink"](path, **options))
        self._named(path, lambda: self._put_back(path, before))

    def _mkdir(self, path: Any, mode: int = 0o777, **options: Any) -> None:
        if not self._is_ours(path):
            _REAL["mkdir"](path, mode, **options)
            return
        self.step("mkdir", path, lambda: _REAL["mkdir"](path, mode, **options))
        self._named(path, lambda: _remove_tree(Path(path)))

    def _rmdir(self, path: Any, **options: Any) -> None:
        self.step("rmdir", path, lambda: _REAL["rmdir"](path, **options))
        self._named(path, lambda: _REAL["mkdir"](path))


class _File:
    """A writable file whose writes are steps."""

    def __init__(self, file: Any, path: str, disk: Disk) -> None:
        self._file = file
        self._path = path
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: Any) -> Any:
        return self._disk.step("write", self._path, lambda: self._file.write(data), lambda: self._tear(data))

    def flush(self) -> None:
        self._disk.step("flush", self._path, self._file.flush)

    def truncate(self, size: int) -> Any:
        return self._disk.step("truncate", self._path, lambda: self._file.truncate(size))

    def _tear(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        self._file.write(view[: len(view) // 2])
        self._file.flush()


def _remove_tree(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            _remove_tree(path)
        else:
            _REAL["unlink"](path)
    _REAL["rmdir"](folder)
