"""What a column's name says about whose row it is, in the languages of Europe and in common abbreviations."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from shoal.inspection.columns.column_names import words, words_of


class Says(IntEnum):
    """What a name says, from what rules a person out to what names one."""

    OTHER = 0
    """A property of a person, or a thing: customer_type, station_id."""
    NOTHING = 1
    """It may be anything: v1, label."""
    RELATIVE = 2
    """Somebody whom several people may have: mother."""
    ACT = 3
    """Something of which a person has several: session, order."""
    ROW = 4
    """A row: the index of a data frame, the row names of R."""
    ID = 5
    """An identifier of something: id, code, hash."""
    DEVICE = 6
    """A thing that one or a few people use: phone, vehicle, card."""
    HOST = 7
    """The address of a computer: the visitor of a web site."""
    UNIT = 8
    """What stands for one or a few people: account, household."""
    NUMBER = 9
    """A national number, an e-mail address, a login: it finds one person."""
    PERSON = 10
    """A person: patient, subject, Kunde."""


_PERSON: Final = words("""
    user person individual human patient customer client subscriber member passenger employee student pupil
    respondent subject subj participant panelist panellist interviewee proband volunteer child infant newborn
    resident citizen inhabitant voter taxpayer insured insuree policyholder beneficiary donor recipient applicant
    candidate defendant offender inmate prisoner convict suspect victim visitor guest traveler traveller commuter
    tourist rider cyclist driver cardholder cardmember borrower debtor tenant buyer shopper purchaser consumer
    caller callee listener viewer reader reviewer rater author player athlete runner worker emp wearer worshipper
    parishioner learner alumnus graduate owner maid visitorid pat cust woman man caseid idcode idno seqn
    responseid respid respident respnr respno respnum respcode persid indiv indivno noind numind idind vpnr vpno vpid
    pidp hhidpn xwaveid lopnr
    subjid pid uid mrn usubjid subjectid nhs nomem rinpersoon enrollee enrolee
    kunde kunden patienten nutzer benutzer mitglied versicherter versicherte versicherten person personen teilnehmer
    versuchsperson versuchspersonen vp vpn kdnr
    teilnehmender schuler schueler studierender befragter befragten befragte probanden mitarbeiter angestellter
    einwohner burger buerger besucher
    fahrer kind kinder mandant
    utilisateur usager personne individu patiente eleve etudiant enquete repondant assure adherent abonne salarie
    beneficiaire enfant sujet participante
    usuario persona individuo paciente cliente alumno alumna estudiante encuestado asegurado afiliado socio empleado
    trabajador beneficiario sujeto nino miembro
    utente pessoa doente aluno estudante inquirido segurado trabalhador beneficiario inscrito
    paziente studente alunno intervistato assicurato dipendente lavoratore socio soggetto bambino contribuente
    gebruiker persoon klant leerling deelnemer respondent medewerker werknemer verzekerde lid proefpersoon
    anvandare kund elev deltagare respondent anstalld medlem forsokspers
    bruger borger patient elev deltager medarbejder medlem bruker deltaker ansatt pasient
    kayttaja potilas asiakas oppilas opiskelija osallistuja vastaaja henkilo jasen tyontekija koehenkilo
    uzytkownik osoba pacjent klient uczen respondenta ankietowany pracownik ubezpieczony czlonek uczestnik
    uzivatel osoba pacient zak zakaznik zamestnanec ucastnik pojistenec respondent dotazovany
    felhasznalo szemely paciens ugyfel tanulo valaszado resztvevo alkalmazott
    utilizator persoana client elev angajat asigurat
    korisnik ispitanik ucenik zaposlenik uporabnik anketiranec kasutaja isik patsient opilane vastaja
    lietotajs persona pacients vartotojas asmuo pacientas
""")
_PEOPLE_NUMBERS: Final = words("""
    email mail login username useremail ssn nino personalnumber passport msisdn imsi
    cpf cnp nif nie dni nss codicefiscale codfiscale cf personnummer personnr cpr cprnr cprnummer rodnecislo rodcislo
    pesel bsn burgerservicenummer fodselsnummer fnr hetu henkilotunnus isikukood egn oib jmbg emso amka tckn kennitala
    steuerid steueridentifikationsnummer steuernummer ahv ahvnr ahvnummer svnr sozialversicherungsnummer insz nir
    rijksregisternummer numerosecu taj pps ppsn svn matrikelnummer matrikelnr matricule matricola
    numeroseguridadsocial personalnummer personalnr persnummer persnr persno matr matrnr kvnr versnr nric aadhaar curp
""")
_UNITS: Final = words("""
    account acct konto kontonummer cuenta compte conto rekening household hh hid hhid hhno family fid famid
    haushalt hogar menage foyer famiglia huishouden hushall kotitalous gospodarstwo domacnost
""")
_HOSTS: Final = words("host ip ipaddress clientip remotehost remoteaddr remoteaddress clienthost visitorip srcip")
_DEVICES: Final = words("""
    device phone handset imei mac sim card vehicle car bike taxi truck iccid meter smartmeter wearable watch
    geraet gerat fahrzeug karte carte tarjeta kundenkarte treuekarte badge ausweis wallet
    licenceplate licenseplate numberplate kennzeichen
""")
_RELATIVES: Final = words("""
    mother father parent spouse husband wife partner sibling brother sister twin mutter vater mere pere madre padre mae
    pai moeder vader mor far matka ojciec otec aiti isa
""")
_ACTS: Final = words("""
    basket session order invoice transaction trans request visit event ticket trip ride booking reservation call
    message post record entry stay encounter appointment claim contract purchase payment receipt shipment delivery
    search query click impression admission episode specimen sample interview response loan policy case
    fall fallnummer auftrag bestellung rechnung vertrag besuch aufnahme commande facture sejour visite pedido factura
    visita ordine fattura bestelling
""")
_TRAITS: Final = words("""
    age birth birthday birthdate born dob yob sex gender race ethnicity name firstname surname lastname
    alter geburtsdatum geburtsjahr gebjahr geschlecht vorname nachname sexe naissance nom prenom sexo edad nacimiento
    nombre sesso nascita cognome idade nascimento geslacht kon alder fodt plec wiek pohlavi vek sukupuoli ika
""")
"""What depends on a person and on hardly anything else."""
_ROWS: Final = words("rowname rownames rownumber rownum rowid row unnamed index idx obs observation lfdnr lfd x rn seq")
_THINGS: Final = words("""
    teacher doctor physician surgeon nurse therapist interviewer seller vendor merchant supplier employer lehrer arzt
    medecin medico docente profesor operator clerk coach trainer judge
    hospital school firm company clinic class classroom store shop bank branch team club bureau
    station stations sensor machine engine country region city town village county state province district zone area
    block tract site plot tree plant animal species product item movie film song book track app game page url domain
    venue place location address street building house room cell channel antenna route flight line airport ward
    department dept stratum strata cluster psu ssu tract census municipality kommune commune comune municipio
    schule klinik ort stadt plz land produkt artikel ecole hopital ville pays produit escuela ciudad pais producto
    skola skole szkola stanice
    topic category sku asset stock ticker isin symbol parcel lot batch gene protein probe well
    icd atc diagnosis drug medication treatment model brand version os browser agent query
""")
"""Things, and people whom a row is seldom about: the teacher of a student, the seller of a purchase."""
_PROPERTIES: Final = words("""
    count counts type kind class category group segment status state age sex gender amount total sum rate score rating
    share size level tier language country city region since year month day date time version model brand os agent
    platform balance price fare income points birth born dob education educ weight height race ethnicity marital
    name firstname lastname surname rank grade pct percent percentage ratio avg mean median min max std sd length
    duration hours days weeks minutes seconds distance speed temp temperature pressure value values val volume width
    depth mag magnitude lat lon lng long latitude longitude bytes status size port protocol quantity qty cost wage
    salary pay rent tax zip zipcode postcode postal plz zone population pop gdp index flag dummy is has num_of number_of
    fecha datum data nacimiento nascimento nascita naissance geburtsdatum geburtsjahr gebjahr geboortedatum
    geschlecht alter groesse gewicht jahr monat anzahl betrag preis dauer typ art gruppe klasse
    sexe annee mois jour montant prix taille poids nombre sexo edad ano mes dia precio peso numero_de
    anno mese giorno prezzo eta
    personal per persons people peoples children kids kidslt members clients patients students pupils users customers
    employees workers cases visits
""")
_ID: Final = words("""
    id ids key no nr num number nummer numero nro nbr hash uuid guid code kod cod kode ref ident identifier identifiant
    identificador identificativo identificatie kennung kennziffer kennnummer chiffre pseudonym pseudo pseudonyme
    seudonimo token sn cislo numer szam tunnus
""")
_CODES: Final = words("code cod kod kode key")
_COUNTS: Final = words("no nr nb num number")
"""Before a word that is not known, more often how many there are of it, or none, than an identifier."""
_ID_ENDS: Final = ("nummer", "number", "numero", "nr", "num", "id", "no", "code", "key", "nro", "kod", "ident")
_LONG: Final = 6
"""Letters from which a word may have an ending: respondenta, patienten."""


def is_trait_name(name: str) -> bool:
    """Whether a column may say what a person is or was born as, by its name: age, sex, name."""
    return bool(_TRAITS.intersection(words_of(name)))


def is_id_name(name: str) -> bool:
    """Whether a name begins or ends with a word for an identifier: id_paciente, ref no., Kundennummer."""
    own = words_of(name)
    if not own or own[0] in _ID or own[-1] in _ID or own[-1].endswith(("nummer", "nr")):
        return bool(own)
    return any(stem in _PERSON for stem in _stems(own[-1])[1:])


def said_by(name: str) -> Says:
    """What a name says about whose row it is: the last word that is no identifier says what is identified."""
    own = [word for word in words_of(name) if not word.isdigit()]
    joined = "".join(own)
    if not own or joined in _ROWS:
        return Says.ROW
    if joined in _PEOPLE_NUMBERS or joined.removesuffix("nr") in _PEOPLE_NUMBERS:
        return Says.NUMBER
    named = [word for word in own if word not in _ID]
    if not named:
        return Says.ID
    found = _said_by_word(joined)
    found = _said_by_word(named[-1]) if found is Says.NOTHING else found
    is_about = any(word in _PROPERTIES for word in named)
    if is_about and not (found is Says.PERSON and is_id_name(name)):
        return Says.OTHER
    if found is not Says.NOTHING or not is_id_name(name) or (own[0] in _COUNTS and own[-1] not in _ID):
        return found  # Number.thousands and No rearrest do not number anything
    return Says.OTHER if {own[0], own[-1]} & _CODES else Says.ID  # industry_code is what something is, not who


def _said_by_word(word: str) -> Says:
    stems = _stems(word)
    kinds = {
        Says.PERSON: _PERSON, Says.NUMBER: _PEOPLE_NUMBERS, Says.UNIT: _UNITS, Says.HOST: _HOSTS,
        Says.DEVICE: _DEVICES, Says.RELATIVE: _RELATIVES, Says.ACT: _ACTS, Says.OTHER: _THINGS | _PROPERTIES,
    }  # fmt: skip
    found = next((says for says, known in kinds.items() if any(stem in known for stem in stems)), Says.NOTHING)
    if found is Says.NOTHING and word.removesuffix("s") in _PERSON:
        return Says.OTHER  # drivers, passengers: how many there were
    if found is Says.NOTHING and any(_without_ending(stem) in _PERSON for stem in stems):
        return Says.PERSON
    return found


def _without_ending(word: str) -> str:
    """A long word without one or two letters at its end, if the rest is one that is known."""
    return next((word[:-cut] for cut in (1, 2) if len(word) - cut >= _LONG and word[:-cut] in _PERSON), "")


def _stems(word: str) -> list[str]:
    """A word, and what is left of it without a word for an identifier at its end or beginning: custno, idpatient."""
    found = [word]
    found += [word[: -len(end)] for end in _ID_ENDS if word.endswith(end) and len(word) > len(end) + 2]
    if word.startswith("id") and len(word) > 5:
        found.append(word[2:])
    return found
