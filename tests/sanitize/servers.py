"""A temporary PostgreSQL server: in a folder that is deleted afterwards, on a socket in it, as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path

BINARIES = (*sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True), "")


def find(name: str) -> str | None:
    """Find a program of PostgreSQL."""
    places = [str(Path(folder) / name) for folder in BINARIES if folder]
    return next((place for place in places if os.access(place, os.X_OK)), None) or shutil.which(name)


def why_not() -> str | None:
    """The reason why no server can be started; None if one can."""
    missing = [name for name in ("initdb", "pg_ctl", "postgres") if find(name) is None]
    if missing:
        return f"PostgreSQL is not tested: there is no {' and no '.join(missing)} on this machine"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "PostgreSQL is not tested: the package psycopg is not installed"
    if os.geteuid() == 0 and _unprivileged() is None:
        return "PostgreSQL is not tested: it refuses to run as root, and there is no other user to run it as"
    return None


def _unprivileged() -> pwd.struct_passwd | None:
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names.get("nobody")


@contextmanager
def server() -> Iterator[tuple[str, Path]]:
    """A running server: its URL and the folder of its files."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-pg-"))
    user = _unprivileged() if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    data = folder / "data"

    def call(*command: str) -> None:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)

    control = str(find("pg_ctl"))
    try:
        call(
            str(find("initdb")), "-D", str(data), "-A", "trust", "-U", "shoal", "-E", "UTF8", "--no-locale", "--no-sync"
        )
        options = f"-k {folder} -c listen_addresses='' -F"
        call(control, "-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "start")
        try:
            yield f"postgresql:///postgres?host={folder}&user=shoal", data
        finally:
            call(control, "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
