"""After a set time the temporary rows go, and with them the key they could be read by; both are checked."""

from __future__ import annotations

from glob import escape
from typing import Final

from shoal.errors import StoreError, VaultError
from shoal.sanitize.keyring import destroy_run_key, run_key_path
from shoal.sanitize.workspace import RUNS, TEMPORARY, House

_SAMPLED: Final = slice(64, 128)
"""Bytes of the ciphertext of a row, which must not be found any more."""


def clear(house: House, now_ns: int, consumed: int) -> list[str]:
    """Clear the runs whose time has come; give their names. A crash on the way is made good by the next call."""
    _destroy_strays(house)
    cleared = []
    for run, made in house.temporary.execute(f"SELECT run, made FROM {RUNS.name} ORDER BY run"):
        waiting = house.temporary.count(TEMPORARY, "run = ? AND batch > ?", (run, consumed))
        if made + house.section.keep.ns <= now_ns and not waiting:
            _clear_run(house, str(run))
            cleared.append(str(run))
    return cleared


def _destroy_strays(house: House) -> None:
    """Keys of runs that died before they had any rows; nobody else is at work while this process is."""
    known = {str(run) for (run,) in house.temporary.execute(f"SELECT run FROM {RUNS.name}")}
    for path in house.sealed.parent.glob(f"{escape(house.sealed.name)}.run-*.key*"):
        run = path.name.removeprefix(f"{house.sealed.name}.run-").partition(".")[0]
        if run not in known or path.suffix == ".tmp":
            destroy_run_key(path)


def _clear_run(house: House, run: str) -> None:
    store = house.temporary
    contents = store.execute(f"SELECT content FROM {TEMPORARY.name} WHERE run = ?", (run,))
    samples = [bytes(content)[_SAMPLED] for (content,) in contents]
    with store.transaction():
        store.delete(TEMPORARY, "run = ?", (run,))
    store.compact(TEMPORARY)
    house.reach("cleared-rows")
    path = run_key_path(house.sealed.parent, house.sealed.name, run)
    destroy_run_key(path)
    house.reach("cleared-key")
    if store.count(TEMPORARY, "run = ?", (run,)) or store.holds(samples):
        raise StoreError(f"{store.name}: temporary rows are still there after clearing; remove the store by hand")
    if path.exists():
        raise VaultError(f"{path}: the key of a cleared run is still there; remove it by hand")
    with store.transaction():
        store.delete(RUNS, "run = ?", (run,))
