"""What a dead letter says about a record that came too late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.pipeline.dead_letters import LetterWriter

LATE = pa.record_batch({"row": [0], "reason": ["late"]})


@pytest.mark.parametrize("is_live", [False, True])
def test_a_late_record_of_a_live_stream_cannot_be_sorted(is_live: bool) -> None:
    written: list[Any] = []
    letters = SimpleNamespace(keep_rows=False, write=lambda letter, record: written.append(letter))
    source = SimpleNamespace(is_live=is_live, place=lambda row: {"row": row})
    method = ZAnonymity(z=2, window="1h", person="user", time="ts", attribute="site", key=bytes(16))
    LetterWriter(letters, source, method, sorts_rows=True).write(LATE, None, 0)  # type: ignore[arg-type]
    (letter,) = written
    assert letter["column"] == "ts"
    assert letter["reason"].startswith("older than the newest event by more than `lateness`")
    assert ("sort the input" in letter["reason"]) == (not is_live)
    assert ("raise lateness, or lag in [source]" in letter["reason"]) == is_live
