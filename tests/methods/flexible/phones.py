"""Phones with a brand, a system and a country, and the ontology of some of them."""

from __future__ import annotations

from collections.abc import Sequence

from shoal import Ontology

_PHONES = """
S3, Samsung, Android, Korea
S4, Samsung, Android, Korea
S5, Samsung, Android, Korea
S6, Samsung, Android, Korea
G2, LG, Android, Korea
M8, HTC, Android, Taiwan
P8, Huawei, Android, China
Mi, Xiaomi, MIUI, China
6s, Apple, iOS, USA
7s, Apple, iOS, USA
SE, Apple, iOS, USA
Lumia, Nokia, Windows, Finland
"""
_COLUMNS = ("model", "brand", "os", "country")


def phones(*models: str) -> list[dict[str, str]]:
    """The rows of these models."""
    rows = [dict(zip(_COLUMNS, line.split(", "), strict=True)) for line in _PHONES.strip().splitlines()]
    by_model = {row["model"]: row for row in rows}
    return [by_model[model] for model in models]


def devices(rows: Sequence[dict[str, str]]) -> Ontology:
    """An ontology of phones; the model is sparse."""
    return Ontology.from_table(
        rows, value="model", is_a=["brand"], properties=["os", "country"], tag="sparse", attribute="device"
    )
