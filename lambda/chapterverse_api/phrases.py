"""The service's own sentences in the widget's languages."""

from __future__ import annotations

from dataclasses import dataclass

from chapterverse.text.lexical import primary_subtag


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of one language.

    Attributes:
        unsure: introduces a quote that may not answer the question.
        refused: the answer if the docs hold none.
        selection: chapter name of a selection from an unknown page.
        other_language: introduces an answer from pages in other languages.
        cut: ends an answer that reached its maximum length.
        more: states how much a quote leaves out of a list, a table or a paragraph, and links to its section.
        purpose: answers small talk, and questions about something else entirely.
        curated: introduces an answer from the FAQ of the docs' authors.
    """

    unsure: str
    refused: str
    selection: str
    other_language: str
    cut: str
    more: str
    purpose: str
    curated: str


_PHRASES = {
    "en": Phrases(
        "These docs may not answer this. The closest passage:",
        "I could not find an answer to that in these docs.",
        "Selected text",
        "There is nothing on this in your language here; these pages are in another one.",
        "(The answer is cut off here: it reached its greatest length.)",
        "… {count} more in {place}",
        "I am here for questions about these docs, and answer in their own words: what would you like to know?",
        "Answered by the docs' authors:",
    ),
    "de": Phrases(
        "Vielleicht beantwortet das diese Dokumentation nicht. Die nächste Stelle:",
        "In dieser Dokumentation steht dazu keine Antwort.",
        "Ausgewählter Text",
        "Dazu steht hier nichts auf Deutsch; diese Seiten sind in einer anderen Sprache.",
        "(Die Antwort bricht hier ab: Sie hat ihre größte Länge erreicht.)",
        "… {count} weitere in {place}",
        "Ich bin für Fragen zu dieser Dokumentation da und antworte mit ihren eigenen Worten: Was möchtest du wissen?",
        "Von den Autoren der Dokumentation beantwortet:",
    ),
    "fr": Phrases(
        "Cette documentation n’y répond peut-être pas. Le passage le plus proche :",
        "Cette documentation ne répond pas à cette question.",
        "Texte sélectionné",
        "Rien à ce sujet en français ici ; ces pages sont dans une autre langue.",
        "(La réponse s’arrête ici : elle a atteint sa longueur maximale.)",
        "… {count} de plus dans {place}",
        "Je réponds aux questions sur cette documentation, avec ses propres mots : que voulez-vous savoir ?",
        "Réponse des auteurs de la documentation :",
    ),
    "es": Phrases(
        "Puede que esta documentación no lo responda. El pasaje más cercano:",
        "Esta documentación no responde a eso.",
        "Texto seleccionado",
        "No hay nada sobre esto en español; estas páginas están en otro idioma.",
        "(La respuesta se corta aquí: alcanzó su longitud máxima.)",
        "… {count} más en {place}",
        "Estoy aquí para preguntas sobre esta documentación y respondo con sus propias palabras: ¿qué quieres saber?",
        "Respuesta de los autores de la documentación:",
    ),
    "it": Phrases(
        "Forse questa documentazione non risponde. Il passaggio più vicino:",
        "Questa documentazione non risponde a ciò.",
        "Testo selezionato",
        "Qui non c’è nulla al riguardo in italiano; queste pagine sono in un’altra lingua.",
        "(La risposta si interrompe qui: ha raggiunto la lunghezza massima.)",
        "… altri {count} in {place}",
        "Sono qui per le domande su questa documentazione e rispondo con le sue parole: che cosa vuoi sapere?",
        "Risposta degli autori della documentazione:",
    ),
    "pt": Phrases(
        "Talvez esta documentação não responda a isso. O trecho mais próximo:",
        "Esta documentação não responde a isso.",
        "Texto selecionado",
        "Não há nada sobre isso em português; estas páginas estão em outro idioma.",
        "(A resposta termina aqui: atingiu o comprimento máximo.)",
        "… mais {count} em {place}",
        "Estou aqui para perguntas sobre esta documentação e respondo com as palavras dela: o que você quer saber?",
        "Resposta dos autores da documentação:",
    ),
    "nl": Phrases(
        "Misschien beantwoordt deze documentatie dit niet. De dichtstbijzijnde passage:",
        "Deze documentatie geeft daar geen antwoord op.",
        "Geselecteerde tekst",
        "Hierover staat hier niets in het Nederlands; deze pagina’s zijn in een andere taal.",
        "(Het antwoord breekt hier af: het heeft zijn grootste lengte bereikt.)",
        "… nog {count} in {place}",
        "Ik ben er voor vragen over deze documentatie en antwoord in haar eigen woorden: wat wil je weten?",
        "Beantwoord door de auteurs van de documentatie:",
    ),
    "pl": Phrases(
        "Być może tej odpowiedzi nie ma w dokumentacji. Najbliższy fragment:",
        "W tej dokumentacji nie ma na to odpowiedzi.",
        "Zaznaczony tekst",
        "Nie ma tu nic na ten temat po polsku; te strony są w innym języku.",
        "(Odpowiedź urywa się tutaj: osiągnęła największą długość.)",
        "… jeszcze {count} w {place}",
        "Odpowiadam na pytania o tę dokumentację jej własnymi słowami: co chcesz wiedzieć?",
        "Odpowiedź autorów dokumentacji:",
    ),
    "zh": Phrases(
        "这些文档可能没有答案。最接近的段落：",
        "这些文档中没有找到答案。",
        "选中的文本",
        "这里没有相关的中文内容；以下页面使用其他语言。",
        "（回答在此截断：已达到最大长度。）",
        "… 还有 {count} 项，见 {place}",
        "我负责回答有关这些文档的问题，并引用其原文：您想了解什么？",
        "文档作者的回答：",
    ),
    "ja": Phrases(
        "このドキュメントには答えがないかもしれません。最も近い箇所：",
        "このドキュメントには答えが見つかりませんでした。",
        "選択したテキスト",
        "日本語の該当箇所はありません。次は他の言語のページです。",
        "（回答はここで途切れています。長さの上限に達しました。）",
        "… 他 {count} 件：{place}",
        "このドキュメントについての質問に、その文章でお答えします。何を知りたいですか？",
        "ドキュメントの著者による回答：",
    ),
    "ar": Phrases(
        "قد لا تجيب هذه الوثائق عن ذلك. أقرب مقطع:",
        "لا تحتوي هذه الوثائق على إجابة لذلك.",
        "النص المحدد",
        "لا يوجد شيء عن ذلك بالعربية هنا؛ هذه الصفحات بلغة أخرى.",
        "(تنقطع الإجابة هنا: بلغت أقصى طول لها.)",
        "… {count} أخرى في {place}",
        "أنا هنا للأسئلة عن هذه الوثائق، وأجيب بكلماتها: ماذا تريد أن تعرف؟",
        "إجابة مؤلفي الوثائق:",
    ),
}

#: BCP 47 tags of the languages.
LANGUAGES = tuple(_PHRASES)


def of(language: str) -> Phrases:
    """Return the phrases for a BCP 47 tag, English by default."""
    return _PHRASES.get(primary_subtag(language), _PHRASES["en"])
