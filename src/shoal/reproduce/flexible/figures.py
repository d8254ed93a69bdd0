"""Figures on flexible k-anonymity with axes: K_s and P(s), loss, and what the attack finds."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Final

from shoal.figures.lines import Lines, Panel, Record, draw_panels
from shoal.reproduce.flexible.study import EQUAL, EXACT, FLEXIBLE, HOME, IGNORED, SHOWN_K, WITH_DEVICE

_K_AXIS: Final = "k"
_RAW: Final = "pseudonyms removed"


def draw_sparsity(path: str | PathLike[str], k_s: Sequence[Record], shares: Sequence[Record]) -> None:
    """K_s by P(s), next to the paper's product, and P(s) of the device in longer and longer streams."""
    crowds = sorted({one["k"] for one in k_s})
    names = [f"k = {k}" for k in crowds]
    needed: Lines = {f"k = {k}": _line(k_s, "p_s", "k_s", k=k) for k in crowds}
    product = f"the paper: P(s) × {SHOWN_K}"
    needed[product] = _line(k_s, "p_s", "product", k=SHOWN_K)
    measured: Lines = {f"k = {k}": _line(shares, "records", "p_s", k=k) for k in crowds}
    panels = [
        Panel("K_s that shoal requires", "P(s)", "K_s, people", needed),
        Panel("P(s) of the device", "first records of the stream", "records with a rare device", measured,
              is_share=True),
    ]  # fmt: skip
    draw_panels(path, panels, title="Section 5.3: P(s) and K_s", names=[*names, product])


def draw_loss(path: str | PathLike[str], runs: Sequence[Record]) -> None:
    """Loss, pending records and exact devices, by k."""
    names = [name for name in (FLEXIBLE, EQUAL, IGNORED, EXACT) if any(one["release"] == name for one in runs)]
    points = frozenset({IGNORED, EXACT})
    panels = [
        Panel(title, _K_AXIS, label, {name: _line(runs, "k", measure, release=name) for name in shown}, is_log=is_log,
              points=points)
        for title, label, measure, shown, is_log in (
            ("Loss", "loss of published rows", "loss", names, False),
            ("Pending", "records not published", "pending", names, True),
            ("Devices", "share published with the model as it is", "device_as_it_is", names[:2], False),
        )
    ]  # fmt: skip
    draw_panels(path, panels, title="The campaign released", names=names)


def draw_attack(path: str | PathLike[str], found: Sequence[Record], crowds: Sequence[int]) -> None:
    """People behind the candidate rows, and how often the attacker is right."""
    releases = {
        FLEXIBLE: {1: _RAW} | {k: f"k = {k}" for k in crowds},
        EQUAL: {1: _RAW} | {k: f"k = {k}, K_s = K" for k in crowds},
    }
    panels = [
        Panel(title, "k (1: not anonymized)", label,
              {f"{name}, known: {knowledge}": _points(found, by_k, knowledge, measure)
               for name, by_k in releases.items() for knowledge in (HOME, WITH_DEVICE)},
              is_log=is_log, is_share=not is_log)
        for title, label, measure, is_log in (
            ("Candidates", "people behind candidate rows, median", "median_candidates", True),
            ("Fewest candidates", "people behind candidate rows, fewest", "fewest_candidates", True),
            ("Rows picked", "rows picked that are theirs", "rows_picked_theirs", False),
            ("Best guess", "rows with the finest labels that are theirs", "best_guess_right", False),
        )
    ]  # fmt: skip
    following: Lines = {
        f"{name}, known: {HOME}": _points(found, by_k, HOME, "next_place_right") for name, by_k in releases.items()
    }
    panels.append(
        Panel("Following", "k (1: not anonymized)", "next row elsewhere is theirs", following, is_share=True)
    )  # fmt: skip
    names = [f"{name}, known: {knowledge}" for name in releases for knowledge in (HOME, WITH_DEVICE)]
    draw_panels(path, panels, title="Section 2.2: the traceability attack", names=names)


def _line(records: Sequence[Record], x: str, y: str, **wanted: object) -> tuple[list[float], list[float]]:
    chosen = [
        one for one in records if all(one[key] == value for key, value in wanted.items()) and one[y] is not None
    ]  # fmt: skip
    return [one[x] for one in chosen], [one[y] for one in chosen]


def _points(
    found: Sequence[Record], by_k: dict[int, str], knowledge: str, measure: str
) -> tuple[list[float], list[float]]:  # fmt: skip
    rows = {(one["release"], one["attacker_knows"]): one[measure] for one in found}
    pairs = [(k, rows.get((release, knowledge))) for k, release in by_k.items()]
    return [k for k, value in pairs if value is not None], [value for _, value in pairs if value is not None]
