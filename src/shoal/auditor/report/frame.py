"""What every page of the auditor has: style and head inside, so that it works without a network and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--page:#fff;--line:#d8dee6;--after:#0072b2;
--before:#b8c2cc;--bad:#b3410b;--good:#00684d;--panel:#f5f7f9}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3adba;--page:#12161c;--line:#333c48;--after:#56b4e9;
--before:#566270;--bad:#ff9a5c;--good:#4fd1a5;--panel:#1a2028}}
@media print{:root{--ink:#000;--soft:#444;--page:#fff;--line:#bbb;--after:#0072b2;--before:#b8c2cc;--bad:#b3410b;
--good:#00684d;--panel:#fff}nav,.skip{display:none}tr,svg,.card,li{break-inside:avoid}h2,h3{break-after:avoid}
details>*{display:block}.scroll,pre{overflow:visible!important}pre{white-space:pre-wrap;overflow-wrap:anywhere}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem 1.25rem 4rem}h1{font-size:1.7rem;margin:.5rem 0}
h2{font-size:1.25rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}nav a{margin-right:.9rem;color:var(--after)}
a:focus-visible,summary:focus-visible,pre:focus-visible,.scroll:focus-visible{outline:2px solid var(--after);
outline-offset:2px}p,li{max-width:46rem}
.soft{color:var(--soft)}table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0}
th,td{text-align:left;padding:.3rem .5rem;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}th{vertical-align:bottom}.scroll{overflow-x:auto}
.bad{color:var(--bad);font-weight:600}.good{color:var(--good);font-weight:600}
.cards{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}
.card{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .9rem;flex:1 1 12rem}
.card b{display:block;font-size:1.35rem}
pre{background:var(--panel);border:1px solid var(--line);padding:.75rem;overflow-x:auto;font-size:.82rem}
.picture{width:100%;max-width:46rem;height:auto;display:block;font:12px system-ui,sans-serif}
.picture text{fill:var(--ink)}.picture .small{fill:var(--soft);font-size:11px}.picture .middle{text-anchor:middle}
.after{fill:var(--after)}.before{fill:var(--before)}rect.high{fill:var(--bad)}.grid{stroke:var(--line)}
.interval{stroke-width:3;stroke-linecap:round}.interval.high{stroke:var(--bad)}.interval.low{stroke:var(--after)}
circle.high{fill:var(--bad)}circle.low{fill:var(--after)}.mark{stroke-width:2}.mark.guess{stroke:var(--soft)}
.mark.control{stroke:var(--good);stroke-dasharray:3 2}.mark.raw{stroke:var(--before)}.key span{margin-right:1rem}
.key i{display:inline-block;width:.8rem;height:.8rem;margin-right:.3rem;vertical-align:-.1rem}
code{font-size:.9em;overflow-wrap:anywhere}
.skip{position:absolute;left:-99rem}.skip:focus{position:static;color:var(--after)}
"""


def page_of(title: str, body: str, *, skip_to: str = "") -> str:
    """Return a whole page; the body is HTML already. Readers by keyboard may skip to a section."""
    skip = f'<a class="skip" href="#{skip_to}">Skip the contents</a>' if skip_to else ""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>shoal: {escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{skip}<main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Write a table; cells are HTML already."""
    kinds = ['class="n"' if place in numbers else "" for place in range(len(head))]
    top = "".join(f"<th {kind}>{escape(name)}</th>" for kind, name in zip(kinds, head, strict=True))
    lines = "".join(
        "<tr>" + "".join(f"<td {kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def soft(text: str) -> str:
    """Write text that matters less."""
    return f'<span class="soft">{escape(text)}</span>'
