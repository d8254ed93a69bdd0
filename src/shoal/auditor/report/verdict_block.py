"""A verdict as HTML, for pages and notebooks: the sentence, and its reasons below it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final

_COLOURS: Final = {"kept": "#00815f", "broken": "#c2470c", "could not be checked": "#a87b00"}
_SHOWN: Final = 6
"""Reasons that are shown at once; the others unfold."""


def block_of(verdict: Mapping[str, Any], *, advises: bool = True) -> str:
    """Return a block of HTML, from the verdict's dict. It needs no style of the page.

    `advises`: with what to do about each reason, unless the page says it elsewhere.
    """
    is_doubtful = verdict["state"] == "kept" and verdict["strongest_attack"] is not None
    colour = _COLOURS["could not be checked" if is_doubtful else verdict["state"]]
    reasons = [f"<li>{_reason(reason, advises)}</li>" for reason in verdict["reasons"]]
    first, more = "".join(reasons[:_SHOWN]), "".join(reasons[_SHOWN:])
    unfolding = f"<details><summary>{len(reasons) - _SHOWN} more</summary><ul>{more}</ul></details>" if more else ""
    sentence = verdict["sentence"]
    return (
        f'<div class="verdict" style="border-left:.4rem solid {colour};padding:.1rem 1rem;margin:1rem 0">'
        f'<p style="font-size:1.2em;font-weight:600">{escape(sentence[:1].upper() + sentence[1:])}.</p>'
        f"{f'<ul>{first}</ul>' if first else ''}{unfolding}</div>"
    )


def _reason(reason: Mapping[str, Any], advises: bool) -> str:  # noqa: FBT001
    if not reason["code"]:
        return f"<b>{escape(reason['kind'])}</b>: {escape(reason['sentence'])}"
    advice = f" <i>What to do: {escape(reason['advice'])}</i>" if reason["advice"] and advises else ""
    return (
        f"<b>{escape(reason['kind'])}</b> <code>{escape(reason['code'])}</code> ({reason['count']:,}): "
        f"{escape(reason['sentence'])}{advice}"
    )
