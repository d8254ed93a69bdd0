"""Guess the role of each column: who, when, what an attacker may know, what is sensitive, what names a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow.compute as pc

from shoal.inspection.columns.column_names import says_nothing, words, words_of
from shoal.inspection.columns.facts import UNITS, Facts, texts
from shoal.inspection.columns.risk import Measure, Risk
from shoal.inspection.columns.sensitive_names import has_sensitive_values, is_sensitive_name, is_surely_sensitive_name
from shoal.inspection.person.person_names import is_id_name

RoleName = Literal["person", "time", "quasi", "sensitive", "attribute", "items", "carry", "drop"]

_TIME: Final = words("""
    t ts time timestamp datetime when at date moment day admitted admission arrived created start started recorded
""")
_NAMES: Final = words("""
    name firstname lastname surname forename fullname username email mail phone telephone mobile fax ssn passport
    iban address street url_photo photo signature license licence plate nickname birthname login
    vorname nachname familienname geburtsname nom prenom nombre apellido apellidos nome cognome
    adresse anschrift strasse rue direccion indirizzo tel telefon telefono telefone handy natel courriel correo
""")
_PARTS_OF_NAMES: Final = words("first last given middle maiden")
"""What is a name if nothing else is in the header cell: first, but not first_visit."""
_QUASI: Final = words("""
    age birth birthday birthdate yob dob sex gender zip zipcode postcode postal plz city town district region county
    state country nationality education school degree occupation job profession work workclass marital family race
    ethnicity relationship children height weight language lat latitude lon lng longitude place location cell house
    model brand os browser ward department alter geburtsjahr gebjahr geburtsdatum geburtstag geschlecht
    familienstand beruf staatsangehoerigkeit wohnort ort plz bundesland born groesse gewicht naissance sexe taille
    poids ville departement edad nacimiento sexo estatura peso ciudad provincia eta nascita sesso altezza comune
    citta idade nascimento leeftijd geboortejaar geslacht woonplaats alder fodt fodselsaar kon kjonn hojde vaegt ika
    sukupuoli syntymavuosi wiek plec vek narozeni pohlavi kor nem varsta yrbrn agea gndr birthyear
""")
_ATTRIBUTE: Final = words("""
    site page url host domain venue place product item app movie song track channel cell antenna station query
    topic category movieid itemid productid sku request uri article activity action
""")
_ROW_NAMES: Final = words("id no nr num number key hash uuid code card serial")
_MOSTLY_LETTERS: Final = 0.5
_FEWEST_THINGS: Final = 5
"""Different values from which on a column may say what people did."""
_MOST_RARE: Final = 0.05
"""The share of rows with values of fewer than k people up to which a text is taken for a sensitive one."""
_LONGEST_CODE: Final = 10
_MOST_WORDS: Final = 300
"""Different texts that are compared with words for illnesses and the like."""
_FEW: Final = 9
"""Different values up to which short texts, or numbers, are marks such as grades."""
_LONG: Final = 10**8
"""Numbers of nine digits and more that are all different are those of telephones, cards or insurances."""
_YEARS_OF_A_STREAM: Final = 20 * 365 * 86_400
"""Seconds within which the times of a stream lie; identifiers of as many digits are spread wider."""
_MODELS: Final = words("model device phone agent version handset app browser firmware")


@dataclass(frozen=True, slots=True)
class Role:
    """What a column is taken for, and why."""

    column: str
    role: RoleName
    reason: str
    is_sure: bool = True
    """False: shoal cannot know, a person must decide."""
    is_generalized: bool = False
    """Of a sensitive column: it is published as a quasi-identifier is, not unchanged."""


def _has(name: str, known: frozenset[str]) -> bool:
    own = words_of(name)
    return any(word in known for word in (*own, "".join(own)))


def find_time(facts: Mapping[str, Facts]) -> Role | None:
    """The column that says when: moments, or numbers that may be times since 1970 under a usual name."""
    moments = [one for one in facts.values() if one.kind == "moment" or (one.time_unit and _may_be_times(one))]
    if not moments:
        return None
    best = max(moments, key=lambda one: (_has(one.name, _TIME), -one.missing, one.distinct))
    unit = f"numbers of {best.time_unit} since 1970" if best.kind == "whole" else "moments"
    return Role(best.name, "time", f"{unit}, {best.distinct:,} different ones", is_sure=_has(best.name, _TIME))


def _may_be_times(one: Facts) -> bool:
    """Whether numbers are times by their name; or, under a name that says nothing, because they are close together."""
    if _has(one.name, _TIME):
        return True
    bounds = pc.min_max(one.values).as_py()
    span = UNITS[one.time_unit or "s"] * _YEARS_OF_A_STREAM
    return says_nothing(one.name) and one.distinct > 1 and bounds["max"] - bounds["min"] < span


def find_items(facts: Mapping[str, Facts]) -> Role | None:
    """A column whose values are sets."""
    for one in facts.values():
        if _has(one.name, _NAMES):
            continue
        if one.kind == "list":
            return Role(one.name, "items", "every value is a list")
        if one.shape == "set" and one.kind == "text":
            return Role(one.name, "items", f"every value lists items, separated by {one.separator!r}", is_sure=False)
    return None


def find_attribute(facts: Mapping[str, Facts], taken: set[str]) -> Role | None:
    """The column that says what a person did, for events."""
    able = [
        one for one in facts.values()
        if one.name not in taken and one.kind in ("text", "whole") and one.distinct >= _FEWEST_THINGS
    ]  # fmt: skip
    named = [one for one in able if _has(one.name, _ATTRIBUTE) or one.shape == "host"]
    if not named:
        return None
    best = max(named, key=lambda one: (one.kind == "text", one.distinct))
    return Role(best.name, "attribute", f"what people did: {best.distinct:,} different values", is_sure=False)


def is_of_things(one: Facts) -> bool:
    """Whether a column without a telling name may have things that people did: texts, or numbers that are codes."""
    if one.distinct <= 2 * _FEWEST_THINGS or _has(one.name, _NAMES) or _has(one.name, _QUASI):
        return False
    if one.kind == "text":
        return one.shape in ("words", "host", "path", "digits")
    return one.kind == "whole" and one.time_unit is None and (says_nothing(one.name) or is_id_name(one.name))


def is_model(one: Facts) -> bool:
    """Whether a column holds models, versions and the like, of which many are rare; not numbers of phones."""
    return _has(one.name, _MODELS) and one.kind == "text" and one.shape == "words" and _has_letters(one)


def _has_letters(one: Facts) -> bool:
    known = one.values.drop_null()
    return bool(len(known)) and pc.mean(pc.match_substring_regex(known, r"\p{L}")).as_py() > _MOSTLY_LETTERS


def names_people(one: Facts) -> bool:
    """Whether a column holds names, addresses or telephones of people."""
    if one.shape in ("email", "phone"):
        return True
    if "".join(words_of(one.name)) in _PARTS_OF_NAMES:
        return one.kind == "text" and one.distinct >= _FEWEST_THINGS and _has_letters(one)
    return _has(one.name, _NAMES) and not is_model(one) and not _has_short_marks(one)


def _has_short_marks(one: Facts) -> bool:
    """Whether there are a few values of one or two letters, or a few numbers: too short for names and addresses."""
    if one.kind != "text" or one.distinct > _FEW:
        return one.kind == "whole" and one.distinct <= _FEW
    return int(pc.max(pc.utf8_length(one.values)).as_py() or 0) <= 2


def _is_long_number(one: Facts) -> bool:
    return one.kind == "whole" and one.time_unit is None and (pc.min(one.values).as_py() or 0) >= _LONG


def role_of(one: Facts, measure: Measure) -> Role:
    """The role of any other column of rows."""
    name = one.name
    problem = _why_unpublishable(one)
    if problem is not None:
        return Role(name, "drop", problem)
    risk = measure.of_known(name)
    if one.shape in ("code", "free"):
        return Role(name, "drop", f"codes or free text: {risk.words()}")
    is_own = risk.is_own and not _has(name, _QUASI)
    is_id = not _ROW_NAMES.isdisjoint(words_of(name)) or is_id_name(name) or _is_long_number(one)
    if is_own and (one.kind == "text" or is_id):
        return Role(name, "drop", f"it names people or rows: {risk.words()}", is_sure=False)
    too_many = one.kind == "text" and one.distinct > max(200, 0.5 * measure.people)
    if is_sensitive(one):
        return _sensitive_role(one, risk, can_generalize=not too_many)
    if too_many:
        return Role(name, "drop", f"too many different texts to generalize: {risk.words()}", is_sure=False)
    if is_own and one.is_number and one.time_unit is None and _differs_everywhere(one):
        reason = f"it may be sensitive; most values are somebody's own, so published as ranges: {risk.words()}"
        return Role(name, "sensitive", reason, is_sure=False, is_generalized=True)
    known = "its name; " if _has(name, _QUASI) else "an attacker may know it; "
    return Role(name, "quasi", f"{known}{risk.words()}", is_sure=_has(name, _QUASI))


def _differs_everywhere(one: Facts) -> bool:
    """Whether every row has a value, and most values differ: different values in each group cost nothing."""
    return not one.missing and one.distinct > 0.5 * one.rows


def _why_unpublishable(one: Facts) -> str | None:
    """Why a column cannot be published, whatever it means."""
    if one.kind == "empty":
        has_values = one.missing < one.rows
        return "its values are neither numbers, moments nor text; convert them" if has_values else "it has no values"
    if names_people(one):
        return "it names people directly"
    if one.shape == "comma":
        return 'numbers with a decimal comma next to some with a point; write all alike, and set decimal = ","'
    if one.kind == "list" or one.shape == "set":
        return "a set of items cannot be generalized within a row; publish sets on their own (m=)"
    if one.shape == "date":
        return 'dates whose form is not clear; name it in [source], such as dates = {column = "DD/MM/YYYY"}'
    return None


def is_sensitive(one: Facts) -> bool:
    """Whether nobody should learn the values, by the name of a column or by the values."""
    if is_sensitive_name(one.name):
        return is_surely_sensitive_name(one.name) or not _has(one.name, _QUASI)
    if one.kind != "text" or one.distinct > _MOST_WORDS:
        return False
    return has_sensitive_values(list(texts(one)), are_named=_has(one.name, _QUASI))


def _has_codes(one: Facts) -> bool:
    """Whether texts are codes, of which a tree can be made; sentences may name somebody."""
    known = one.values.drop_null()
    return bool(pc.all(pc.match_substring_regex(known, rf"^\S{{1,{_LONGEST_CODE}}}$")).as_py())


def has_rare_values(one: Facts, measure: Measure) -> bool:
    """Whether too many rows have a value that fewer than k people have, to publish it unchanged."""
    return measure.of_known(one.name).rare > _MOST_RARE


def _sensitive_role(one: Facts, risk: Risk, *, can_generalize: bool) -> Role:
    """Published unchanged if its values are shared by many; else generalized, and different in every class."""
    if risk.rare <= _MOST_RARE:
        reason = "its name or its values; published unchanged, so only if nobody can know it beforehand"
        return Role(one.name, "sensitive", reason, is_sure=False)
    if not can_generalize or one.kind == "moment" or (one.kind == "text" and not _has_codes(one)):
        why = f"many of its values are rare, and it would be published unchanged: {risk.words()}"
        return Role(one.name, "drop", f"{why}; name it as sensitive to publish it", is_sure=False)
    reason = f"its name or its values; many are rare, so it is published generalized: {risk.words()}"
    return Role(one.name, "sensitive", reason, is_sure=False, is_generalized=True)
