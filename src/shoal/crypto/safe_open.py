"""Open output files without following symbolic links.

A link planted under the name of an output would otherwise make the run overwrite, truncate or chmod the
file it points to. Only the last component of a path is checked: a folder that is a link was chosen by the user.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

OWNER_ONLY: Final = 0o600
_AS_UMASK_SAYS: Final = 0o666
_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_LINK: Final = "is a symbolic link, which is not followed; remove it, or name another file"
_SPECIAL: Final = "is not a regular file"


def is_regular(path: Path) -> bool:
    """Return whether a regular file exists; raise OSError if it is a link, folder, pipe or device."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    _require_regular(mode, path)
    return True


def create_file(path: Path, *, private: bool = False, replace: bool = True) -> BinaryIO:
    """Open a new, empty file.

    An older regular file of that name is removed, not truncated: another name may lead to it. `replace=False` makes it
    an error if there is one.
    """
    if replace and is_regular(path):
        path.unlink()
    handle = _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _mode(private=private))
    return os.fdopen(handle, "r+b")


def open_existing(path: Path, *, private: bool = False) -> BinaryIO:
    """Open a file to read and write it; `private` removes the permissions of others."""
    handle = _open(path, os.O_RDWR)
    return os.fdopen(_checked(handle, path, private=private), "r+b")


def open_or_create(path: Path, *, private: bool = True) -> int:
    """Return a handle to read and write a file, which is created if missing."""
    return _checked(_open(path, os.O_RDWR | os.O_CREAT, _mode(private=private)), path, private=private)


def open_to_read(path: Path) -> BinaryIO:
    """Open a file that a run has written before."""
    return os.fdopen(_checked(_open(path, os.O_RDONLY), path, private=False), "rb")


def write_file(path: Path, content: bytes | str, *, private: bool = False) -> None:
    """Write a whole file, replacing an older one; text as UTF-8, line ends unchanged."""
    with create_file(path, private=private) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _mode(*, private: bool) -> int:
    return OWNER_ONLY if private else _AS_UMASK_SAYS


def _open(path: Path, flags: int, mode: int = OWNER_ONLY) -> int:
    try:
        return os.open(path, flags | _FLAGS, mode)
    except OSError as error:
        if error.errno == errno.ELOOP or (error.errno == errno.EEXIST and path.is_symlink()):
            raise OSError(errno.ELOOP, _LINK, str(path)) from None
        raise


def _checked(handle: int, path: Path, *, private: bool) -> int:
    try:
        found = os.fstat(handle)
        _require_regular(found.st_mode, path)
        if private and stat.S_IMODE(found.st_mode) != OWNER_ONLY:
            os.fchmod(handle, OWNER_ONLY)  # it existed, open to others
    except BaseException:
        os.close(handle)
        raise
    return handle


def _require_regular(mode: int, path: Path) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, _LINK, str(path))
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, _SPECIAL, str(path))
