"""The result as HTML for notebooks: promise, counts, a small picture, roles. No value of a person is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from shoal.inspection.columns.roles import Role

_COLOURS: Final = {"released": "#0072b2", "suppressed": "#e69f00", "refused": "#999999", "pending": "#56b4e9"}
_WIDTH: Final = 420


def html_of(
    title: str, statement: str, verdict: str, counts: Mapping[str, int], losses: Mapping[str, float],
    roles: Sequence[Role], notes: Sequence[str],
) -> str:  # fmt: skip
    """The whole block; the verdict is HTML already."""
    shown = {name: count for name, count in counts.items() if name in _COLOURS}
    legend = " · ".join(
        f'<span style="color:{_COLOURS[name]}">■</span> {count:,} {name}' for name, count in shown.items() if count
    )
    parts = [
        f"<p><b>{escape(title)}</b></p><p>{escape(statement)}</p>{verdict}", _bar(shown),
        f"<p>{legend or 'no rows'}</p>", _losses(losses),
        _roles(roles), "".join(f"<p>⚠ {escape(note)}</p>" for note in notes),
    ]  # fmt: skip
    return f'<div style="max-width:44em">{"".join(parts)}</div>'


def _bar(counts: Mapping[str, int]) -> str:
    total, at, parts = sum(counts.values()), 0.0, []
    for name, count in counts.items():
        width = _WIDTH * count / total if total else 0
        parts.append(f'<rect x="{at:.1f}" y="0" width="{width:.1f}" height="16" fill="{_COLOURS[name]}"/>')
        at += width
    title = escape(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    return f'<svg role="img" aria-label="{title}" width="{_WIDTH}" height="16">{"".join(parts)}</svg>'


def _losses(losses: Mapping[str, float]) -> str:
    lines = "".join(
        f'<tr><td>{escape(name)}</td><td><svg width="120" height="10"><rect width="120" height="10" fill="#dddddd"/>'
        f'<rect width="{120 * (1 - loss):.1f}" height="10" fill="#0072b2"/></svg></td><td>{1 - loss:.0%} kept</td></tr>'
        for name, loss in losses.items()
    )
    return f"<table>{lines}</table>" if lines else ""


def _roles(roles: Sequence[Role]) -> str:
    lines = "".join(
        f"<tr><td>{escape(one.column)}</td><td>{one.role}</td><td>{escape(one.reason)}</td></tr>" for one in roles
    )
    head = "<tr><th>column</th><th>role</th><th>why</th></tr>"
    return f"<details><summary>roles</summary><table>{head}{lines}</table></details>" if lines else ""
