"""The same kinds of files in other languages of Europe; German and French ones are among the formats."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import (
    ages,
    around,
    dates,
    distinct,
    each,
    full_names,
    holes,
    of,
    pick,
    skewed,
    whole,
)  # fmt: skip


def twice_each(rng, people, **facts):
    """Rows of people in two visits each, with facts that depend on the person."""
    rows = each(people, 2)
    return rows, {name: of(rows, dict(zip(people, values, strict=True))) for name, values in facts.items()}


@case(
    "pacientes.csv",
    person="id_paciente",
    separator=";",
    traits="language es | several rows a person | semicolon | names | missing words",
    missing={"estado_civil": ("desconocido",)},
    columns="""
        id_paciente = person, code
        apellidos = identifier, text
        teléfono = identifier, text
        sexo = quasi, category
        edad = quasi, numeric
        código_postal = quasi, code
        estado_civil = quasi, category
        diagnóstico = sensitive, category
    """,
    reason="Spanish patients with two visits each; surname and telephone identify.",
)
def pacientes(rng):
    people = distinct(rng, 10_000, 99_999, 70)
    facts = {
        "apellidos": [name.split()[1] + " " + name.split()[0] for name in full_names(rng, 70)],
        "teléfono": [f"+34 6{number}" for number in distinct(rng, 10_000_000, 99_999_999, 70)],
        "sexo": pick(rng, "hombre mujer", 70),
        "edad": ages(rng, 70),
        "código_postal": pick(rng, ["28001", "28004", "08001", "08003", "41001"], 70),
        "estado_civil": holes(rng, pick(rng, ["casado", "soltero", "viudo"], 70), 0.1, "desconocido"),
    }
    rows, known = twice_each(rng, people, **facts)
    return {"id_paciente": rows, **known, "diagnóstico": pick(rng, ["asma", "VIH", "gripe", "cáncer"], len(rows))}


@case(
    "contribuenti.csv",
    person="codice_fiscale",
    separator=";",
    decimal=",",
    traits="language it | semicolon | decimal comma | identifiers",
    columns="""
        codice_fiscale = person | identifier, code
        cognome = identifier, text
        comune = quasi, category
        anno_nascita = quasi, numeric | time
        stato_civile = quasi, category
        reddito = sensitive, numeric
    """,
    reason="The Italian tax code is the person and is never published; every row is one taxpayer.",
)
def contribuenti(rng):
    n = 130
    codes = distinct(rng, 100, 999, n)
    return {
        "codice_fiscale": [
            f"RSS{'ABCDEHLMPRST'[code % 12]}RA{code % 90 + 10}D{code % 30 + 10}H{code}Z" for code in codes
        ],
        "cognome": [name.split()[1] for name in full_names(rng, n)],
        "comune": pick(rng, "Roma Milano Torino Bari", n),
        "anno_nascita": whole(rng, 1940, 2000, n),
        "stato_civile": pick(rng, "celibe coniugato divorziato", n),
        "reddito": skewed(rng, 24_000, n, digits=2),
    }


@case(
    "leerlingen.csv",
    person="leerlingnummer",
    separator=";",
    traits="language nl | pupils in schools | several rows a person | exam grades | decimal comma",
    decimal=",",
    columns="""
        schoolcode = quasi | drop, code
        leerlingnummer = person, code
        geslacht = quasi, category
        geboortedatum = quasi | identifier | drop, time
        vak = quasi | value | carried, category
        cijfer = sensitive, numeric
    """,
    reason="Dutch pupils with marks in two subjects: the school is not the person.",
)
def leerlingen(rng):
    people = distinct(rng, 100_000, 999_999, 90)
    facts = {
        "schoolcode": pick(rng, ["14RF", "02QZ", "19XY", "00KL"], 90),
        "geslacht": pick(rng, "man vrouw", 90),
        "geboortedatum": dates(rng, "2005-01-01", 1500, 90, "%d-%m-%Y"),
    }
    rows, known = twice_each(rng, people, **facts)
    return {
        "schoolcode": known.pop("schoolcode"),
        "leerlingnummer": rows,
        **known,
        "vak": ["wiskunde", "Nederlands"] * 90,
        "cijfer": around(rng, 6.8, 1.1, len(rows)),
    }


@case(
    "beneficiarios.csv",
    person="cpf",
    traits="language pt | identifiers | names | several rows a person",
    columns="""
        cpf = person | identifier, code
        nome = identifier, text
        município = quasi, category
        raça = quasi | sensitive, category
        escolaridade = quasi, category
        mês = time | quasi, time
        valor_benefício = sensitive | quasi, numeric
    """,
    reason="The Brazilian tax number is the person, with two payments each, and is never published.",
)
def beneficiarios(rng):
    codes = distinct(rng, 100_000_000, 999_999_999, 75)
    people = [f"{c // 1_000_000}.{c // 1000 % 1000:03d}.{c % 1000:03d}-{c % 90 + 10}" for c in codes]
    facts = {
        "nome": full_names(rng, 75),
        "município": pick(rng, "Recife Olinda Natal Salvador", 75),
        "raça": pick(rng, "parda branca preta", 75),
        "escolaridade": pick(rng, ["fundamental", "médio", "superior"], 75),
    }
    rows, known = twice_each(rng, people, **facts)
    return {"cpf": rows, **known, "mês": ["2023-05", "2023-06"] * 75, "valor_benefício": skewed(rng, 600, len(rows))}


@case(
    "ankieta.csv",
    person="nr_respondenta",
    separator=";",
    traits="language pl | semicolon | religion and politics | missing words",
    missing={"poglądy": ("brak danych",)},
    columns="""
        nr_respondenta = person, code
        pesel = identifier, code
        płeć = quasi, category
        wiek = quasi, numeric
        województwo = quasi, category
        wykształcenie = quasi, category
        poglądy = sensitive, category
        zarobki = sensitive, numeric
    """,
    reason="A Polish survey: PESEL is the national number; political views and earnings are sensitive.",
)
def ankieta(rng):
    n = 170
    return {
        "nr_respondenta": distinct(rng, 100, 9999, n),
        "pesel": [str(number) for number in distinct(rng, 50_010_100_000, 99_123_199_999, n)],
        "płeć": pick(rng, ["kobieta", "mężczyzna"], n),
        "wiek": ages(rng, n),
        "województwo": pick(rng, ["mazowieckie", "śląskie", "łódzkie"], n),
        "wykształcenie": pick(rng, ["podstawowe", "średnie", "wyższe"], n),
        "poglądy": holes(rng, pick(rng, "lewica centrum prawica", n), 0.12, "brak danych"),
        "zarobki": skewed(rng, 5200, n),
    }


@case(
    "brottsregister.csv",
    person="personnummer",
    traits="language sv | identifiers | several rows a person | offences",
    columns="""
        personnummer = person | identifier, code
        kön = quasi, category
        ålder = quasi, numeric
        län = quasi, code | category
        brott = sensitive, category
        skulder = sensitive, numeric
    """,
    reason="Swedish personal numbers are the person and are never published; offences and debts are sensitive.",
)
def brottsregister(rng):
    numbers = distinct(rng, 1000, 9999, 60)
    people = [
        f"{year}{number % 12 + 1:02d}{number % 28 + 1:02d}-{number}"
        for year, number in zip(whole(rng, 1950, 2003, 60), numbers, strict=True)
    ]
    facts = {"kön": pick(rng, "man kvinna", 60), "ålder": ages(rng, 60), "län": whole(rng, 1, 25, 60)}
    rows, known = twice_each(rng, people, **facts)
    return {
        "personnummer": rows,
        **known,
        "brott": pick(rng, ["stöld", "misshandel", "rattfylleri", "bedrägeri"], len(rows)),
        "skulder": skewed(rng, 40_000, len(rows)),
    }


@case(
    "sygehus.csv",
    person="cpr_nr",
    encoding="latin-1",
    separator=";",
    traits="language da | Latin-1 | semicolon | identifiers | ICD and ATC | several rows a person",
    columns="""
        cpr_nr = person | identifier, code
        køn = quasi, category
        fødselsår = quasi, numeric | time
        postnr = quasi, code
        indlæggelsesdato = time | quasi | drop, time
        diagnosekode = sensitive, code
    """,
    reason="Danish CPR numbers are the person; the illness is an ICD code with a leading D.",
)
def sygehus(rng):
    numbers = distinct(rng, 1000, 9999, 80)
    people = [f"{number % 28 + 1:02d}{number % 12 + 1:02d}{number % 100:02d}-{number}" for number in numbers]
    facts = {
        "køn": pick(rng, "mand kvinde", 80),
        "fødselsår": whole(rng, 1930, 2010, 80),
        "postnr": pick(rng, [1050, 2100, 2200, 5000, 8000], 80),
    }
    rows, known = twice_each(rng, people, **facts)
    return {
        "cpr_nr": rows,
        **known,
        "indlæggelsesdato": dates(rng, "2022-01-01", 500, len(rows), "%d/%m/%Y"),
        "diagnosekode": pick(rng, ["DE119", "DI109", "DJ459", "DF329", "DB209"], len(rows)),
    }


@case(
    "kyselyvastaukset.csv",
    person="vastaaja",
    traits="language fi | Likert items",
    columns="""
        vastaaja = person, code
        ikä = quasi, numeric
        sukupuoli = quasi, category
        kunta = quasi, category
        tyytyväisyys = sensitive | quasi | carried, numeric | category
        palkka = sensitive, numeric
    """,
    reason="A Finnish survey: vastaaja is the respondent, palkka the wage.",
)
def kyselyvastaukset(rng):
    n = 120
    return {
        "vastaaja": distinct(rng, 1000, 9999, n),
        "ikä": ages(rng, n),
        "sukupuoli": pick(rng, "nainen mies", n),
        "kunta": pick(rng, "Espoo Turku Oulu", n),
        "tyytyväisyys": whole(rng, 1, 5, n),
        "palkka": skewed(rng, 3300, n),
    }


@case(
    "plane_cz.csv",
    person="rodne_cislo",
    separator=";",
    traits="language cs | identifiers | wages",
    columns="""
        rodne_cislo = person | identifier, code
        jmeno = identifier, text
        vek = quasi, numeric
        kraj = quasi, category
        odbory = sensitive, boolean | category
        mzda = sensitive, numeric
    """,
    reason="Czech wages: the birth number is the person, membership in a union (odbory) is sensitive.",
)
def czech_wages(rng):
    n = 110
    return {
        "rodne_cislo": [
            f"{a}/{b}" for a, b in zip(distinct(rng, 500_101, 991_231, n), whole(rng, 1000, 9999, n), strict=True)
        ],
        "jmeno": full_names(rng, n),
        "vek": ages(rng, n),
        "kraj": pick(rng, "Praha Brno Plzen", n),
        "odbory": pick(rng, "ano ne", n),
        "mzda": skewed(rng, 38_000, n),
    }
