"""The report as one HTML page: style, pictures and text are inside, so it works without a network and on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from shoal.auditor.findings import ROWS, all_filled_in_words
from shoal.auditor.report.svg import draw_bars, draw_columns, draw_pairs, draw_rates, draw_windows

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
_COSTS: Final = ("column", "value", "people who become k-anonymous if it is withheld")
_DELAYS: Final = {"median": "median", "95%": "95% within", "longest": "longest"}
_QUESTIONS: Final = {
    "singling out": "Can a person be singled out?",
    "linking": "Can records of a person be linked?",
    "inference": "Can something be inferred about a person?",
}

_NOT_ATTACKED: Final = "No attack of this kind is simulated on releases of this method."


def render(content: Mapping[str, Any]) -> str:
    """Return the page."""
    sections = [
        ("promise", "What is promised", _promise(content)),
        ("audit", "What the audit found", _audit(content["audit"])),
        ("attacks", "The three questions", _attacks(content["attacks"])),
        ("classes", "How many look alike", _classes(content["classes"])),
        ("columns", "What each column lost", _columns(content.get("columns", ()))),
        ("utility", "What the data are still good for", _utility(content["utility"])),
        ("groups", "For whom it was worst", _groups(content.get("groups", ()))),
        ("windows", "Window by window", _windows(content.get("windows"))),
        ("delay", "How long records waited", _delay(content["delay"])),
        ("policy", "The policy", f'<pre tabindex="0">{escape(content["policy"])}</pre>'),
        ("repeat", "How to repeat this report", _repeat(content["repeat"])),
    ]
    shown = [(name, title, text) for name, title, text in sections if text]
    links = "".join(f'<a href="#{name}">{escape(title)}</a> ' for name, title, _ in shown)
    body = "".join(f'<section id="{name}"><h2>{escape(title)}</h2>{text}</section>' for name, title, text in shown)
    note = _soft("Private: this page was made with the raw data and shows their distributions.")
    return page_of(
        f"Evidence for a release of {content['method']}", f"<p>{note}</p>{_cards(content)}{_little(content)}"
        f'<nav aria-label="Contents">{links}</nav>{body}', skip_to=shown[0][0],
    )  # fmt: skip


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


def _soft(text: str) -> str:
    return f'<span class="soft">{escape(text)}</span>'


def _share(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if value >= 0.001 or value == 0 else f"{value:.3%}"


def _cards(content: Mapping[str, Any]) -> str:
    verdict = content["audit"]
    tried = [attack for attack in content["attacks"]["attacks"] if attack["success"]]
    gains = [attack for attack in tried if attack["gains"]]
    smallest = content["classes"]["smallest"]
    cards = [
        (f"promise{_for_rows(verdict)}",
         '<span class="good">kept</span>' if verdict["ok"] else '<span class="bad">broken</span>',
         f"{len(verdict['not_checked'])} checks were not possible"),
        ("attacks clearly better than guessing", f"{len(gains)} of {len(tried)}",
         "also better than on people who are not in the data"),
        ("smallest class", "–" if smallest is None else f"{smallest:,}", escape(content["classes"]["what"])),
        ("released", _share(content["utility"][0]["value"]), "of the records"),
    ]  # fmt: skip
    return '<div class="cards">' + "".join(
        f'<div class="card"><span class="soft">{title}</span><b>{value}</b><span class="soft">{more}</span></div>'
        for title, value, more in cards
    ) + "</div>"  # fmt: skip


def _little(content: Mapping[str, Any]) -> str:
    """A warning if most records are missing, unless the method is meant to withhold what is rare."""
    share = content["utility"][0]["value"]
    if share is None or share >= 0.5 or content["method"] == "z-anonymity":
        return ""
    what = "Nothing was released." if not share else f"Only {_share(share)} of the records were released."
    return (
        f'<p class="bad">{what} Counts and averages of this release describe those records alone. A smaller k, a '
        "longer deadline or fewer quasi-identifiers would release more.</p>"
    )


def _promise(content: Mapping[str, Any]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in content["promise"]) + "</ul>"


def _for_rows(verdict: Mapping[str, Any]) -> str:
    return f" for {ROWS}" if verdict["about"] == ROWS else ""


def _audit(found: Mapping[str, Any]) -> str:
    kind, words = (
        ("good", "Nothing broken in what could be checked.") if found["ok"] else ("bad", "A promise is broken.")
    )
    verdict = f'<p class="{kind}">{words.removesuffix(".")}{_for_rows(found)}.</p>'
    rows = [[str(one["severity"]), f"<code>{escape(one['code'])}</code>", f"{one['count']:,}", escape(one["sentence"])]
            for one in found["findings"]]  # fmt: skip
    table = table_of(["severity", "code", "rows", "finding"], rows, (2,)) if rows else "<p>No findings.</p>"
    filled = found["metrics"].get("filled_cells")
    missing = f"<p>{escape(all_filled_in_words(filled))}.</p>" if filled is not None else ""
    gaps = "".join(f"<li>{escape(sentence)}</li>" for sentence in found["not_checked"])
    return verdict + table + missing + (f"<h3>Not checked</h3><ul>{gaps}</ul>" if gaps else "")


def _attacks(found: Mapping[str, Any]) -> str:
    key = (
        '<p class="key soft"><span><i style="background:var(--bad)"></i>success, clearly above all baselines</span>'
        '<span><i style="background:var(--after)"></i>success</span>'
        '<span><i style="background:var(--soft)"></i>guess without the release</span>'
        '<span><i style="background:var(--good)"></i>control: people not in the data</span>'
        '<span><i style="background:var(--before)"></i>raw data</span></p>'
    )
    parts = ["<p>Simulated attackers with stated knowledge; the share of people they are right about.</p>", key]
    parts.append(_rows_of_people(found["facts"]))
    for question, words in _QUESTIONS.items():
        asked = [attack for attack in found["attacks"] if attack["question"] == question]
        rows = [
            [f"<b>{escape(attack['name'])}</b><br>{_soft(_described(attack))}",
             _share(attack["success"]["rate"]),
             f"{_share(attack['success']['low'])} – {_share(attack['success']['high'])}",
             _share(attack["guess"]), _share(attack["control"]), _share(attack["raw"]), f"{attack['success']['n']:,}"]
            for attack in asked if attack["success"]
        ]  # fmt: skip
        head = ["attacker", "success", "95% interval", "guess", "control", "raw", "n"]
        parts += [f"<h3>{words}</h3>", draw_rates(asked) if asked else f"<p>{_soft(_NOT_ATTACKED)}</p>"]
        parts.append(table_of(head, rows, range(1, 7)) if rows else "")
        idle = [f"<li>{escape(one['name'])}: {escape(one['why_not'])}</li>" for one in asked if not one["success"]]
        parts.append(f"<p class='soft'>Does not apply:</p><ul class='soft'>{''.join(idle)}</ul>" if idle else "")
    return "".join(parts)


def _rows_of_people(facts: Mapping[str, Any]) -> str:
    """How many rows people have: what is promised of each row is less for all rows of a person."""
    if facts.get("most_rows_of_a_person", 1) < 2:
        return ""
    middle, most = facts["median_rows_of_a_person"], facts["most_rows_of_a_person"]
    return (
        f"<p>People have several rows in this release: half of them {middle:g} or more, one {most:,}. Promises are "
        "about each row; whoever can tell which rows are of one person learns more: see the attackers who know 1, 3, "
        "10 and 30 rows.</p>"
    )


def _described(attack: Mapping[str, Any]) -> str:
    """What an attacker wants and knows, and the control group where it is not people outside the data."""
    words = f"{attack['wants']} Knows: {attack['knows']}."
    return f"{words} Control: {attack['control_is']}." if attack["has_own_control"] else words


def _classes(found: Mapping[str, Any]) -> str:
    median = "–" if found["median"] is None else f"{found['median']:g}"
    intro = f"<p>{found['classes']:,} groups of {escape(found['what'])}; the median has {median}.</p>"
    return intro + draw_bars(found["names"], found["counts"], f"{found['what']}, by the size of their group")


def _columns(columns: Sequence[Mapping[str, Any]]) -> str:
    if not columns:
        return ""
    parts = [
        draw_bars([one["name"] for one in columns], [round(one["loss"], 4) for one in columns],
                  "loss of each column, from 0 (exact) to 1 (nothing left)"),
        '<p class="key soft"><span><i style="background:var(--before)"></i>before</span>'
        '<span><i style="background:var(--after)"></i>after; a range or label counts evenly for all it may stand for'
        "</span></p>",
    ]  # fmt: skip
    for one in columns:
        title = f"{one['name']}, before and after"
        parts.append(f"<h3>{escape(one['name'])} <span class='soft'>loss {one['loss']:.3f}</span></h3>")
        if one["kind"] == "labels":
            parts.append(draw_pairs(one["names"], one["before"], one["after"], title))
        else:
            ends = (one["names"][0].split(" – ")[0], one["names"][-1].split(" – ")[1])
            parts.append(draw_columns(one["before"], one["after"], ends, title))
    return "".join(parts)


def _utility(measures: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"<b>{escape(one['name'])}</b><br>{_soft(one['what'])}",
         escape(one["why_not"]) if one["value"] is None else f"{one['value']:.3f}", f"{one['ideal']:.3f}"]
        for one in measures
    ]  # fmt: skip
    return table_of(["purpose", "release", "raw data"], rows, (1, 2))


def _groups(groups: Sequence[Mapping[str, Any]]) -> str:
    if not groups:
        return ""
    rows = [[escape(one["column"]), escape(one["value"]), f"{one['records']:,}", _share(one["suppressed"]),
             f"{one['loss']:.3f}"] for one in groups]  # fmt: skip
    intro = "<p>Groups of at least 20 records with the largest average loss; a suppressed record loses 1.</p>"
    return intro + table_of(["column", "value", "records", "suppressed", "loss"], rows, (2, 3, 4))


def _windows(found: Mapping[str, Any] | None) -> str:
    if not found or not found["windows"]:
        return ""
    rows = [[escape(one["start"]), f"{one['shown']:,}", f"{one['not_k_anonymous']:,}", _share(one["k_anonymous_share"]),
             f"{one['unique']:,}", f"{one['released_rows']:,}"] for one in found["windows"][:200]]  # fmt: skip
    head = ["window", "people shown", "not k-anonymous", "share k-anonymous", "unique", "rows"]
    costs = [
        [escape(one["attribute"]), escape(one["value"]), f"{one['fewer_not_k_anonymous']:,}"] for one in found["costs"]
    ]
    return (
        f"<p>People who share everything released of them in a window with at least {found['k'] - 1} others are "
        f"k-anonymous (k = {found['k']}).</p>{draw_windows(found['windows'], found['k'])}"
        f"<details><summary>Table</summary>{table_of(head, rows, range(1, 6))}</details>"
        + (f"<h3>Values that cost most</h3>{table_of(_COSTS, costs, (2,))}" if costs else "")
    )  # fmt: skip


def _delay(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    cells = [f"{found[name]:,.0f}" if found[name] >= 100 else f"{found[name]:,.3g}" for name in _DELAYS]
    intro = f"<p>In {found['unit']}.</p>"
    return intro + table_of(["records", *_DELAYS.values()], [[f"{found['records']:,}", *cells]], range(4))


def _repeat(found: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{escape(name)} {escape(number)}" for name, number in found["versions"].items())
    rows = [[escape(name), f"<code>{digest}</code>"] for name, digest in found["sha256"].items()]
    return (
        f"<p>Versions: {versions}. Seed {found['seed']}, {found['targets']:,} targets.</p>"
        + (table_of(["file", "SHA-256"], rows) if rows else "")
    )  # fmt: skip
