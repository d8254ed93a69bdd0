"""Guess what each column is: who, when, what an attacker may know, what is sensitive, what names a person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow.compute as pc

from shoal.inspection.facts import Facts
from shoal.inspection.risk import Measure


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RoleName = Literal["person", "time", "quasi", "sensitive", "attribute", "items", "carry", "drop"]

_PERSON: Final = _words("""
    user person patient customer client subscriber visitor member passenger employee student account maid device
    imei imsi msisdn mac owner rider driver worker respondent individual household basket session order invoice
    transaction uid pid login mrn
    kunde kunden nutzer benutzer mitglied utilisateur usager usuario cliente paciente utente
""")
_PEOPLE: Final = _words("""
    user person patient customer client subscriber member passenger employee student respondent individual login mrn
""")
"""Of these, the ones that are people for sure: a device, a session or an order is not."""
_SEVERAL: Final = _words("""
    device household basket session order invoice transaction request visit event ticket trip ride booking reservation
    call message post record row line entry stay encounter appointment claim contract purchase payment receipt
    shipment delivery search query click impression ip address
""")
"""Things of which one person has several: user_session and patient_visit_id count more than people."""
_PROPERTIES: Final = _words("""
    count counts type kind class category group segment status state age sex gender amount total sum rate score rating
    share size level tier language country city region since year month day version model brand os agent platform
    balance price fare income points
""")
"""What is said about a person: in passenger_count or customer_type it is the passenger or customer, not who it is."""
_NAMED: Final = _words("email mail ssn passport iban msisdn telephone mobile username fullname name")
"""Columns whose values name one person, if that is all their name says."""
_TIME: Final = _words("""
    ts time timestamp datetime when at date moment day admitted admission arrived created start started recorded
""")
_NAMES: Final = _words("""
    name firstname lastname surname forename fullname username email mail phone telephone mobile fax ssn passport
    iban address street url_photo photo signature license licence plate nickname birthname login
    vorname nachname familienname geburtsname nom prenom nombre apellido apellidos nome cognome
    adresse anschrift strasse rue direccion indirizzo tel telefon telefono telefone handy natel courriel correo
""")
_QUASI: Final = _words("""
    age birth birthday birthdate yob dob sex gender zip zipcode postcode postal plz city town district region
    county state country nationality education school degree occupation job profession work workclass marital
    family race ethnicity relationship children height weight language lat latitude lon lng longitude place
    location cell house model brand os browser ward department income_group
""")
_SENSITIVE: Final = _words("""
    diagnosis disease illness condition icd drug medication treatment therapy salary income wage religion faith
    orientation hiv result outcome crime offence vote party debt credit score grade rating symptom blood pressure
    glucose cholesterol class
""")
_ATTRIBUTE: Final = _words("""
    site page url host domain venue place product item app movie song track channel cell antenna station query
    topic category movieid itemid productid sku
""")
_ROW_NAMES: Final = _words("id no nr num number key hash uuid code card serial")
_MOSTLY_OWN: Final = 0.5
"""The share of people with a value of their own from which a column names people, whatever it is called."""
_IDS: Final = _words("id key no nr number nummer hash uuid code")
_MOST_RARE: Final = 0.05
"""The share of rows with values of fewer than k people up to which a text is taken for a sensitive one."""
_LONG: Final = 10**8
"""Numbers of nine digits and more that are all different are those of telephones, cards or insurances."""
_NOT_PEOPLE: Final = _QUASI | _ATTRIBUTE | _SENSITIVE | _TIME | _PROPERTIES
_FEW_PEOPLE: Final = 20
"""Fewer are a guess, whatever the column is called."""
_MODELS: Final = _words("model device phone agent version handset app browser firmware")
_WORD: Final = re.compile(r"[a-z]+|\d+")


@dataclass(frozen=True, slots=True)
class Role:
    """What a column is taken for, and why."""

    column: str
    role: RoleName
    reason: str
    is_sure: bool = True
    """False: shoal cannot know, a person must decide."""


def printable(name: str) -> str:
    """A column's name on one line, without characters that control a terminal."""
    return name if name.isprintable() else repr(name)


def words_of(name: str) -> list[str]:
    """The words of a column's name: userId, user_id and USER-ID are user and id."""
    spaced = unicodedata.normalize("NFKD", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).casefold())
    spaced = "".join(letter for letter in spaced if not unicodedata.combining(letter))  # Prénom is prenom
    return _WORD.findall(re.sub(r"([a-z]{3,})id\b", r"\1 id", spaced))


def _has(name: str, known: frozenset[str]) -> bool:
    words = words_of(name)
    return any(word in known for word in (*words, "".join(words)))


def find_person(facts: Mapping[str, Facts]) -> Role | None:
    """The column that says whose row it is: by its name, and by values that recur or are all different."""
    scores = {name: _person_score(one) for name, one in facts.items()}
    able = [name for name, score in scores.items() if score >= 2]
    best = max(able, key=lambda name: (not _has(name, _SEVERAL), scores[name]), default=None)
    if best is None:
        return _find_named(facts) or _find_recurring_id(facts)
    one = facts[best]
    is_crowd = one.distinct >= min(_FEW_PEOPLE, _known(one) / 2)
    is_person = _has(best, _PEOPLE) and not _has(best, _SEVERAL)
    found = Role(best, "person", _recurs(one), is_sure=is_person and is_crowd)
    named = None if found.is_sure else _find_named(facts)
    # A session, an order or the number of a row: one person has several.
    return named if named is not None and facts[named.column].distinct < one.distinct else found


def _find_named(facts: Mapping[str, Facts]) -> Role | None:
    """A column with e-mail addresses, names and the like that recur: better one person too few than one too many."""
    named = [
        one for one in facts.values() if one.kind in ("text", "whole") and min(10, _known(one) // 10) < one.distinct
    ]
    named = [one for one in named if one.shape == "email" or "".join(words_of(one.name)) in _NAMED]
    named = [one for one in named if 2 <= one.distinct < _known(one)]
    best = max(named, key=lambda one: one.distinct, default=None)
    return None if best is None else Role(best.name, "person", _recurs(best), is_sure=False)


def _find_recurring_id(facts: Mapping[str, Facts]) -> Role | None:
    """A number or code that recurs. If each row is another person after all, k different ones are k people too."""
    able = [
        one for one in facts.values()
        if _is_id(words_of(one.name)) and one.kind in ("text", "whole") and one.shape not in ("place", "set", "free")
        and one.time_unit is None and not _has(one.name, _NOT_PEOPLE)
        and max(_FEW_PEOPLE, 0.02 * _known(one)) <= one.distinct <= 0.98 * _known(one)
    ]  # fmt: skip
    best = max(able, key=lambda one: one.distinct, default=None)
    return None if best is None else Role(best.name, "person", f"a code that recurs; {_times(best)}", is_sure=False)


def _is_id(words: list[str]) -> bool:
    return bool(words) and (words[-1] in _IDS or words[-1].endswith("nummer"))


def _known(one: Facts) -> int:
    return one.rows - one.missing


def _recurs(one: Facts) -> str:
    return f"its name; {_times(one)}"


def _times(one: Facts) -> str:
    return f"{one.distinct:,} different ones, {_known(one) / max(one.distinct, 1):.1f} rows each"


def _person_score(one: Facts) -> float:
    words = words_of(one.name)
    if one.kind not in ("text", "whole") or one.distinct < 2 or one.shape in ("place", "set", "free"):
        return 0
    is_id = _is_id(words)
    if any(word in _PROPERTIES for word in words) and not (is_id and words[-2:-1] and words[-2] in _PERSON):
        return 0
    score = 2.0 * _has(one.name, _PERSON) + 1.5 * (words in (["id"], ["user"], ["person"], ["patient"])) + 1.0 * is_id
    score += 1.0 * (one.shape in ("email", "code")) + 1.5 * _has(one.name, _PEOPLE)
    score += 0.6 * (words[:1] in (["user"], ["person"], ["patient"], ["customer"], ["maid"], ["subscriber"]))
    if one.time_unit is not None and not is_id:
        score -= 2
    return score


def find_time(facts: Mapping[str, Facts]) -> Role | None:
    """The column that says when: moments, or numbers that may be times since 1970 under a usual name."""
    moments = [one for one in facts.values() if one.kind == "moment" or (one.time_unit and _has(one.name, _TIME))]
    if not moments:
        return None
    best = max(moments, key=lambda one: (_has(one.name, _TIME), -one.missing, one.distinct))
    unit = f"numbers of {best.time_unit} since 1970" if best.kind == "whole" else "moments"
    return Role(best.name, "time", f"{unit}, {best.distinct:,} different ones", is_sure=_has(best.name, _TIME))


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
        one for one in facts.values() if one.name not in taken and one.kind in ("text", "whole") and one.distinct > 9
    ]
    named = [one for one in able if _has(one.name, _ATTRIBUTE) or one.shape == "host"]
    if not named:
        return None
    best = max(named, key=lambda one: (one.kind == "text", one.distinct))
    return Role(best.name, "attribute", f"what people did: {best.distinct:,} different values", is_sure=False)


def is_model(one: Facts) -> bool:
    """Whether a column holds models, versions and the like, of which many are rare; not numbers of phones."""
    return _has(one.name, _MODELS) and one.kind == "text" and one.shape == "words" and _has_letters(one)


def _has_letters(one: Facts) -> bool:
    known = one.values.drop_null()
    return bool(len(known)) and pc.mean(pc.match_substring_regex(known, r"\p{L}")).as_py() > _MOSTLY_OWN


def names_people(one: Facts) -> bool:
    """Whether a column holds names, addresses, telephones or another identifier of people."""
    return one.shape == "email" or (_has(one.name, _NAMES) and not is_model(one)) or _is_another_id(one)


def _is_another_id(one: Facts) -> bool:
    return _person_score(one) >= 3 and one.distinct > _FEW_PEOPLE


def _is_long_number(one: Facts) -> bool:
    return one.kind == "whole" and one.time_unit is None and (pc.min(one.values).as_py() or 0) >= _LONG


def role_of(one: Facts, measure: Measure) -> Role:
    """The role of any other column of rows."""
    name = one.name
    if one.kind == "empty":
        return Role(name, "drop", "it has no values")
    risk = measure.of(name)
    if names_people(one):
        is_id = _is_another_id(one)
        return Role(name, "drop", "another identifier" if is_id else "it names people directly")
    if one.shape == "comma":
        return Role(name, "drop", "numbers with a decimal comma; write them with a point to use them")
    if one.kind == "list" or one.shape == "set":
        return Role(name, "drop", "a set of items cannot be generalized within a row; publish sets on their own (m=)")
    if one.shape == "date":
        return Role(name, "drop", "a date that is not ISO 8601; write it as 2026-03-02T08:00:00Z to use it")
    if one.shape in ("code", "free"):
        return Role(name, "drop", f"codes or free text: {risk.words()}")
    is_own = risk.unique > _MOSTLY_OWN and not _has(name, _QUASI)
    words = words_of(name)
    is_id = not _ROW_NAMES.isdisjoint(words) or _is_id(words) or _is_long_number(one)
    if is_own and (one.kind == "text" or is_id):
        return Role(name, "drop", f"it names people or rows: {risk.words()}", is_sure=False)
    if _has(name, _SENSITIVE) and not _has(name, _QUASI) and not is_own:
        if one.kind == "text" and risk.rare > _MOST_RARE:
            why = f"many of its values are rare, and it would be published unchanged: {risk.words()}"
            return Role(name, "drop", f"{why}; name it as sensitive to publish it", is_sure=False)
        reason = "its name; published unchanged, so only if nobody can know it beforehand"
        return Role(name, "sensitive", reason, is_sure=False)
    if one.kind == "text" and one.distinct > max(200, 0.5 * measure.people):
        return Role(name, "drop", f"too many different texts to generalize: {risk.words()}", is_sure=False)
    known = "its name; " if _has(name, _QUASI) else "an attacker may know it; "
    return Role(name, "quasi", f"{known}{risk.words()}", is_sure=_has(name, _QUASI))
