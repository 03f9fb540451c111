"""Splits German compounds, so that "Index der Suche" finds "Suchindex".

A word is split where one side is a common word of technical documentation and the other side is long enough to be a
word. A wrong split does little harm, because texts and questions are split alike and also match as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

#: Common parts of compounds in technical documentation, without umlauts.
_PARTS = frozenset(
    """
    abfrage ablage ablauf abschnitt adresse aktion aktualisierung anbieter anforderung anfrage angabe anlage
    anmelde anmeldung anpassung anschluss ansicht anweisung anwendung anzahl anzeige arbeit archiv artikel
    aufbau aufgabe aufruf ausdruck ausfall ausgabe ausnahme auswahl authentifizierung backup bank basis baum
    bearbeitung bedingung befehl begrenzung beispiel benachrichtigung benutzer berechtigung bereich bericht
    beschreibung besitzer bestand bestandteil bestatigung betrieb bibliothek bild bildschirm block browser build
    cache chat client cloud cluster code container datei daten datenbank dauer dienst dokument dokumentation
    domain domane druck editor eigenschaft eingabe einrichtung einstellung eintrag element email empfanger ende
    entwickler entwicklung ereignis ergebnis erkennung erstellung erweiterung export fall farbe fehler feld
    fenster festplatte filter folge format formular frage frist funktion gegenstand gerat geschwindigkeit gitter
    grenze grosse gruppe handbuch hilfe hinweis import index information inhalt installation instanz kanal karte
    kategorie kennung kennwort kette klasse knopf knoten kombination kommando kommentar komponente konfiguration
    konto kontrolle kopf kopie kunde laufwerk laufzeit leiste lese link liste lizenz lokal losch mail maske
    masse meldung menge menu methode minute mitarbeiter modell modul modus muster nachricht name navigation netz
    netzwerk nummer nutzer nutzung oberflache objekt option ordner paket parameter passwort pfad pflicht
    plattform platz platzhalter port position problem produkt produktion profil programm projekt protokoll
    prozess prufung puffer punkt quell quelle rahmen rand raum rechner recht regel register reihe reihenfolge
    rolle schalter schaltflache schema schicht schleife schlussel schnittstelle schreib schrift schritt schutz
    seite sende server sicherheit sicherung signatur sitzung skript software spalte speicher sperre spiegel
    sprach sprache stand standard start status steuerung stil struktur stufe stunde such suche support symbol
    system tabelle tag tarif taste teil test text thema titel token treffer treiber typ uberschrift ubersetzung
    ubersicht umgebung umleitung update upload urheber variable verbindung verfahren vergleich verlauf
    veroffentlichung verschlusselung version versuch verwaltung verweis verzeichnis volltext voraussetzung
    vorgang vorlage vorschau wartung webseite weg werkzeug wert wiederherstellung wort zahl zahler zeichen zeile
    zeit zeitpunkt zelle zertifikat ziel zone zugang zugriff zustand zuweisung zweig
    """.split()
)
#: A part beside a known part has at least so many letters.
_MIN_PART_CHARS = 3
#: A known part beside an unknown one has at least so many letters.
_MIN_SURE_PART_CHARS = 5
_MIN_WORD_CHARS, _MAX_WORD_CHARS = 8, 60
_LINKS = ("", "s", "n", "en", "es", "er")
_ENDINGS = ("", "n", "en", "s", "e", "es", "er", "ern", "se", "sen", "ses")
#: Endings that take a linking "s".
_LINKED = ("ungs", "ions", "heits", "keits", "schafts", "tats")
#: The start of a verbal ending: "programmieren" contains no second word.
_VERBAL = "ier"
_FOLDED = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def divide(word: str) -> tuple[str, ...]:
    """Return the parts of a word in lower case, without umlauts and endings; empty if it can't be split."""
    folded = word.translate(_FOLDED)
    # "ue" is either a typed umlaut or, as in "Quelle", no umlaut.
    return _divide(folded) or _divide(folded.replace("ae", "a").replace("oe", "o").replace("ue", "u"))


def _divide(word: str) -> tuple[str, ...]:
    if not _MIN_WORD_CHARS <= len(word) <= _MAX_WORD_CHARS or _known_parts(word, _ENDINGS):
        return ()
    best = max(_splits(word), default=None)
    return tuple(part for half in best[1:] for part in _divide(half) or (half,)) if best else ()


def _splits(word: str) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Yield possible splits with their worth: two known parts before one, longer known parts before shorter."""
    for at in range(_MIN_PART_CHARS, len(word) - _MIN_PART_CHARS + 1):
        left, right = _known_parts(word[:at], _LINKS), _known_parts(word[at:], _ENDINGS)
        if left and right:
            yield (2, len(left) + len(right)), left, right
        elif right and len(right) >= _MIN_SURE_PART_CHARS:
            yield (1, len(right)), word[: at - word[:at].endswith(_LINKED)], right
        elif (
            left
            and len(left) >= _MIN_SURE_PART_CHARS
            and len(word) - at > _MIN_PART_CHARS
            and not word.startswith(_VERBAL, at)
        ):
            yield (1, len(left), at), left, word[at:]


def _known_parts(piece: str, endings: tuple[str, ...]) -> str | None:
    return next((p for e in endings if piece.endswith(e) and (p := piece.removesuffix(e)) in _PARTS), None)
