"""All files of the table: importing a module registers its files."""

from __future__ import annotations

from importlib import import_module

from tests.first_release.cases import CASES

MODULES = (
    "headers",
    "bare",
    "formats",
    "web",
    "people",
    "decoys",
    "surveys",
    "missing",
    "repeats",
    "pairs",
    "events",
    "things",
    "languages",
)

_TRAITS = """
empty header cell | row names | header one cell short | repeated header names | numeric header cells | no header
header only | 0 rows | 1 row | row number | row number 1..n | access log | web log | hosts | jsonl | parquet | tab
semicolon | Latin-1 | BOM | decimal comma | quoted | free text | German dates | end dates | epoch ms
several rows a person | sleep study | check-ins with label | loans with Student | flag named person | party 0-6
handful of values as person | idcode as 22.0 | persons by values | another column depends on it | panel
pupils in schools | twins | households | person in the last column | uuid | hash | email as person | mixed case
two candidates | doctor and patient | teacher and student | buyer and seller | vehicles with drivers | phone calls
events | sets | item lists | ratings | purchases | transactions | app lists | sensors mostly missing
not about people | prices | earthquakes | tree rings | weather | cars | station numbers | sensors of machines
statistics by place
one column | names | identifiers | all booleans | booleans | flags | decimals among integers | duplicates of every row
missing | missing words | sentinels | sentinels -999/9999/. | missing diagnoses with HIV | missing languages | years
wages | logs and squares | codes | ICD and ATC | postcodes | country codes | leading zeros
wide survey | Likert items | exam grades | offences | religion and politics
language de | language fr | language es | language it | language nl | language pt | language pl | language sv
language da | language fi | language cs
"""
TRAITS = {trait.strip() for line in _TRAITS.strip().splitlines() for trait in line.split("|")}
"""What the table must contain; every trait belongs to at least one file."""

for module in MODULES:
    import_module(f"tests.first_release.files_{module}")

__all__ = ["CASES", "MODULES", "TRAITS"]
