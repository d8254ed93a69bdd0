"""Options that mean something only on Spark, or only on one machine: refused where they would be ignored."""

from __future__ import annotations

from typing import Final

from shoal.errors import PolicyError

MOST_SHARDS: Final = 10_000


def check_engine(engine: str, master: str | None, shards: int | None = None) -> None:
    """Refuse a cluster, or shards, that would not be used."""
    for name, value in (("master", master), ("shards", shards)):
        if value is not None and engine != "spark":
            raise PolicyError(f"--{name}: is for --engine spark; add --engine spark, or leave --{name} out")
    if shards is not None and not 1 <= shards <= MOST_SHARDS:
        raise PolicyError(f"--shards {shards}: must be from 1 to {MOST_SHARDS:,}")


def check_run_options(engine: str, *, follow: bool, once: bool, upgrade: bool, worker: int | None) -> None:
    """Refuse options of `shoal run` that its engine does not have, and those that contradict each other."""
    if engine != "spark":
        if follow or once:
            raise PolicyError("--follow and --once are for --engine spark; on one machine a folder is read to its end")
        return
    if follow and once:
        raise PolicyError("--follow waits for more files and --once stops when all are read; leave one of them out")
    if upgrade:
        raise PolicyError(
            "--upgrade: is for runs on one machine; on Spark a changed policy needs an empty [checkpoint] folder"
        )
    if worker is not None:
        raise PolicyError("--worker: is for runs on one machine; on Spark executors share the partitions; leave it out")
