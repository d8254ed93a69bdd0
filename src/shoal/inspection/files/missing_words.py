"""Words, numbers and dates in a CSV file that mean a missing value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.inspection.columns.column_names import phrases

_WORDS: Final = phrases("""
    ?|??|-|--|---|.|..|...|na|n/a|n.a.|n. a.|#n/a|<na>|nan|nat|null|(null)|#null!|\\n|none given|not available|
    not applicable|not stated|not reported|not known|not recorded|no answer|no data|no response|unknown|missing|
    unspecified|undisclosed|refused|declined|prefer not to say|don't know|dont know|do not know|
    k. a.|k.a.|k.a|ka.|keine angabe|keine angaben|ohne angabe|o. a.|unbekannt|nicht bekannt|weiß nicht|weiss nicht|
    keine antwort|verweigert|fehlend|inconnu|inconnue|non renseigné|non renseignée|non communiqué|nsp|
    ne sait pas|manquant|sans réponse|desconocido|desconocida|no sabe|ns/nc|sin datos|sin dato|no consta|no responde|
    sconosciuto|sconosciuta|non noto|non disponibile|non risponde|n.d.|nd|desconhecido|desconhecida|não informado|
    não informada|ignorado|sem informação|não sabe|onbekend|niet bekend|geen opgave|weet niet|okänd|okänt|
    uppgift saknas|ej svar|vet ej|ukendt|uoplyst|ved ikke|ukjent|vet ikke|ikke oppgitt|tuntematon|ei tietoa|
    ei vastausta|
    brak danych|brak odpowiedzi|nieznany|nieznane|nie wiem|b.d.|neznámý|neznámé|neuvedeno|nezjištěno|nevím|ismeretlen|
    nincs adat|nem tudja|necunoscut|nu știe|nepoznato|neznano|teadmata|nezināms|nežinoma
""")
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d+)?|[.,]\d+)([eE][+-]?\d+)?")
_END: Final = re.compile(r"(9999|2999)-12-31([T ].*)?|31[./-]12[./-](9999|2999)|12/31/(9999|2999)|(9999|2999)1231")
_NEGATIVE: Final = (-1, -2, -3, -4, -5, -6, -7, -8, -9, -77, -88, -98, -99, -777, -888, -998, -999, -9999, -99999)
_FAR: Final = -77
_APART: Final = -7
"""Negative codes from here on are apart from 0, which may be a value."""
_LEAST_CODES: Final = 3
_NINES: Final = (9, 99, 999, 9999, 99999, 999999)
_LEAST_NUMBERS: Final = 5
"""Different numbers among which a word is taken for a missing one."""
_MOST_WORDS: Final = 3
_TWO_LETTERS: Final = re.compile(r"[A-Z]{2}")


def missing_words(columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """By column, what means a missing value; columns without such words are left out."""
    found = {name: _of_column(_counts(column)) for name, column in columns.items()}
    return {name: words for name, words in found.items() if words}


def as_nulls(found: Mapping[str, list[str]], columns: Mapping[str, Any]) -> list[str] | dict[str, list[str]]:
    """What [source] says of them: words for all columns, where they are values of none; else those of each column."""
    every = list(dict.fromkeys(word for words in found.values() for word in words))
    meant = pa.array(every, pa.string())
    is_value = any(pc.any(pc.is_in(column, value_set=meant)).as_py()
                   for name, column in columns.items() if name not in found)  # fmt: skip
    if is_value or any(_NUMBER.fullmatch(word) or _END.fullmatch(word) for word in every):
        return dict(found)
    for name, words in found.items():
        others = [word for word in every if word not in words]
        if others and pc.any(pc.is_in(columns[name], value_set=pa.array(others, pa.string()))).as_py():
            return dict(found)
    return every


def _counts(column: Any) -> Counter[str]:
    counted = pc.value_counts(column.drop_null())
    return Counter({one["values"].as_py(): one["counts"].as_py() for one in counted})


def _of_column(counts: Counter[str]) -> list[str]:
    words = [value for value in counts if value.casefold() in _WORDS or _END.fullmatch(value)]
    rest = {value: count for value, count in counts.items() if value not in words}
    if not rest:
        return []
    if "NA" in words and all(_TWO_LETTERS.fullmatch(value) for value in rest):  # Namibia, North America
        words.remove("NA")
    numbers = {value: float(value.replace(",", ".")) for value in rest if _NUMBER.fullmatch(value)}
    strange = [value for value in rest if value not in numbers]
    if strange and len(numbers) > _LEAST_NUMBERS and _are_words(strange, counts):
        words += strange
    elif strange:
        return sorted(words)
    return sorted([*words, *_sentinels(numbers, counts)])


def _are_words(strange: list[str], counts: Counter[str]) -> bool:
    """Whether a few words among numbers, such as "refused", mean that there is none."""
    is_word = all(any(sign.isalpha() for sign in word) and not any(map(str.isdigit, word)) for word in strange)
    return is_word and len(strange) <= _MOST_WORDS and sum(counts[word] for word in strange) < 0.5 * counts.total()


def _sentinels(numbers: Mapping[str, float], counts: Counter[str]) -> list[str]:
    """Numbers such as -999 and 9999 that lie far from all others, and recur."""
    whole = {word: number for word, number in numbers.items() if counts[word] > 1 and "." not in word}
    far = {word: number for word, number in whole.items() if number in _NEGATIVE and number <= _FAR}
    near = {word: number for word, number in whole.items() if number in _NEGATIVE and number > _FAR}
    nines = {word: number for word, number in whole.items() if number in _NINES}
    plain = [number for word, number in numbers.items() if word not in {**far, **near, **nines}]
    if len(plain) < _LEAST_CODES:
        return []
    if far and min(plain) <= 0.2 * max(far.values()):
        far = {}
    if near and (min(plain) < 0 or (min(plain) == 0 and max(near.values()) > _APART)):
        near = {}
    if nines and (near or max(plain) >= 0.7 * min(nines.values())):  # files use one or the other
        nines = {}
    return [*far, *near, *nines]
