"""The service's own sentences in the widget's languages."""

from __future__ import annotations

from dataclasses import dataclass

from chapterverse.text.lexical import primary_subtag


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of one language.

    Attributes:
        may_help: introduces short quotes of several sections, of which one may answer the question.
        refused: the answer if the docs hold none.
        refused_here: the answer if the part of them that the request is limited to holds none.
        selection: chapter name of a selection from an unknown page.
        other_language: introduces an answer from pages in other languages.
        cut: ends an answer that reached its maximum length.
        more: states how much a quote leaves out of a list, a table or a paragraph, and links to its section.
        purpose: answers small talk, and questions about something else entirely.
        curated: introduces an answer from the FAQ of the docs' authors.
        beginning: headings under which docs begin, with "; " between them.
    """

    may_help: str
    refused: str
    refused_here: str
    selection: str
    other_language: str
    cut: str
    more: str
    purpose: str
    curated: str
    beginning: str


_PHRASES = {
    "en": Phrases(
        may_help="These sections may help:",
        refused="I could not find an answer to that in these docs.",
        refused_here="I could not find an answer to that in this part of the docs.",
        selection="Selected text",
        other_language="There is nothing on this in your language here; these pages are in another one.",
        cut="(The answer is cut off here: it reached its greatest length.)",
        more="… {count} more in {place}",
        purpose="I am here for questions about these docs, and answer in their own words: what would you like to know?",
        curated="Answered by the docs' authors:",
        beginning="getting started; get started; quick start; quickstart; tutorial; first steps; "
        "introduction; installation; installing; overview",
    ),
    "de": Phrases(
        may_help="Diese Abschnitte helfen vielleicht:",
        refused="In dieser Dokumentation steht dazu keine Antwort.",
        refused_here="In diesem Teil der Dokumentation steht dazu keine Antwort.",
        selection="Ausgewählter Text",
        other_language="Dazu steht hier nichts auf Deutsch; diese Seiten sind in einer anderen Sprache.",
        cut="(Die Antwort bricht hier ab: Sie hat ihre größte Länge erreicht.)",
        more="… {count} weitere in {place}",
        purpose="Ich bin für Fragen zu dieser Dokumentation da und antworte mit ihren eigenen Worten:"
        " Was möchtest du wissen?",
        curated="Von den Autoren der Dokumentation beantwortet:",
        beginning="erste schritte; loslegen; schnellstart; schnelleinstieg; tutorial; einführung; "
        "installation; überblick",
    ),
    "fr": Phrases(
        may_help="Ces sections peuvent aider :",
        refused="Cette documentation ne répond pas à cette question.",
        refused_here="Cette partie de la documentation ne répond pas à cette question.",
        selection="Texte sélectionné",
        other_language="Rien à ce sujet en français ici ; ces pages sont dans une autre langue.",
        cut="(La réponse s’arrête ici : elle a atteint sa longueur maximale.)",
        more="… {count} de plus dans {place}",
        purpose="Je réponds aux questions sur cette documentation, avec ses propres mots : que voulez-vous savoir ?",
        curated="Réponse des auteurs de la documentation :",
        beginning="premiers pas; démarrage rapide; prise en main; bien démarrer; tutoriel; introduction; installation",
    ),
    "es": Phrases(
        may_help="Estas secciones pueden ayudar:",
        refused="Esta documentación no responde a eso.",
        refused_here="Esta parte de la documentación no responde a eso.",
        selection="Texto seleccionado",
        other_language="No hay nada sobre esto en español; estas páginas están en otro idioma.",
        cut="(La respuesta se corta aquí: alcanzó su longitud máxima.)",
        more="… {count} más en {place}",
        purpose="Estoy aquí para preguntas sobre esta documentación y respondo con sus propias palabras:"
        " ¿qué quieres saber?",
        curated="Respuesta de los autores de la documentación:",
        beginning="primeros pasos; inicio rápido; guía de inicio; empezar; tutorial; introducción; instalación",
    ),
    "it": Phrases(
        may_help="Queste sezioni possono aiutare:",
        refused="Questa documentazione non risponde a ciò.",
        refused_here="Questa parte della documentazione non risponde a ciò.",
        selection="Testo selezionato",
        other_language="Qui non c’è nulla al riguardo in italiano; queste pagine sono in un’altra lingua.",
        cut="(La risposta si interrompe qui: ha raggiunto la lunghezza massima.)",
        more="… altri {count} in {place}",
        purpose="Sono qui per le domande su questa documentazione e rispondo con le sue parole: che cosa vuoi sapere?",
        curated="Risposta degli autori della documentazione:",
        beginning="primi passi; avvio rapido; guida rapida; per iniziare; tutorial; introduzione; installazione",
    ),
    "pt": Phrases(
        may_help="Estas seções podem ajudar:",
        refused="Esta documentação não responde a isso.",
        refused_here="Esta parte da documentação não responde a isso.",
        selection="Texto selecionado",
        other_language="Não há nada sobre isso em português; estas páginas estão em outro idioma.",
        cut="(A resposta termina aqui: atingiu o comprimento máximo.)",
        more="… mais {count} em {place}",
        purpose="Estou aqui para perguntas sobre esta documentação e respondo com as palavras dela:"
        " o que você quer saber?",
        curated="Resposta dos autores da documentação:",
        beginning="primeiros passos; início rápido; guia de início; começando; tutorial; introdução; instalação",
    ),
    "nl": Phrases(
        may_help="Deze secties helpen misschien:",
        refused="Deze documentatie geeft daar geen antwoord op.",
        refused_here="Dit deel van de documentatie geeft daar geen antwoord op.",
        selection="Geselecteerde tekst",
        other_language="Hierover staat hier niets in het Nederlands; deze pagina’s zijn in een andere taal.",
        cut="(Het antwoord breekt hier af: het heeft zijn grootste lengte bereikt.)",
        more="… nog {count} in {place}",
        purpose="Ik ben er voor vragen over deze documentatie en antwoord in haar eigen woorden: wat wil je weten?",
        curated="Beantwoord door de auteurs van de documentatie:",
        beginning="aan de slag; snelstart; eerste stappen; handleiding; introductie; inleiding; installatie",
    ),
    "pl": Phrases(
        may_help="Te rozdziały mogą pomóc:",
        refused="W tej dokumentacji nie ma na to odpowiedzi.",
        refused_here="W tej części dokumentacji nie ma na to odpowiedzi.",
        selection="Zaznaczony tekst",
        other_language="Nie ma tu nic na ten temat po polsku; te strony są w innym języku.",
        cut="(Odpowiedź urywa się tutaj: osiągnęła największą długość.)",
        more="… jeszcze {count} w {place}",
        purpose="Odpowiadam na pytania o tę dokumentację jej własnymi słowami: co chcesz wiedzieć?",
        curated="Odpowiedź autorów dokumentacji:",
        beginning="pierwsze kroki; szybki start; wprowadzenie; samouczek; instalacja",
    ),
    "zh": Phrases(
        may_help="这些章节或有帮助：",
        refused="这些文档中没有找到答案。",
        refused_here="这部分文档中没有找到答案。",
        selection="选中的文本",
        other_language="这里没有相关的中文内容；以下页面使用其他语言。",
        cut="（回答在此截断：已达到最大长度。）",
        more="… 还有 {count} 项，见 {place}",
        purpose="我负责回答有关这些文档的问题，并引用其原文：您想了解什么？",
        curated="文档作者的回答：",
        beginning="快速开始; 快速入门; 快速上手; 入门; 开始使用; 教程; 简介; 介绍; 安装",
    ),
    "ja": Phrases(
        may_help="次の節が参考になるかもしれません：",
        refused="このドキュメントには答えが見つかりませんでした。",
        refused_here="ドキュメントのこの部分には答えが見つかりませんでした。",
        selection="選択したテキスト",
        other_language="日本語の該当箇所はありません。次は他の言語のページです。",
        cut="（回答はここで途切れています。長さの上限に達しました。）",
        more="… 他 {count} 件：{place}",
        purpose="このドキュメントについての質問に、その文章でお答えします。何を知りたいですか？",
        curated="ドキュメントの著者による回答：",
        beginning="はじめに; クイックスタート; 入門; 始めましょう; チュートリアル; 導入; インストール",
    ),
    "ar": Phrases(
        may_help="قد تفيد هذه الأقسام:",
        refused="لا تحتوي هذه الوثائق على إجابة لذلك.",
        refused_here="لا يحتوي هذا الجزء من الوثائق على إجابة لذلك.",
        selection="النص المحدد",
        other_language="لا يوجد شيء عن ذلك بالعربية هنا؛ هذه الصفحات بلغة أخرى.",
        cut="(تنقطع الإجابة هنا: بلغت أقصى طول لها.)",
        more="… {count} أخرى في {place}",
        purpose="أنا هنا للأسئلة عن هذه الوثائق، وأجيب بكلماتها: ماذا تريد أن تعرف؟",
        curated="إجابة مؤلفي الوثائق:",
        beginning="البدء السريع; بدء الاستخدام; ابدأ; الخطوات الأولى; دليل البداية; مقدمة; التثبيت",
    ),
}

#: BCP 47 tags of the languages.
LANGUAGES = tuple(_PHRASES)


def refusal(language: str, *, limited: bool) -> str:
    """Return what is said without an answer, to a request that is limited to a part of the docs or to all of them."""
    texts = for_language(language)
    return texts.refused_here if limited else texts.refused


def for_language(language: str) -> Phrases:
    """Return the phrases for a BCP 47 tag, English by default."""
    return _PHRASES.get(primary_subtag(language), _PHRASES["en"])
