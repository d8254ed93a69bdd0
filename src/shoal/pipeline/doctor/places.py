"""Where a run writes: whether it can, and what it would replace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.errors import ShoalError
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.wiring import make_parts
from shoal.policy import Policy
from shoal.policy.crosschecks import next_to
from shoal.policy.fields import Location
from shoal.policy.sanitize import SanitizeSection
from shoal.sinks.atomic_file import check_file
from shoal.sinks.durable import check_folder

NO_TRACE: Final = Remark(
    "look", "trace", "no [trace]: the auditor will not be able to check order, refusals and levels exactly"
)


def place_remarks(policy: Policy) -> Iterator[Remark]:
    """Whether a run could write everything it writes, and what it would replace."""
    if policy.sanitize is not None:
        yield from _store_remarks(policy.sanitize)
        return
    letters = policy.dead_letters.file
    places = {"dead letters": letters} if letters is not None else {}
    if policy.sink.place is not None:
        places = {"sink": policy.sink.place, **places}
    if policy.trace is not None:
        places["trace"] = policy.trace.path
    else:
        yield NO_TRACE
    if policy.checkpoint is not None:
        places["checkpoint"] = policy.checkpoint.path
    for ending in policy.anonymize.next_to_sink():
        places[ending.split(".")[1]] = next_to(policy.file_sink.path, ending)
    for topic, place in places.items():
        if place.is_standard:
            continue
        problem = _target_problem(policy, topic, place)
        if problem is not None:
            yield Remark("wrong", topic, problem)
        elif place.path.is_file() or (place.is_folder and any(place.path.glob("part-*"))):
            what = "exists and" if place.path.is_file() else "contains part files, which"
            yield Remark("look", topic, f"{place.text}: {what} will be replaced")


def _target_problem(policy: Policy, topic: str, place: Location) -> str | None:
    """Why a run could not write there."""
    takes_parts = topic == "sink" and policy.anonymize.IS_STREAM and place.is_folder
    try:
        if takes_parts:
            make_parts(policy).refuse_foreign()
        elif topic != "checkpoint":
            check_file(place.path)
        folder = place.path if takes_parts or topic == "checkpoint" else place.path.parent
        check_folder(folder)
    except ShoalError as error:
        return str(error)
    return None


def _store_remarks(process: SanitizeSection) -> Iterator[Remark]:
    """The stores of the sanitization process; only the process itself opens them."""
    for role, store in (("internal", process.internal), ("external", process.external)):
        where = f"SQLite, {store.path.text}" if store.path is not None else "PostgreSQL"
        yield Remark("good", "stores", f"{role}: {where}")
    if not process.maid:
        return
    yield Remark(
        "look", "sample",
        f"rows were not tried: the process itself makes the person of {', '.join(process.maid)}",
    )  # fmt: skip
