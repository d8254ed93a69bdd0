"""The report as one HTML page, with everything that was collected about a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from shoal.auditor.report.audit_page import findings_of
from shoal.auditor.report.frame import page_of, soft, table_of
from shoal.auditor.report.svg import draw_bars, draw_columns, draw_pairs, draw_rates, draw_windows
from shoal.auditor.report.verdict_block import block_of

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
        ("audit", "What the audit found", findings_of(content["audit"])),
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
    note = soft("Private: this page was made with the raw data and shows their distributions.")
    first = f"{block_of(content['verdict'], advises=False)}<p>{note}</p>{_cards(content)}{_little(content)}"
    return page_of(
        f"Evidence for a release of {content['method']}",
        f'{first}<nav aria-label="Contents">{links}</nav>{body}',
        skip_to=shown[0][0],
    )


def _share(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1%}" if value >= 0.001 or value == 0 else f"{value:.3%}"


def _cards(content: Mapping[str, Any]) -> str:
    smallest, classes = content["classes"]["smallest"], content["classes"]["what"]
    cards = [
        ("strongest attack", *_strongest(content["verdict"])),
        ("smallest class", "–" if smallest is None else f"{smallest:,}", escape(classes)),
        ("released", _share(content["utility"][0]["value"]), "of the records"),
    ]
    return '<div class="cards">' + "".join(
        f'<div class="card"><span class="soft">{title}</span><b>{value}</b><span class="soft">{more}</span></div>'
        for title, value, more in cards
    ) + "</div>"  # fmt: skip


def _strongest(verdict: Mapping[str, Any]) -> tuple[str, str]:
    """What the strongest attack gains, and on how many people."""
    attack, tried = verdict["strongest_attack"], verdict["attacks_tried"]
    if attack is None:
        return "no gain", f"over guessing, of {tried} attacks"
    more = f"{verdict['attacks_that_gain']} of {tried} attacks gain"
    return f"+{_share(attack['gain'])}", f"over guessing: {escape(attack['name'])}, {attack['people']:,} people; {more}"


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
            [f"<b>{escape(attack['name'])}</b><br>{soft(_described(attack))}",
             _share(attack["success"]["rate"]),
             f"{_share(attack['success']['low'])} – {_share(attack['success']['high'])}",
             _share(attack["guess"]), _share(attack["control"]), _share(attack["raw"]), f"{attack['success']['n']:,}"]
            for attack in asked if attack["success"]
        ]  # fmt: skip
        head = ["attacker", "success", "95% interval", "guess", "control", "raw", "n"]
        parts += [f"<h3>{words}</h3>", draw_rates(asked) if asked else f"<p>{soft(_NOT_ATTACKED)}</p>"]
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
        [f"<b>{escape(one['name'])}</b><br>{soft(one['what'])}",
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
