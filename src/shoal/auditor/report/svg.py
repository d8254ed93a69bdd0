"""Small pictures as inline SVG. Colours come from the page's style, so that they follow light, dark and print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

_WIDTH: Final = 640
_LABELS: Final = 200
_LINE: Final = 22


def _picture(height: float, title: str, parts: Sequence[str], width: int = _WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(title)}" class="picture">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, *, end: bool = False, kind: str = "") -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor} class="{kind}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, title: str = "") -> str:
    line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"'
    return f"{line}><title>{escape(title)}</title></line>" if title else f"{line}/>"


def _dot(x: float, y: float, radius: float, kind: str, title: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{kind}"><title>{escape(title)}</title></circle>'


def _bar(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" class="{kind}">'
        f"<title>{escape(title)}</title></rect>"
    )


def draw_rates(attacks: Sequence[dict[str, Any]]) -> str:
    """Draw success rates with their intervals; marks for guessing, the control group and the raw data."""
    shown = [attack for attack in attacks if attack["success"]]
    if not shown:
        return ""
    left, right = _LABELS, _WIDTH - 20
    parts, bottom = [], 14 + _LINE * len(shown)
    for tick in range(0, 101, 25):
        x = left + (right - left) * tick / 100
        parts.append(_line(x, 6, x, bottom, "grid"))
        parts.append(_text(x, bottom + 14, f"{tick}%", kind="small middle"))
    for place, attack in enumerate(shown):
        y, rate = 6 + _LINE * (place + 0.5), attack["success"]
        parts.append(_text(left - 8, y + 4, attack["name"], end=True))
        begin, end, at = (left + (right - left) * rate[name] for name in ("low", "high", "rate"))
        kind = "high" if attack["gains"] else "low"
        parts.append(_line(begin, y, end, y, f"interval {kind}"))
        title = f"{attack['name']}: {rate['rate']:.1%} ({rate['low']:.1%} to {rate['high']:.1%})"
        parts.append(_dot(at, y, 4.5, kind, title))
        for side in ("guess", "control", "raw"):
            if attack[side] is not None:
                x = left + (right - left) * attack[side]
                parts.append(_line(x, y - 8, x, y + 8, f"mark {side}", f"{side}: {attack[side]:.1%}"))
    return _picture(bottom + 20, "success rates of attacks, with 95% intervals", parts)


def draw_bars(names: Sequence[str], values: Sequence[float], title: str, unit: str = "") -> str:
    """Draw one bar for each name."""
    top = max([*values, 1e-12])
    parts = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        y = 4 + _LINE * place
        parts.append(_text(_LABELS - 8, y + 14, name[:32], end=True))
        width = (_WIDTH - _LABELS - 90) * value / top
        parts.append(_bar(_LABELS, y + 3, width, _LINE - 7, "after", f"{name}: {_number(value)}{unit}"))
        parts.append(_text(_LABELS + width + 6, y + 14, f"{_number(value)}{unit}", kind="small"))
    return _picture(8 + _LINE * len(names), title, parts)


def draw_pairs(names: Sequence[str], before: Sequence[float], after: Sequence[float], title: str) -> str:
    """Draw two bars for each name: shares before and after."""
    top = max([*before, *after, 1e-12])
    parts = []
    for place, (name, one, other) in enumerate(zip(names, before, after, strict=True)):
        y = 4 + _LINE * place
        parts.append(_text(_LABELS - 8, y + 14, name[:32], end=True))
        scale = (_WIDTH - _LABELS - 20) / top
        parts.append(_bar(_LABELS, y + 2, one * scale, 8, "before", f"{name}, before: {one:.1%}"))
        parts.append(_bar(_LABELS, y + 11, other * scale, 8, "after", f"{name}, after: {other:.1%}"))
    return _picture(8 + _LINE * len(names), title, parts)


def draw_columns(before: Sequence[float], after: Sequence[float], ends: tuple[str, str], title: str) -> str:
    """Draw a histogram before and after, as outlines over one another."""
    top, count = max([*before, *after, 1e-12]), max(len(before), 1)
    wide, high = (_WIDTH - 40) / count, 110
    parts = []
    for place, (one, other) in enumerate(zip(before, after, strict=True)):
        x = 20 + wide * place
        for side, value, shift in (("before", one, 0.0), ("after", other, wide * 0.5)):
            tall = 100 * value / top
            parts.append(_bar(x + shift, high - tall, wide * 0.48, tall, side, f"{side}: {value:.1%}"))
    parts.append(_text(20, high + 16, ends[0], kind="small"))
    parts.append(_text(_WIDTH - 20, high + 16, ends[1], end=True, kind="small"))
    return _picture(high + 22, title, parts)


def draw_windows(windows: Sequence[dict[str, Any]], k: int) -> str:
    """Draw, for every window, the people shown and those of them who are not k-anonymous."""
    top, wide = max([*(one["shown"] for one in windows), 1]), (_WIDTH - 60) / max(len(windows), 1)
    parts = [_text(4, 14, f"{top:,}", kind="small"), _text(4, 124, "0", kind="small")]
    for place, one in enumerate(windows):
        x, shown, exposed = 50 + wide * place, one["shown"], one["not_k_anonymous"]
        tall, bad = 116 * shown / top, 116 * exposed / top
        title = f"{one['start']}: {shown:,} shown, {exposed:,} of them share their set with fewer than {k - 1} others"
        parts.append(_bar(x, 124 - tall, wide * 0.9, tall, "after", title))
        parts.append(_bar(x, 124 - bad, wide * 0.9, bad, "high", title))
    if windows:
        parts.append(_text(50, 140, windows[0]["start"], kind="small"))
        parts.append(_text(_WIDTH - 10, 140, windows[-1]["start"], end=True, kind="small"))
    return _picture(146, "people shown in each window, and those who are not k-anonymous", parts)


def draw_points(points: Sequence[tuple[str, float, float, bool]], x_name: str, y_name: str, *, limit: float) -> str:
    """Draw named points; the chosen one is filled in another colour, and a line marks the limit of x."""
    right = max([*(x for _, x, _, _ in points), limit]) * 1.15
    top = max([*(y for _, _, y, _ in points), 1e-9]) * 1.15
    high, left = 300, 60

    def place(x: float, y: float) -> tuple[float, float]:
        return left + (_WIDTH - left - 120) * x / right, high - 20 - (high - 40) * y / top

    at_limit = place(limit, 0)[0]
    parts = [
        _line(left, high - 20, _WIDTH - 20, high - 20, "grid"),
        _line(left, 10, left, high - 20, "grid"),
        _line(at_limit, 10, at_limit, high - 20, "mark guess"),
        _text(at_limit + 4, 20, f"limit {limit:.0%}", kind="small"),
        _text(_WIDTH - 20, high - 4, x_name, end=True, kind="small"),
        _text(4, 12, y_name, kind="small"),
        _text(left - 4, high - 20, "0", end=True, kind="small"),
        _text(left - 4, place(0, top / 1.15)[1] + 4, f"{top / 1.15:.2g}", end=True, kind="small"),
    ]
    names: dict[tuple[int, int], tuple[tuple[float, float], list[str]]] = {}
    for name, x, y, chosen in points:
        at = place(x, y)
        title = f"{name}: {x_name} {x:.2%}, {y_name} {y:.3f}"
        parts.append(_dot(*at, 7 if chosen else 5, "high" if chosen else "low", title))
        spot = (round(at[0] / 8), round(at[1] / 8))
        names[spot] = (at, [*names.get(spot, (at, []))[1], name])
    written: list[tuple[float, float, float]] = []
    for at, together in names.values():
        text = ", ".join(together)
        x, y, wide = at[0] + 9, at[1] + 4, 7.0 * len(text)
        while any(abs(y - other) < 13 and x < end and start < x + wide for start, end, other in written):
            y -= 13  # above the name that is there already
        written.append((x, x + wide, y))
        parts.append(_text(x, y, text))
    return _picture(high, f"{y_name} against {x_name}", parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
