"""Keys that change while a stream goes on: only from a time on that no published row has reached.

A key file may name a later key and the time from which it counts. Pseudonyms change with the first epoch that starts
then. That is a function of a row's time alone, so a run that is killed and resumed decides alike, and so do workers.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from shoal.crypto.keys import KEY_FILE_VARIABLE, Secret, moment
from shoal.crypto.safe_open import open_or_create
from shoal.errors import CheckpointError
from shoal.methods.base import StreamMethod
from shoal.sinks.durable import make_folder, output_error

MARKS_NAME: Final = "key-marks.json"
"""Next to the folders of workers: which keys they have. It holds marks of keys, never keys."""


def require_keys_to_come(known: dict[str, str], secret: Secret, method: StreamMethod, *, is_live: bool) -> None:
    """Raise CheckpointError if a key was added, taken away or altered that counts from a time already reached."""
    given = secret.later_marks
    changed = [int(start) for start in {*known, *given} if known.get(start) != given.get(start)]
    if not changed:
        return
    from shoal.methods.z.z_anonymity import ZAnonymity  # the only method with pseudonyms

    reached = method.newest_ns if isinstance(method, ZAnonymity) else None
    if is_live:  # rows behind the checkpoint may be visible already
        reached = max(time.time_ns(), reached or 0)
    if reached is not None and min(changed) <= reached:
        raise CheckpointError(
            f"{KEY_FILE_VARIABLE}: its key from {moment(min(changed))} on has changed, and the stream has reached "
            f"{moment(reached)}: pseudonyms would change among rows that are published; put it back, or name a time "
            "that is still to come"
        )


def require_same_keys(folder: Path, secret: Secret, *, old: Secret | None = None) -> None:
    """Raise CheckpointError if another worker that shares this folder has another key; else note ours.

    Others may still have the `old` one: an upgrade brings all workers to the new one, one after the other.
    """
    with output_error(folder):
        make_folder(folder, mode=0o700)
        handle = open_or_create(folder / MARKS_NAME)
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            noted: dict[str, Any] = json.loads(text) if text else {"first": secret.mark, "later": {}}
            if old is None or noted["first"] != old.mark:
                _compare(folder / MARKS_NAME, noted, secret)
            file.seek(0)
            file.write(json.dumps({"first": secret.mark, "later": secret.later_marks}, sort_keys=True).encode())
            file.truncate()
            file.flush()
            os.fsync(file.fileno())


def _compare(path: Path, noted: dict[str, Any], secret: Secret) -> None:
    if noted["first"] != secret.mark:
        what = "this worker has another key than those that started before it"
    elif any(secret.later_marks.get(start) != mark for start, mark in noted["later"].items()):
        what = "workers that started before this one have a later key that this one lacks, or another one"
    else:
        return
    raise CheckpointError(
        f"{path}: {what}, so a person would have two pseudonyms; give all of them the same file in "
        f"{KEY_FILE_VARIABLE}. If all are stopped and a new key is meant, start each once with --upgrade"
    )
