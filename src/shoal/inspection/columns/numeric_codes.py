"""Numeric codes: numbers that stand for districts, venues, countries or answers, so that ranges of them say nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.inspection.columns.column_names import words, words_of
from shoal.inspection.columns.facts import Facts

_FEW: Final = 12
"""Different whole numbers up to which somebody is asked whether they are codes."""
_CODES: Final = words("""
    country cntry land pays pais paese kraj maa nation nationality citizenship staat district bezirk kreis region county
    comte landkreis lan laen departement departamento provincia province state bundesland canton kanton kommune commune
    comune municipio municipality gemeinde gmina powiat wojewodztwo obec kunta city town stadt ville ciudad zone area
    zona oblast tract block neighborhood neighbourhood borough parish ward station stationen haltestelle stop stops
    venue place location site store shop filiale branch outlet school schule ecole escuela skola skole szkola hospital
    clinic klinik department dept abteilung faculty course room line route gate terminal channel kanal cell antenna
    zip zipcode postcode postal plz postleitzahl cp cap codigopostal postnummer postnr psc irsz postinumero areacode
    icd icd9 icd10 atc isco isced nace naics sic soc nuts fips insee ags lau hs drg ops cpt ndc loinc
    code codes kod koodi codigo codice kode cod cd id nr no num number nummer numero
    status race ethnicity ethnic religion rlgdnm denomination party prtvt partei sexorient sex gender gndr geschlecht
    sexe sexo kon kjonn plec pohlavi sukupuoli nem marital occupation beruf profession job industry branche sector
    sektor type typ category kategorie cluster stratum strata group gruppe segment product item sku brand model
    protocol port flag treatment arm
""")
_QUANTITIES: Final = words("""
    age alter edad wiek vek ika count counts size anzahl number_of num_of total sum amount betrag price preis cost
    income wage salary weight height length width duration hours days weeks months years minutes seconds score
    points rate percent pct ratio share temperature distance speed speeds population pop people persons children
    kids rooms visits stops cars year jahr annee ano anno rok month monat day tag week woche date time per mean avg
    average median min max std density index value values volume capacity
""")
_MEASURED: Final = re.compile(r"(?i)(no|num|nr|number|count|anzahl|total|n)[\s_.]*(of|de|von|der)[\s_.]")


def is_code(one: Facts) -> bool:
    """Whether the numbers of a column are codes: by its name, or because there are at most two of them."""
    if one.kind not in ("whole", "number") or (one.kind == "number" and one.written is None):
        return False  # a run reads no labels from floats of Parquet files, frames or JSON
    if one.distinct <= 2:
        return True
    return one.kind == "whole" and has_code_name(one.name)


def has_code_name(name: str) -> bool:
    """Whether a name says that the numbers of its column are codes."""
    own = words_of(name)
    if not own or _MEASURED.match(name) or _QUANTITIES.intersection(own):
        return False
    return any(word in _CODES or (len(word) > len("code") and word.endswith(("nr", "code", "kod"))) for word in own)


def may_be_codes(one: Facts) -> bool:
    """Whether a column has a few whole numbers, and its name does not say that they are quantities."""
    if one.kind != "whole" or one.distinct > _FEW:
        return False
    return not _QUANTITIES.intersection(words_of(one.name))


def as_code(one: Facts) -> Facts:
    """A column of codes as texts, as the file spells them."""
    text = one.written if one.written is not None else one.values.cast(pa.string())
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    is_digits = one.kind == "whole" and bool(pc.all(pc.match_substring_regex(text.drop_null(), r"^\d{3,9}$")).as_py())
    return replace(one, kind="text", values=text, shape="digits" if is_digits else "words", time_unit=None)
