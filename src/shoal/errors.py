"""What can go wrong, as a tree.

    ShoalError
    ├── PolicyError        a policy or a parameter is wrong; nothing has run        (exit code 2)
    └── RunError           a run failed                                             (exit code 1)
        ├── InputError     the input cannot be read, or lacks what the policy names
        │   └── TruncatedInput   it broke off; everything before that was used
        ├── OutputError    a sink cannot be written
        ├── CheckpointError      a checkpoint is torn, altered or belongs to something else
        ├── VaultError     a key file is missing, too short or does not open what it should
        └── StoreError     a store cannot be used, or a newer version made it

A message names the file, the row and the column, and says what to do. It never contains a person's value.
"""

from __future__ import annotations

from collections.abc import Sequence


class ShoalError(Exception):
    """The root: catch this to catch everything shoal raises on purpose."""

    exit_code = 1


class PolicyError(ShoalError, ValueError):
    """A policy or a parameter is wrong. `problems` lists every one found, not only the first."""

    exit_code = 2

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class RunError(ShoalError):
    """A run failed."""


def missing_extra(what: str, *, package: str, extra: str) -> RunError:
    """The error for a feature whose optional package is not installed."""
    return RunError(f"{what} needs the package {package}: {how_to_install(package, extra)}")


def how_to_install(package: str, extra: str) -> str:
    """The commands that install an optional package; the second one works in a clone of shoal."""
    return f"pip install {package} (or pip install '.[{extra}]' in a clone of shoal)"


class InputError(RunError, ValueError):
    """The input cannot be read, or lacks what the policy names."""


class TruncatedInput(InputError):
    """The input broke off in the middle; everything before that point was used."""


class OutputError(RunError, OSError):
    """A sink cannot be written."""


class CheckpointError(RunError):
    """A checkpoint is torn, altered, or belongs to another policy, key or source."""


class VaultError(RunError):
    """A key is missing or too short, or it does not open what it should."""


class StoreError(RunError):
    """A store cannot be used, is of a newer version, or belongs to another policy or key."""
