"""Checkpoints on disk: complete or absent, sealed, and tied to one policy, key and source.

A checkpoint is a file ``checkpoint-NNNNNNNN-xxxxxxxx``: magic, length of the sealed progress, the sealed progress, the
sealed snapshot of the method. The number grows; the rest is random, so that a process which was shut out never
overwrites a checkpoint of its successor. The last two that were published are kept: if the newest is damaged, the one
before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from shoal.crypto.keys import (
    Secret,
    is_ours_alone,
    new_secret,
    old_secret_from_environment,
    secret_from_environment,
    secret_from_file,
    warning_about,
)
from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import create_file
from shoal.crypto.sealing import SealBroken, WrongKey, seal, unseal
from shoal.errors import CheckpointError, OutputError, VaultError
from shoal.methods.settings import Duration
from shoal.pipeline.ownership import Ownership
from shoal.sinks.durable import make_folder, output_error

_MAGIC: Final = b"SHOALCKPT3"
_OLD_MAGICS: Final = (b"SHOALCKPT1", b"SHOALCKPT2")
_HEAD: Final = struct.Struct("<10sQ")
_NAME: Final = re.compile(r"checkpoint-(\d{8,})(-[0-9a-f]{8})?(?P<unfinished>\.tmp)?")
"""Earlier versions wrote no random part."""
_PURPOSE: Final = "checkpoint"
_FAR: Final = 1_000_000
KEY_NAME: Final = "key"

Phase = Literal["reading", "finishing", "done"]


@dataclass(frozen=True)
class Progress:
    """The progress of a run: everything but the state of the method."""

    policy: str
    sources: dict[str, str]
    phase: Phase = "reading"
    epoch: int = 0
    """Checkpoints written before."""
    position: dict[str, Any] | None = None
    """Of the source."""
    advance_to: int | None = None
    """Time (ns) to pass to the method after this checkpoint, before anything else is read."""
    receipts: dict[str, Any] = field(default_factory=dict)
    """The receipt of every output."""
    near: dict[str, dict[str, int]] = field(default_factory=dict)
    """By column: labels of its hierarchy, and how many refused values differ from each only in case or spaces."""
    failure: str | None = None
    """Why reading ended early, if it did."""
    since: str | None = None
    """When a live run was started for the first time, or upgraded."""
    sections: dict[str, str] = field(default_factory=dict)
    """A fingerprint of each section of the policy, for an upgrade."""
    upgrade_to: str | None = None
    """The policy to which an upgrade was begun."""
    rows_before: int = 0
    """Records that were read before the last upgrade."""
    later_keys: dict[str, str] = field(default_factory=dict)
    """Keys that replace the first one for pseudonyms: marks of them, by the time (ns) from which each counts."""


@dataclass(frozen=True)
class Checkpoint:
    """A run that can be resumed."""

    progress: Progress
    snapshot: bytes


class CommitTimer:
    """Decides when the next checkpoint is due, by rows or by time; never if `every` is None."""

    def __init__(self, every: Duration | int | None) -> None:
        self._every = every
        self.restart(0)

    def restart(self, rows: int) -> None:
        """Start again: a checkpoint was written after this many rows."""
        self._rows, self._time = rows, time.perf_counter()

    def is_due(self, rows: int) -> bool:
        """Whether a checkpoint is due after this many rows."""
        if self._every is None:
            return False
        if isinstance(self._every, Duration):
            return time.perf_counter() - self._time >= self._every.ns / 1e9
        return rows - self._rows >= self._every


class CheckpointFolder:
    """The folder of one run's checkpoints; one process at a time uses it."""

    def __init__(self, path: Path, *, warn: Callable[[str], None], take_over: bool = False) -> None:
        self.path = path
        self._warn = warn
        with output_error(path):
            make_folder(path, mode=0o700)
        self._ownership = Ownership(path, take_over=take_over)
        try:
            self.secret = self._find_secret()
        except BaseException:
            self.release()
            raise
        self.opened_with = self.secret
        """The key of the checkpoint that was loaded."""
        self._number = max((number for number, _ in self._found()), default=-1)
        if take_over:  # whatever the other process still writes is older
            self._number += _FAR
        self._before: str | None = None
        """The last checkpoint that counts: loaded, or published."""

    def _find_secret(self) -> Secret:
        """The key of SHOAL_KEY_FILE, else the one next to the checkpoints, created if there is none."""
        given = secret_from_environment()
        if given is not None:
            return given
        path = self.path / KEY_NAME
        is_first = not any(self._found())
        if not os.path.lexists(path):
            if not is_first:
                raise CheckpointError(
                    f"{path}: the key of these checkpoints is missing; put it back, or set SHOAL_KEY_FILE to their key"
                )
            self._make_key(path)
        elif is_first:
            self._require_own_key(path)
        warning = warning_about(path)
        if warning:
            self._warn(warning)
        return secret_from_file(path)

    def _require_own_key(self, path: Path) -> None:
        """A key without a checkpoint is left by a first run that was killed, or was put there by someone else."""
        with output_error(path):
            is_ours = is_ours_alone(path)
        if not is_ours:
            raise CheckpointError(
                f"{path}: this key was here before the first checkpoint, and it is a link, or others own it or can "
                "read it; remove it so that a new key is made, or keep yours elsewhere and set SHOAL_KEY_FILE to it"
            )

    def _make_key(self, path: Path) -> None:
        temporary = path.with_name("key.tmp")
        temporary.unlink(missing_ok=True)
        new_secret().write_to(temporary)
        os.replace(temporary, path)
        sync_folder(self.path)

    def release(self) -> None:
        """Unlock the folder for another run."""
        self._ownership.release()

    def require_own(self) -> None:
        """Raise CheckpointError if another process has taken over."""
        self._ownership.require()

    def latest(self) -> Checkpoint | None:
        """The newest complete checkpoint; None if there never was one."""
        return self._first_complete([path for _, path in sorted(self._found(), reverse=True)])

    def load(self, names: Sequence[str]) -> Checkpoint | None:
        """The first complete one of these checkpoints, which a sink has published; None if it never published any.

        Others do not count, however new they are, and are removed: a run that is killed again and again before it can
        publish must not fill the disk.
        """
        if not names:
            self._require_first_start()
        found = self._first_complete([self.path / name for name in names])
        self._remove_except(*names)
        return found

    def _require_first_start(self) -> None:
        found = self.latest()
        if found is not None and found.progress.epoch > 1:  # a second one is written only after the first was published
            raise CheckpointError(
                f"{self.path}: there are checkpoints of a run that has published, but the sink does not know them; it "
                "may be another cluster, or the sink has forgotten its offsets. To start over, name another checkpoint "
                "folder and another place to write to"
            )
        self._before = None

    def _first_complete(self, paths: Sequence[Path]) -> Checkpoint | None:
        damaged: list[tuple[Path, VaultError]] = []
        for path in paths:
            try:
                checkpoint = self._read(path)
            except (SealBroken, WrongKey) as error:
                damaged.append((path, error))
                continue
            for bad, why in damaged:  # the key is the right one: it opened this one
                reason = "the mark of its key is altered" if isinstance(why, WrongKey) else why
                self._warn(f"{bad}: this checkpoint is damaged ({reason}); using the one before it")
            self._before = path.name
            return checkpoint
        if damaged:
            raise _none_is_whole(damaged)
        return None

    def _read(self, path: Path) -> Checkpoint:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SealBroken(f"it cannot be read: {error.strerror}") from None
        if data.startswith(_OLD_MAGICS):
            raise CheckpointError(
                f"{path}: was written by an older version of shoal; finish the run with that version, or start over "
                "with a new checkpoint folder"
            )
        if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
            raise SealBroken("its beginning is lost")
        _, length = _HEAD.unpack_from(data)
        sealed, snapshot = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
        content = json.loads(self._unsealed(sealed))
        if _digest(snapshot) != content["snapshot"]:
            raise SealBroken("its end is lost or altered")
        return Checkpoint(Progress(**content["progress"]), snapshot)

    def _unsealed(self, sealed: bytes) -> bytes:
        try:
            self.opened_with = self.secret
            return unseal(self.secret, sealed, purpose=_PURPOSE)
        except WrongKey:
            old = old_secret_from_environment()
            if old is None:
                raise
            opened, self.opened_with = unseal(old, sealed, purpose=_PURPOSE), old
            return opened

    @property
    def has_old_key(self) -> bool:
        """Whether the loaded checkpoint is sealed with the key of SHOAL_OLD_KEY_FILE."""
        return not self.opened_with.same_as(self.secret)

    def write(self, checkpoint: Checkpoint) -> str:
        """Add a checkpoint and return its name; it is durable when this returns, and all others still exist."""
        content = {"progress": asdict(checkpoint.progress), "snapshot": _digest(checkpoint.snapshot)}
        sealed = seal(self.secret, json.dumps(content, sort_keys=True).encode(), purpose=_PURPOSE)
        self._number += 1
        path = self.path / f"checkpoint-{self._number:08d}-{secrets.token_hex(4)}"
        try:
            with output_error(path):
                self._put(path, (_HEAD.pack(_MAGIC, len(sealed)), sealed, checkpoint.snapshot))
        except OutputError:
            self.require_own()  # a process that has taken over removes unfinished checkpoints
            raise
        return path.name

    def commit(self, checkpoint: Checkpoint, show: Callable[[str], None], *, copies: int = 1) -> None:
        """Write a checkpoint; only when it is durable, `show` what belongs to it; only then remove older ones."""
        for _ in range(copies):
            name = self.write(checkpoint)
            self.require_own()
            show(name)
            self.prune(name)

    def prune(self, published: str) -> None:
        """Keep the checkpoint published now and the one before it; remove older ones and what killed runs left.

        Newer ones stay: they can only be those of a process that has taken over.
        """
        self._remove_except(published, self._before)
        self._before = published

    def repeat(self, loaded: Checkpoint) -> None:
        """Write the loaded checkpoint once more, so that both that are kept have the same content."""
        others = sorted(path.name for _, path in self._found() if path.name != self._before)
        self._remove_except(self._before, *others[-1:])  # what a crash loop left
        self.prune(self.write(loaded))

    def _remove_except(self, *names: str | None) -> None:
        with output_error(self.path):
            for number, path in self._found(unfinished=True):
                if number <= self._number and path.name not in names:
                    path.unlink(missing_ok=True)

    def _put(self, path: Path, parts: tuple[bytes, ...]) -> None:
        temporary = path.with_name(path.name + ".tmp")
        with create_file(temporary, private=True) as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(self.path)

    def _found(self, *, unfinished: bool = False) -> list[tuple[int, Path]]:
        """Checkpoints and their numbers, with or without those that a killed run did not finish."""
        matches = ((_NAME.fullmatch(path.name), path) for path in self.path.iterdir())
        return [(int(match[1]), path) for match, path in matches if match and (unfinished or not match["unfinished"])]


def require_same_policy(progress: Progress, *, policy: str, folder: Path) -> None:
    """Raise CheckpointError if a checkpoint is of another policy."""
    if progress.upgrade_to is not None:
        raise CheckpointError(f"{folder}: an upgrade was begun; complete it with the new policy and --upgrade")
    if progress.policy != policy:
        raise CheckpointError(
            f"{folder}: these checkpoints are of another policy; use another folder, or the policy they were made "
            "with; --upgrade continues with a changed [stream] or [anonymize]"
        )


def require_same_sources(progress: Progress, sources: dict[str, str]) -> None:
    """Raise CheckpointError if the sources have changed since a checkpoint."""
    changed = [name for name, mark in sources.items() if progress.sources.get(name) != mark]
    changed += [name for name in progress.sources if name not in sources]
    if changed:
        raise CheckpointError(
            f"{changed[0]}: has changed since the checkpoint (size, time of change or content); "
            "put the file back as it was, or start over with a new folder and a new output"
        )


def _none_is_whole(damaged: list[tuple[Path, VaultError]]) -> CheckpointError:
    foreign = [f"{path}: {error}" for path, error in damaged if isinstance(error, WrongKey)]
    if foreign:
        return CheckpointError(foreign[0])
    listed = "; ".join(f"{path}: this checkpoint is damaged ({error})" for path, error in damaged)
    return CheckpointError(f"{listed}; no complete one is left. Remove the folder and the output to start over")


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()
