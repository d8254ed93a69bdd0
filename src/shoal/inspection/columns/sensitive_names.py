"""Columns that nobody should learn of a person: by their names, in the languages of Europe, and by their values."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from shoal.inspection.columns.column_names import phrases, words, words_of

_STEMS: Final = words("""
    wage diagnos krankheit erkrankung illness disease sickness sygdom sykdom sjukdom maladie malattia enfermedad doenca
    choroba nemoc betegseg zdrowie sairau symptom disabilit behinderung handicap depress psychiat hiv cancer krebs
    diabet tumor tumour epilep asthma medication medikament medicament medicijn therap suicid selbstmord abortion
    pregnan schwanger alcohol alkohol smok tobacco rauch tabac substance addict sucht chronic chronisch comorbid
    salary salari salair gehalt einkommen einkuenft inkomen inkomst indkomst inntekt income earnings reddito ingreso
    rendimento przychod dochod zarob palkka tulot jovedelem wynagrodz loonkost religi konfession confession
    denomination faith kirche church wyznanie politic politik polit ideolog partei partito partido parteipraef
    leftright poglad sexorient homosex transgend offence offense criminal convict felony arrests delikt straftat
    vergehen brott forbry delito delitti reato prestepst przestep rikos bunozes sentence haftstraf verurteil
    vermoegen wealth networth insolven bankrupt schulden verschuld skuld deuda dettes debito dlug zadluz benefits
    welfare sozialhilfe unemploymentben grundsicherung gewerkschaft tradeunion odbory zwiazki sindicato syndicat
    blutdruck bloodpress glucose cholesterol hemoglobin haemoglobin hba1c viral
""")
"""Beginnings and parts of words; short ones count at the beginning of a word only."""
_WORDS: Final = words("""
    icd icd9 icd10 atc ops drg drug drugs medicine condition treatment hiv aids sti std ill sick health healthy
    sante salud salute saude gesundheit halsa helse zdravi terveys sundhed disorder injury complaint complaints
    depression anxiety mental stress pain bmi bp sbp dbp cd4 hb wage wages revenu revenus pay payroll lohn loehne
    stundenlohn monatslohn bezuege loon loen lon salaris lonn ansatslon mzda plat plata placa sueldo stipendio
    vencimento ordenado palk alga uzmokestis faminc hinc hinctnt netinc earn debt debts schuld skulder gaeld gjeld
    dette velka loan credit arrears dluhy dlugi religion faith relig rlgdnm rlgblg belief religione religiao
    religiosity uskonto vallas party vote voted votes voting prtvt lrscale ideology parti partei parteien strana
    partia puolue partij valg offence crime crimes verdict guilty prison jail arrested arrest rap recid recidivism
    lagbrott orientation sexuality sexual sexorient gay lesbian union unionized result outcome score rating class
    credit mark marks grade grades gpa note noten zensur punkte cijfer cijfers betyg karakter ocena oceny znamka
    znamky arvosana voto nota notas notes calificacion pagella resultat ergebnis failures pressure blood case
""")
_WEAK: Final = words("""
    condition treatment health healthy result outcome score rating class credit mark marks note notes nota notas punkte
    pressure blood complaint complaints party pay plat loan drug drugs union pain stress health resultat ergebnis
    rap ill hb bp lon plata voto vote votes karakter condition drinking drinks orientation sentence case
""")
"""Names that may mean something else: they do not overrule a word that others may know."""
_ABOUT: Final = words("""
    age year date day time month alter jahr datum annee edad ano anno wiek rok size count number num id nr no code_name
    size status_date type_id
""")
"""What a name of something sensitive may be about instead: the age at a diagnosis, the size of a class."""
_CODES: Final = (
    re.compile(r"[A-TV-Z]\d[\dA-Z](\.[\dA-Z]{1,4})?[*+!]?"),
    re.compile(r"[A-DGHJLMNPRSV]\d\d[A-Z]{2}\d\d"),
)
"""ICD-10, and ATC codes of medicines."""
_VALUES: Final = phrases("""
    hiv|aids|cancer|asthma|diabetes|influenza|flu|migraine|hypertension|depression|hepatitis|hepatitis b|hepatitis c|
    gonorrhoea|gonorrhea|syphilis|tuberculosis|epilepsy|pneumonia|anxiety|schizophrenia|dementia|covid|covid-19|obesity|
    krebs|grippe|bluthochdruck|asthme|cáncer|gripe|asma|vih|sida|tumor|
    catholic|protestant|muslim|jewish|hindu|buddhist|orthodox|christian|atheist|sikh|mormon|evangelical|
    katholisch|evangelisch|muslimisch|jüdisch|konfessionslos|catholique|musulman|musulmane|juif|juive|católico|católica|
    gay|lesbian|homosexual|bisexual|heterosexual|
    democrat|republican|conservative|liberal|labour|socialist|communist|green|cdu|spd|fdp|afd
""")
_SHORT: Final = 4
_MOST_CODES: Final = 0.98
_FEW_VALUES: Final = 0.5


def is_sensitive_name(name: str) -> bool:
    """Whether a name says that nobody should learn the values."""
    own = words_of(name)
    joined = "".join(own)
    if not own or _ABOUT.intersection(own[:1]) or _ABOUT.intersection(own[-1:]):
        return False
    if any(word in _WORDS for word in (*own, joined, *map(_without_log, own))):
        return True
    return any(_has_stem(word) for word in (*own, joined))


def is_surely_sensitive_name(name: str) -> bool:
    """Whether the name can mean nothing else."""
    own = words_of(name)
    known = {word for word in (*own, "".join(own)) if word in _WORDS}
    return is_sensitive_name(name) and not (known and known <= _WEAK)


def has_sensitive_values(values: Collection[str], *, are_named: bool) -> bool:
    """Whether the values of a text column are illnesses, religions, parties, or codes of illnesses and medicines.

    A code that looks like one of an illness may be that of a seat or a room, so that the name must not say otherwise.
    """
    if not values:
        return False
    known = sum(value.casefold() in _VALUES for value in values)
    if known >= 2 and known >= _FEW_VALUES * len(values):
        return True
    icd, atc = (sum(pattern.fullmatch(value) is not None for value in values) for pattern in _CODES)
    if atc >= _MOST_CODES * len(values):
        return True
    return not are_named and icd >= _MOST_CODES * len(values) and any("." in value for value in values)


def _has_stem(word: str) -> bool:
    return any(word.startswith(stem) or (len(stem) > _SHORT + 1 and stem in word) for stem in _STEMS)


def _without_log(word: str) -> str:
    """lwage and logincome are logarithms."""
    for start in ("log", "ln", "l"):
        if word.startswith(start) and word.removeprefix(start) in _WORDS:
            return word.removeprefix(start)
    return ""
