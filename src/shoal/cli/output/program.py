"""How the user calls this program: `shoal` if the shell finds it, else the path or the module."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """The word to type for `shoal` here."""
    called = Path(sys.argv[0])
    if called.name != "shoal":
        return "shoal" if shutil.which("shoal") else f"{from_here(Path(sys.executable))} -m shoal.cli"
    found = shutil.which("shoal")
    is_found = found is not None and Path(found).resolve() == called.resolve()
    return "shoal" if is_found else from_here(called)


def command_line(*words: str | Path) -> str:
    """A call of this program to type, with quotes where a shell needs them."""
    return f"{program()} {shlex.join(map(str, words))}"


def how_to_call() -> list[str]:
    """A line about activating the environment, if the shell does not find `shoal`."""
    activate = Path(sys.prefix) / "bin" / "activate"
    if program() == "shoal" or not activate.is_file():
        return []
    return [f"               (source {from_here(activate)} makes it `shoal`)"]


def from_here(path: str | Path) -> str:
    """A path as seen from the current folder, if it is below it or below the folder above; other texts as they are."""
    if not os.path.isabs(path):
        return str(path)
    absolute, here = os.path.abspath(path), os.getcwd()  # links stay: an environment's python is one
    near = (here, os.path.dirname(here))
    is_near = any(absolute.startswith(folder.rstrip(os.sep) + os.sep) for folder in near if folder != os.sep)
    return os.path.relpath(absolute) if is_near else absolute
