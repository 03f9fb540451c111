"""The few sentences that are ours and not the documentation's, in the languages of the widget."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """Attributes:
    quoted: stands before an extractive answer and says what it is.
    refused: the answer when these docs hold none.
    selection: the chapter of a selection whose page is not known.
    """

    quoted: str
    refused: str
    selection: str


_PHRASES = {
    "en": Phrases(
        "Quoted from the documentation:", "I could not find an answer to that in these docs.", "Selected text"
    ),
    "de": Phrases(
        "Aus der Dokumentation zitiert:", "In dieser Dokumentation steht dazu keine Antwort.", "Ausgewählter Text"
    ),
    "fr": Phrases(
        "Extrait de la documentation :", "Cette documentation ne répond pas à cette question.", "Texte sélectionné"
    ),
    "es": Phrases("Citado de la documentación:", "Esta documentación no responde a eso.", "Texto seleccionado"),
    "it": Phrases("Citato dalla documentazione:", "Questa documentazione non risponde a ciò.", "Testo selezionato"),
    "pt": Phrases("Citado da documentação:", "Esta documentação não responde a isso.", "Texto selecionado"),
    "nl": Phrases(
        "Geciteerd uit de documentatie:", "Deze documentatie geeft daar geen antwoord op.", "Geselecteerde tekst"
    ),
    "pl": Phrases("Cytat z dokumentacji:", "W tej dokumentacji nie ma na to odpowiedzi.", "Zaznaczony tekst"),
    "zh": Phrases("摘自文档：", "这些文档中没有找到答案。", "选中的文本"),
    "ja": Phrases("ドキュメントからの引用：", "このドキュメントには答えが見つかりませんでした。", "選択したテキスト"),
    "ar": Phrases("مقتبس من الوثائق:", "لا تحتوي هذه الوثائق على إجابة لذلك.", "النص المحدد"),
}


def of(language: str) -> Phrases:
    """Return the sentences for a BCP 47 tag, English where there are none."""
    return _PHRASES.get(language.partition("-")[0].lower(), _PHRASES["en"])
