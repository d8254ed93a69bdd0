"""Access logs of web servers, in the common and the combined log format."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded, Readable, Refused
from shoal.decode.columns import NOT_UTF8, as_text, fit, refused_misfits
from shoal.decode.lines import Lines, LineWindow
from shoal.decode.text import BLOCK_BYTES, HAS_NUL, MAX_RECORD_BYTES, TOO_LONG, Blocks, TextDecoder

TIME: Final = pa.timestamp("s", tz="UTC")
COMMON: Final = ("host", "ident", "user", "time", "request", "status", "size")
COLUMNS: Final = (*COMMON, "referer", "agent")
"""Of the combined format; the last two are missing in lines of the common one."""

NOT_A_LINE: Final = "not a line of the common or combined log format; correct it, or log in one of these formats"
NO_TIME: Final = "not a time such as 31/Dec/2024:23:59:59 +0100; correct it"

_QUOTED: Final = r'"(?P<{}>(?:[^"\\]|\\.)*)"'
_LINE: Final = (
    r"^(?P<host>[^ ]+) (?P<ident>[^ ]+) (?P<user>[^\[]+) "
    r"\[(?P<day>\d{2})/(?P<month>[A-Za-z]{3})/(?P<year>[12]\d{3}):(?P<clock>\d{2}:\d{2}:\d{2}) (?P<zone>[+-]\d{4})\] "
    rf"{_QUOTED.format('request')} (?P<status>\d{{3}}|-) (?P<size>\d{{1,18}}|-)"
    rf"(?: {_QUOTED.format('referer')} {_QUOTED.format('agent')})?[ \t\r]*$"
)
_MONTHS: Final = pa.array(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"])
_NUMBERS: Final = pa.array([f"{month:02d}" for month in range(1, 13)])
_SEEN_LINES: Final = 50


class AccessLogDecoder(TextDecoder[LineWindow]):
    """Lines such as ``10.0.0.1 - anna [31/Dec/2024:23:59:59 +0100] "GET / HTTP/1.1" 200 512``.

    `time` is a moment, `size` a whole number, the rest is text, with escapes such as ``\\"`` as the log has them. A
    field that is ``-`` or empty is null, and so are `referer` and `agent` in lines of the common format.

    Parameters
    ----------
    max_record_bytes
        A longer line is refused.
    """

    def __init__(
        self,
        file: Readable,
        *,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType] | None = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = BLOCK_BYTES,
        optional: Collection[str] = (),
    ) -> None:
        super().__init__(file, columns=columns, types=types, optional=optional)
        self._longest = max_record_bytes
        self._block_bytes = block_bytes

    def _begin(self, blocks: Blocks) -> LineWindow:
        self._indices(COLUMNS, remedy=f"an access log has {', '.join(COLUMNS)}")
        usual = {"time": TIME, "size": pa.int64()}
        kinds = {name: self._declared.get(name, usual.get(name, pa.string())) for name in self._columns}
        self._schema = pa.schema(list(kinds.items()))
        return LineWindow(blocks, self._longest)

    def _decoded(self, window: LineWindow) -> Iterator[Decoded]:
        for lines in window.lines():
            yield self._decode(lines, window)

    def _decode(self, lines: Lines, window: LineWindow) -> Decoded:
        refused = [
            Refused(row, None, TOO_LONG if text is None or len(text) > self._longest else HAS_NUL)
            for row, text in enumerate(lines.texts)
            if text is None or len(text) > self._longest or b"\0" in text
        ]
        text, bad = as_text(pa.array(lines.texts, pa.binary()))
        refused += [Refused(int(row), None, NOT_UTF8) for row in bad]
        fields = pc.extract_regex(text, _LINE)
        is_line = fields.is_valid()
        refused += [Refused(row, None, NOT_A_LINE) for row, is_good in enumerate(is_line.to_pylist()) if not is_good]
        times = fit(_iso_times(fields), TIME)[0]
        has_none = pc.and_(is_line, pc.is_null(times)).to_pylist()
        refused += [Refused(row, "time", NO_TIME) for row, is_bad in enumerate(has_none) if is_bad]
        columns = []
        for field in self.schema:
            column = times if field.name == "time" else _without_dash(pc.struct_field(fields, field.name))
            column, bad = fit(column, field.type)
            refused += refused_misfits(bad, field.name, field.type)
            columns.append(column)
        return Decoded.of(columns, self.schema, refused, window.position, lines.numbers)


def _iso_times(fields: Any) -> Any:
    """The time of every line in ISO 8601; null if there is no such month."""
    month = pc.take(_NUMBERS, pc.index_in(pc.struct_field(fields, "month"), value_set=_MONTHS))
    day, year, clock, zone = (pc.struct_field(fields, name) for name in ("day", "year", "clock", "zone"))
    date = pc.binary_join_element_wise(year, month, day, "-")
    return pc.binary_join_element_wise(date, "T", clock, zone, "")


def _without_dash(text: Any) -> Any:
    return pc.if_else(pc.is_in(text, value_set=pa.array(["-", ""])), pa.scalar(None, pa.string()), text)


def is_access_log(head: str) -> bool:
    """Whether most of the first lines are of an access log."""
    lines = [line for line in head.splitlines() if line.strip()][:_SEEN_LINES]
    return bool(lines) and 2 * sum(re.match(_LINE, line) is not None for line in lines) > len(lines)
