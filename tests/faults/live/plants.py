"""Defects planted in the running code: a function's source with one text replaced."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.pipeline.run import StreamRun
from shoal.sinks.numbered import MessageNumbers


@dataclass(frozen=True)
class Plant:
    """A method of a class, and what to replace in it."""

    owner: type
    method: str
    old: str
    new: str

    def __call__(self) -> AbstractContextManager[Any]:
        found = vars(self.owner)[self.method]
        function: Callable[..., Any] = found.fget if isinstance(found, property) else found
        text = textwrap.dedent(inspect.getsource(function))
        assert text.count(self.old) == 1, f"{self.method}: the text to replace occurs {text.count(self.old)} times"
        made: dict[str, Any] = {}
        exec(
            "from __future__ import annotations\n" + text.replace(self.old, self.new),
            vars(sys.modules[function.__module__]),
            made,
        )
        return mock.patch.object(self.owner, self.method, made[self.method])


# The text of a method is dedented by one level.
WRITE = "        name = self.write(checkpoint)\n"
SHOW = "        show(name)\n"

PLANTS = {
    "load the newest checkpoint": Plant(
        StreamRun,
        "_resume",
        "self._folder.load(self.outputs.published())",
        "(self.outputs.published(), self._folder.latest())[1]",
    ),
    "remove old checkpoints before publishing": Plant(
        CheckpointFolder, "commit", SHOW, "        self._before = None\n        self.prune(name)\n" + SHOW
    ),
    "publish before the checkpoint is written": Plant(
        CheckpointFolder, "commit", WRITE, '        show("checkpoint-99999999-00000000")\n' + WRITE
    ),
    "idle time is not recorded": Plant(StreamRun, "_idle", "    self._record()\n", ""),
    "marks are not recorded": Plant(StreamRun, "_read", "                self._record()\n", "                pass\n"),
    "idle time is in one checkpoint only": Plant(
        StreamRun, "_record", "copies=1 if self.outputs.decides else 2", "copies=1"
    ),
    "one message too few is skipped": Plant(
        MessageNumbers, "take", "self._held - self.written", "self._held - self.written - 1"
    ),
    "one message too many is skipped": Plant(
        MessageNumbers, "take", "self._held - self.written", "self._held - self.written + 1"
    ),
    "a commit takes the number of messages back": Plant(
        MessageNumbers, "held", "max(self.written, self._held)", "self.written"
    ),
    "a resumed run has one copy only": Plant(StreamRun, "_resume", "if self.source.is_live and", "if False and"),
    "an aborted commit counts": Plant(
        StreamRun,
        "_show",
        "    self.outputs.publish(checkpoint)\n",
        "    try:\n        self.outputs.publish(checkpoint)\n    except Aborted:\n        pass\n",
    ),
    "an aborted run keeps its method": Plant(
        StreamRun, "_attempt", "self._make_method(secret)", 'getattr(self, "method", None) or self._make_method(secret)'
    ),
    "a method that has records is not restored": Plant(
        StreamRun,
        "_resume",
        "    self.method.restore(found.snapshot)",
        '    self.method.counts["pushed"] or self.method.restore(found.snapshot)',
    ),
    "a crash loop fills the disk": Plant(CheckpointFolder, "load", "    self._remove_except(*names)\n", ""),
}
