"""A z that follows the stream begins with what an earlier one needed: read it from the file that the policy names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import InputError
from shoal.pipeline.tune.columns import Columns, plain_policy
from shoal.pipeline.wiring import make_decoder
from shoal.policy import Policy
from shoal.policy.tables import FileSource
from shoal.policy.z import ZAnonymitySection
from shoal.sources.files import find_files

if TYPE_CHECKING:
    from shoal.policy.fields import Location


def file_to_learn_from(policy: Policy) -> Location | None:
    """The file of an earlier stream; None if the policy names none."""
    rules = policy.anonymize
    return rules.target.learn if isinstance(rules, ZAnonymitySection) and rules.target is not None else None


def learn(policy: Policy, method: Any) -> int:
    """Let a method learn from that file, if there is one; return the number of epochs learnt from."""
    place = file_to_learn_from(policy)
    if place is None:
        return 0
    try:
        learnt: int = method.learn(_batches(policy, place))
    except InputError as error:
        raise InputError(f"[anonymize.target] learn: {place.text}: {error}") from None
    return learnt


def _batches(policy: Policy, place: Location) -> Iterator[pa.RecordBatch]:
    """The records of the file, which is read as the source is; next to a broker by the ending of its name."""
    rules, person, time = policy.anonymize, str(policy.stream.person), str(policy.stream.time)
    assert isinstance(rules, ZAnonymitySection)
    first, *_ = rules.attribute
    if not isinstance(policy.source, FileSource):
        policy = replace(policy, source=plain_policy(place.path, Columns(person, time, first)).source)
    for file in find_files([str(place.path)], compression=policy.file_source.compression):
        with make_decoder(policy, file, (person, time, *rules.attribute)) as decoder:
            for decoded in decoder.batches():
                yield decoded.batch
