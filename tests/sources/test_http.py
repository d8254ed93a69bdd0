"""The HTTP source keeps the law of every source: from any kept position, the same records in the same order."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.crypto.keys import as_secret
from shoal.sources.http import HttpReader
from shoal.sources.logged.logged import LoggedMessages
from shoal.sources.logged.message_log import MessageLog
from shoal.sources.reader import Needs

SECRET = as_secret(b"a key of more than sixteen bytes")
STEPS = st.lists(
    st.one_of(st.integers(1, 7), st.sampled_from(["fetch", "commit", "crash", "close"])), min_size=1, max_size=25
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(steps=STEPS, segment=st.sampled_from([1, 150, 10**6]))
def test_every_accepted_record_is_read_again_from_the_last_checkpoint(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | str], segment: int
) -> None:
    folder = tmp_path_factory.mktemp("http")
    accepted: list[bytes] = []
    kept = after = -1
    reader = opened = make(folder, segment)
    reader.open([None], Needs())
    try:
        for step in [*steps, "crash", "fetch"]:
            if isinstance(step, int):
                records = [b"%d" % number for number in range(len(accepted), len(accepted) + step)]
                reader.accept(records)
                accepted += records
            elif step == "fetch":
                for fetched in reader.fetch([0], 0.0):
                    count = len(fetched.ids)
                    assert fetched.ids.tolist() == list(range(after + 1, after + 1 + count))
                    assert list(fetched.messages.values) == accepted[after + 1 : after + 1 + count]
                    after += count
                assert (after == len(accepted) - 1) == reader.is_read(0)
            elif step == "commit":
                kept = after
                reader.keep([kept])
            else:
                if step == "close":
                    kept = after
                    reader.keep([kept])
                reader.close()  # a crash does the same to files: what was accepted is synced
                reader = make(folder, segment)
                assert reader.open([kept], Needs()) == [kept]
                after = kept
            assert reader.lag() == len(accepted) - 1 - after
    finally:
        reader.close()
        opened.close()


def make(folder: object, segment: int) -> HttpReader:
    logged = LoggedMessages("HTTP", lambda: MessageLog(folder, SECRET, segment_bytes=segment))  # type: ignore[arg-type]
    reader = HttpReader(logged, name="HTTP")
    reader.is_served = True
    return reader
