"""Explores every world that any number of kills can lead to, and looks for one that readers should not see.

A kill leaves a world behind: what the message system holds, checkpoints, dead letters. One run from a world passes
through all worlds that a kill during this run could leave. Worlds that differ only in random names and seals are the
same, so there are finitely many, and exploring all of them proves the protocol for runs of this script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.faults.live.scene import Scene, World, only_grew

UNCHANGING = ("init", "offsets", "held", "fetch", "flush", "sync", "keep")
"""Steps that leave the world as it was."""
REFUSED = "no complete one is left"


@dataclass
class Checker:
    """Explores the worlds of one scene.

    Parameters
    ----------
    damages
        Whether one checkpoint may be damaged, once, in every world.
    most
        How many worlds there may be.
    """

    scene: Scene
    damages: bool = False
    most: int = 3000

    def problem(self) -> str | None:
        """The first wrong world; None if there is none."""
        self.explored = 0
        expected = [self.scene.undisturbed(), *([] if self.scene.is_stubborn else self.scene.every_history())]
        seen: set[str] = set()
        waiting = [(World(), False, "at the start")]
        while waiting:
            world, is_damaged, story = waiting.pop()
            key = f"{_key(world, self.scene.contents)} {is_damaged}"
            if key in seen:
                continue
            seen.add(key)
            self.explored += 1
            if self.explored > self.most:
                return f"{story}: there is no end of different worlds"
            self.scene.go_to(world)
            left: list[tuple[str, World]] = []

            def capture(steps: list[str], left: list[tuple[str, World]] = left) -> None:
                if not steps or steps[-1] not in UNCHANGING:
                    left.append((steps[-1] if steps else "starting", self.scene.world))

            process = self.scene.run(before_step=capture)
            after = self.scene.world
            if process.ended != "done":
                if is_damaged and REFUSED in process.ended:
                    continue  # nothing was read or shown
                return f"{story}: {process.ended}"
            if after.seen not in expected:
                return f"{story}: readers see something else"
            if not only_grew(world.seen, after.seen):
                return f"{story}: what readers saw has changed"
            for step, one in left:
                told = f"{story}, killed after {step}"
                waiting.append((one, is_damaged, told))
                if self.damages and not is_damaged:
                    waiting += [(damaged, True, f"{told}, {name} damaged") for name, damaged in _damaged(one)]
        return None


def _damaged(world: World) -> Iterator[tuple[str, World]]:
    """The world with one of its checkpoints torn."""
    for name in world.files:
        if "checkpoint-" in name:
            yield name, replace(world, files={**world.files, name: world.files[name][:-1]})


def _key(world: World, contents: Mapping[bytes, str]) -> str:
    """What matters of a world: not names and seals of checkpoints, but their content, order and which one counts."""
    names = sorted(name for name in world.files if "checkpoint-" in name)
    found = [contents.get(world.files[name], "damaged") for name in names]
    text = f"{found} {world.system.committed} {sorted(world.system.visible.items())}"
    for number, name in enumerate(names):
        text = text.replace(Path(name).name, f"checkpoint {number}")
    return re.sub(r"checkpoint-\d+-[0-9a-f]{8}", "a removed one", f"{text} {world.processes > 0}")
