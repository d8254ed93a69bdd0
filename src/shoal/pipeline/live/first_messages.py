"""The first messages of a topic or stream that an address names, for `shoal init`; nothing there is changed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError, PolicyError
from shoal.inspection.files.message_table import read_messages
from shoal.inspection.files.reading import FirstRows
from shoal.methods.setting_problems import nearest
from shoal.pipeline.doctor.live_sample import take_live_sample
from shoal.pipeline.live.pass_through import PassThroughSection
from shoal.pipeline.live.wiring import WHOLE, source_parser
from shoal.policy import Policy
from shoal.policy.fields import key_path
from shoal.policy.live.messages import MessageSource
from shoal.policy.live.systems import SOURCES
from shoal.policy.policy import DeadLetters
from shoal.policy.tables import StreamSection

MOST_MESSAGES: Final = 200_000
_SYSTEMS: Final = ("kafka", "redis", "nats", "rabbitmq")
_TABLES: Final = ("client", "secrets", "headers", "types")
_FORM: Final = "KIND://HOST:PORT/NAME, such as kafka://localhost:9092/visits"


def read_first_messages(address: str, options: Iterable[str], rows: int, folder: Path) -> FirstRows:
    """Read up to `rows` of the messages that are there now; no offset of a group is read, stored or moved.

    `options` are further keys of [source], as KEY=VALUE. PolicyError if the address or a key is wrong, InputError if
    the system cannot be read.
    """
    source, log = _source_table(address)
    source = _with_options(source, options)
    section = _checked(source, folder)
    plan = Policy(
        stream=StreamSection(),
        source=section,
        anonymize=PassThroughSection(by=WHOLE, partitions=1, keeps_keys=True),
        written_sink=None,
        dead_letters=DeadLetters(None, keep_rows=False),
    )
    sample = take_live_sample(plan, (WHOLE,), min(rows, MOST_MESSAGES))
    whole = pa.concat_batches([sample.empty, *(part.batch for part in sample.parts)]).column(0)
    values = pc.struct_field(whole, "value").to_pylist()
    records, refused = source_parser(section).parse(values)
    wrong = {one.row for one in refused}
    kept = [at for at in range(len(values)) if at not in wrong]
    name = f"{section.kind} {log}"
    if not kept:
        why = f": {refused[0].reason}" if refused else ""
        raise InputError(f"{name}: none of {len(values):,} messages can be read{why}; is the format right?")
    whole = whole.take(pa.array(kept))
    return read_messages(
        name, [records[at] for at in kept], source, _sink_table(section, log),
        keys=_texts(pc.struct_field(whole, "key")), times=_times(whole), headers=_headers(section, whole),
        is_all=sample.is_all,
    )  # fmt: skip


def _source_table(address: str) -> tuple[dict[str, Any], str]:
    """[source] for an address, and the name of the topic or stream."""
    kind, _, rest = address.partition("://")
    where, _, log = rest.rpartition("/")
    if kind not in _SYSTEMS:
        if kind in SOURCES:
            raise PolicyError(
                f"{kind}: its messages can be received only once, so they cannot be looked at; name a file"
            )
        near = nearest(kind, _SYSTEMS)
        raise PolicyError(f"{kind}: unknown system; {f'did you mean {near}?' if near else f'write {_FORM}'}")
    if not where or not log:
        raise PolicyError(f"the address has no {'host' if not where else 'topic or stream'}; write {_FORM}")
    if kind in ("kafka", "rabbitmq"):
        return {"kind": kind, "brokers": where, "topics" if kind == "kafka" else "streams": [log]}, log
    if kind == "redis":
        return {"kind": kind, "url": f"redis://{where if '/' in where else f'{where}/0'}", "streams": [log]}, log
    return {"kind": kind, "url": f"nats://{where}", "stream": log}, log


def _with_options(source: Mapping[str, Any], options: Iterable[str]) -> dict[str, Any]:
    """The table with keys such as ``group=mine`` or ``client.security.protocol=SSL``."""
    found = dict(source)
    for option in options:
        name, sign, text = option.partition("=")
        if not sign or not name:
            raise PolicyError("--source: write KEY=VALUE, such as group=mine or client.security.protocol=SSL")
        table, dot, key = name.partition(".")
        if dot and table in _TABLES:
            found[table] = {**found.get(table, {}), key: _value(text)}
        else:
            found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    """A number, truth or list as in TOML; everything else is text."""
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return found if isinstance(found, bool | int | float | str | list) else text


def _checked(source: Mapping[str, Any], folder: Path) -> MessageSource:
    section, problems = SOURCES[source["kind"]].read(source, {"folder": folder})
    if problems:
        raise PolicyError([f"{key_path('source', steps)}: {text}" for steps, text in problems])
    assert isinstance(section, MessageSource)
    return section


def _sink_table(section: MessageSource, log: str) -> dict[str, Any]:
    """Another topic or stream of the same system."""
    sink: dict[str, Any] = {"kind": section.kind, "topic" if section.kind == "kafka" else "stream": f"{log}-released"}
    if section.client:
        sink["client"] = dict(section.client)
    if section.secrets:
        sink["secrets"] = {name: f"{one.place}:{one.name}" for name, one in section.secrets.items()}
    return sink


def _texts(column: Any) -> Any:
    """Bytes as text; null where they are not UTF-8."""
    found = [None if one is None else one.decode("utf-8", errors="replace") for one in column.to_pylist()]
    return pa.array([None if one is None or "\ufffd" in one else one for one in found], pa.string())


def _times(whole: Any) -> Any:
    times = pc.struct_field(whole, "time")
    known = pc.if_else(pc.greater(times, 0), times, pa.scalar(None, pa.int64()))
    return known.cast(pa.timestamp("ms")).cast(pa.timestamp("ms", tz="UTC"))


def _headers(section: MessageSource, whole: Any) -> dict[str, Any]:
    given = pc.struct_field(whole, "headers").to_pylist() if section.headers else []
    return {
        column: _texts(pa.array([dict(_pairs(one)).get(header) for one in given], pa.binary()))
        for column, header in section.headers.items()
    }


def _pairs(headers: Any) -> list[tuple[str, bytes | None]]:
    return [(one["name"], one["value"]) for one in headers or ()]
