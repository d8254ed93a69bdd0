"""Paths of texts made of segments: host names, file names, topics."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from shoal.errors import PolicyError

Side = Literal["suffix", "prefix"]
MAX_ANCESTORS: Final = 64
"""Most ancestors of one value. Names of hosts and files stay far below; a hostile value with a million separators must
not cost a million counters."""


class Separated:
    """Any text is a value, cut at a separator from the front (suffix) or the back (prefix).

    The value itself is never changed. Its ancestors are the texts that remain after a cut, if they start (suffix) or
    end (prefix) with a segment that is not empty. Of more than `MAX_ANCESTORS` the coarsest are kept.

    ============  ======  =======================================
    value         side    path in a hierarchy with the root ``*``
    ============  ======  =======================================
    ``a..b``      suffix  ``a..b``, ``b``, ``*``
    ``a.b.``      suffix  ``a.b.``, ``b.``, ``*``
    ``.b``        suffix  ``.b``, ``b``, ``*``
    ``/a/b/``     prefix  ``/a/b/``, ``/a/b``, ``/a``, ``*``
    (empty)       both    (empty), ``*``
    ``*``         both    ``*``: a label equal to the root is the root
    ``a.*``       suffix  ``a.*``, ``*``
    ============  ======  =======================================
    """

    kind: ClassVar[str] = "open"

    def __init__(self, separator: str, side: Side) -> None:
        if not isinstance(separator, str) or len(separator) != 1 or not separator.isascii():
            raise PolicyError("hierarchy: separator must be one ASCII character")
        if side not in ("suffix", "prefix"):
            raise PolicyError('hierarchy: side must be "suffix" or "prefix"')
        self.separator = separator
        self.side: Side = side

    def labels(self, value: str) -> list[str]:
        """Ancestors below the root, nearest first."""
        if self.side == "suffix":
            return [value[cut:] for cut in self._cuts(value)]
        return [value[: len(value) - cut] for cut in self._cuts(value[::-1])]

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain values."""
        return {"kind": self.kind, "separator": self.separator, "side": self.side}

    def _cuts(self, value: str) -> list[int]:
        """Where shorter texts start, nearest first; searched from the far end, so that a hostile value stays cheap."""
        cuts: list[int] = []
        end = len(value)
        while len(cuts) < MAX_ANCESTORS:
            at = value.rfind(self.separator, 0, end)
            if at < 0:
                break
            if at + 1 < len(value) and value[at + 1] != self.separator:
                cuts.append(at + 1)
            end = at
        return cuts[::-1]
