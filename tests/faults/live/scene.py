"""Runs of `StreamRun` on the system in memory, one process after another, and what its readers see."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from shoal.clients.patience import Patience
from shoal.crypto.keys import Secret, as_secret
from shoal.errors import ShoalError
from shoal.observe.observer import Observer
from shoal.pipeline import outputs, run, upgrade
from shoal.pipeline.checkpoints import Checkpoint, CheckpointFolder
from shoal.pipeline.live import going_back
from shoal.pipeline.stopping import Stop
from shoal.policy import Policy
from shoal.policy.fields import Location
from tests.faults.live.endpoints import Choice, MemorySource, Script, Silence, numbered_sinks, transactional_sinks
from tests.faults.live.process import Killed, Process
from tests.faults.live.system import System

SINKS = {"transactions": transactional_sinks, "numbers": numbered_sinks}
STATE = "state"
Seen = dict[Any, Any]
"""What readers see, by place."""


@dataclass
class World:
    """Everything that outlives a process: the message system, checkpoints, and that there was one."""

    system: System = field(default_factory=System)
    files: dict[str, bytes] = field(default_factory=dict)
    processes: int = 0

    @property
    def seen(self) -> Seen:
        """What readers see now, rows and dead letters."""
        return deepcopy(self.system.visible)


class SteppedFolder(CheckpointFolder):
    """A checkpoint folder that takes steps."""

    process: Process
    contents: dict[bytes, str]

    key: bytes | Secret

    def _find_secret(self) -> Secret:
        return as_secret(self.key)

    def write(self, checkpoint: Checkpoint) -> str:
        name: str = self.process.step("checkpoint", lambda: super(SteppedFolder, self).write(checkpoint))
        self.contents[(self.path / name).read_bytes()] = repr(replace(checkpoint.progress, since=None)) + repr(
            checkpoint.snapshot
        )
        return name

    def prune(self, published: str) -> None:
        self.process.step("prune", lambda: super(SteppedFolder, self).prune(published))


@dataclass
class Scene:
    """One stream through one method into one kind of sink, in one folder.

    Parameters
    ----------
    is_stubborn
        Whether every process decides alike about what no checkpoint has recorded (silences and orders).
    make_method
        A method instead of the one in the policy.
    plants
        Contexts with a planted defect.
    make_source
        A source instead of the script.
    name
        The transactional id.
    """

    folder: Path
    policy: Policy
    script: Script
    schema: pa.Schema
    kind: str
    is_stubborn: bool = True
    make_method: Callable[[], Any] | None = None
    key: bytes | Secret = b"a key of more than sixteen bytes"
    plants: tuple[Callable[[], AbstractContextManager[Any]], ...] = ()
    make_source: Callable[[Process], Any] | None = None
    name: str = "rows"

    def __post_init__(self) -> None:
        assert self.policy.checkpoint is not None
        checkpoint = self.policy.checkpoint.model_copy(update={"path": Location(STATE, self.folder / STATE)})
        self.policy = replace(self.policy, checkpoint=checkpoint)
        self.contents: dict[bytes, str] = {}
        """What is in a checkpoint, by its sealed bytes."""
        self._system = System()
        self._processes = 0

    @property
    def world(self) -> World:
        """A copy of the world as it is now."""
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        files = {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}
        return World(deepcopy(self._system), files, self._processes)

    def go_to(self, world: World) -> None:
        """Make the world as it was."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, content in world.files.items():
            (self.folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
            (self.folder / name).chmod(0o600)
        self._system, self._processes = deepcopy(world.system), world.processes

    def run(
        self,
        faults: Any = None,
        *,
        stop: Stop | None = None,
        take_over: bool = False,
        is_upgraded: bool = False,
        **hooks: Callable[..., None],
    ) -> Process:
        """Start a process; it is killed, fails with a sentence, or ends."""
        process = Process(self._processes, faults, **hooks)
        self._processes += 1

        def source() -> Any:
            if self.make_source is not None:
                return self.make_source(process)
            fetch = 1 if process.number else 3
            return MemorySource(process, self.script, self.schema, is_stubborn=self.is_stubborn, fetch=fetch)

        with self._patched(process):
            try:
                if is_upgraded:
                    upgrade.Upgrade(self.policy, Observer(), source()).execute()
                run.StreamRun(self.policy, Observer(), source(), stop=stop, take_over=take_over).execute()
                process.ended = "done"
            except Killed:
                process.ended = "killed"
            except ShoalError as error:
                process.ended = str(error)
        return process

    @contextmanager
    def _patched(self, process: Process) -> Iterator[None]:
        with ExitStack() as stack:

            def patch(target: Any, name: str, new: Any) -> None:
                stack.enter_context(mock.patch.object(target, name, new))

            folder = {"process": process, "contents": self.contents, "key": self.key}
            for module in (run, upgrade):
                patch(module, "CheckpointFolder", type("Folder", (SteppedFolder,), folder))
            patch(outputs, "make_sinks", lambda *_, **__: SINKS[self.kind](process, self._system, self.name))
            patch(os, "fsync", lambda handle: None)
            patch(going_back, "Patience", lambda give_up: Patience(60, sleep=lambda seconds: None))
            if self.make_method is not None:
                patch(run, "make_anonymizer", lambda *_: self.make_method and self.make_method())
            for plant in self.plants:
                stack.enter_context(plant())
            yield

    def undisturbed(self, script: Script | None = None) -> Seen:
        """What readers see at the end of a run that nothing happens to, without planted defects."""
        sound = replace(self, script=self.script if script is None else script, is_stubborn=True, plants=())
        sound.go_to(World())
        ended = sound.run().ended
        assert ended == "done", ended
        return sound.world.seen

    def every_history(self) -> list[Seen]:
        """What readers may see in the end: silences may happen or not, orders may be chosen either way."""
        options: list[tuple[list[Any], ...]] = []
        for step in self.script:
            if isinstance(step, Silence):
                options.append(([step], []))
            elif isinstance(step, Choice):
                options.append(tuple(list(order) for order in step.orders))
            else:
                options.append(([step],))
        scripts = (list(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*options))
        return [self.undisturbed(script) for script in scripts]


def only_grew(before: Seen, after: Seen) -> bool:
    """Whether nothing that readers saw has changed or disappeared."""
    return all(after.get(place, [])[: len(values)] == values for place, values in before.items())
