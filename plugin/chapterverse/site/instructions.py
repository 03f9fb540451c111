"""Sentences of a page that read like orders to a language model: what a stranger plants in docs to turn a chat.

Whoever asks the chat reads what such a page wants it to say, and code that checks citations can't help: it does stand
in the docs. So a person has to look. What stands in code is not told: pages about this very danger quote it there.

A pattern is a whole gesture ("ignore", what came before, "instructions") and never a word alone, since documentation
of language models speaks of prompts and assistants on every page.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chapterverse.model import Block, BlockKind, Section

#: Characters of a sentence that are told.
_SHOWN = 80

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
# Stress and links around words are no part of what is said; a link's target is, as it may be where to send what to.
_MARKUP = re.compile(r"[*_~\[\]]+|\\(?=\W)")

_MODEL = r"(?:ai|a\.i\.|llms?|chat ?bots?|bots?|(?:large )?language models?|ai (?:assistants?|agents?|models?))"
_ENGLISH = (
    (
        r"\b(?:ignore|disregard|forget|override|bypass|do not follow|stop following)\b(?:\W+\w+){0,4}?\W+"
        r"(?:(?:previous|prior|above|earlier|preceding|all|any|your|system|these|those|former|initial"
        r"|original)\W+(?:\w+\W+){0,3}?"
        r"(?:instructions?|prompts?|directives?|guidelines|guardrails)|(?:previous|prior|earlier|preceding"
        r"|your)\W+rules)\b"
    ),
    (
        r"\b(?:instructions?|prompts?|directives)\W+(?:above|before this|so far)\W+(?:are|is)\W+(?:void|invalid"
        r"|cancell?ed|obsolete)"
    ),
    (
        rf"\byou(?:'re| are)\W+(?:now|no longer)\W+(?:dan\b|an?\W+(?:\w+\W+){{0,3}}?(?:{_MODEL}|assistant|agent"
        rf"|model|hacker|"
        r"pirate|persona|admin\w*)\b|in\W+\w+\W+mode\b|bound\b|unrestricted\b|jailbroken\b|free (?:of|from)\b)"
    ),
    (
        r"\bfrom now on\W+(?:you (?:are|must|shall)\b|act as|answer\b|respond\b|reply\b|pretend\b|ignore\b"
        r"|always (?:say|answer|reply))"
    ),
    r"\bpretend\W+(?:that\W+)?you(?:'re| are)\b",
    rf"\bas\W+an?\W+{_MODEL}(?:\W+\w+){{0,2}}?\W+(?:you|i)\W+(?:must|should|shall|will|are|am|can ?not|can)\b",
    (
        r"\b(?:do not|don't|never)\W+(?:tell|inform|(?:mention|reveal|disclose) (?:this|it) to)"
        r"\W+(?:this |it |anything )?(?:to )?(?:the |any )?(?:users?|readers?|humans?)\b"
    ),
    (
        r"\b(?:reveal|print|repeat|output|show|leak|dump|display|tell)\W+(?:me\W+|us\W+)?(?:your"
        r"\W+(?:\w+\W+){0,2}?(?:prompt|"
        r"instructions)|the\W+(?:hidden|system|initial|original|secret)\W+(?:prompt|instructions))\b"
    ),
    (
        r"(?:^|[,:;]\W{0,3}|\balways\W+|\bmust\W+|\bplease\W+)(?:reply|respond|answer)\W+(?:only|exclusively"
        r"|solely)\W+(?:with|by)\b"
    ),
    r"(?:^|[,:;]\W{0,3}|\balways\W+|\bmust\W+)tell\W+(?:the\W+|all\W+)?(?:users?|readers?)\W+(?:to|that)\b",
    (
        r"(?:^|[,:;]\W{0,3}|\bmust\W+)(?:do not|don't|never)\W+(?:cite|quote|mention)\W+(?:\w+\W+)?(?:sources?"
        r"|documentation)\b"
    ),
    (
        r"\b(?:send|post|forward|upload|exfiltrate|submit|leak)\b[^.!?]{0,40}\b(?:conversations?|chat history"
        r"|questions?|messages?|"
        r"credentials|passwords?|secrets?|system prompt|everything|user(?:'s)? (?:data"
        r"|input))\b[^.!?]{0,40}\bto\W+(?:https?://|www\.)"
    ),
    (
        rf"(?:^|\W)(?:instructions?|attention|note|message|important|notice)\W{{1,3}}(?:to|for)?\W*(?:the |any "
        rf"|all )?{_MODEL}\s*[:,]"
    ),
)
_GERMAN = (
    (
        r"\b(?:ignorier\w*|vergiss|vergessen sie|missachte\w*|überschreibe?)\b(?:\W+\w+){0,3}?\W+(?:vorherig\w*"
        r"|bisherig\w*|obig\w*|"
        r"alle\w?|deine\w?|ihre|früher\w*|vorangegangen\w*|vorig\w*)\W+(?:\w+\W+){0,2}?(?:anweisung\w*"
        r"|instruktion\w*|regeln|vorgaben|befehle?|"
        r"prompts?)\b"
    ),
    (
        r"\b(?:du bist|sie sind)\W+(?:jetzt|nun|ab sofort|ab jetzt)\W+(?:dan\b|k?eine?n?"
        r"\W+(?:\w+\W+){0,3}?(?:assistent\w*|ki|bot|modell|"
        r"hacker|pirat\w*)\b|im\W+\w+modus\b|nicht mehr\b)"
    ),
    (
        r"\b(?:sag|sage|sagen sie|verrate|erzähle?|teile?)\W+(?:es\W+|das\W+|dies\W+)?(?:dem|den|der)"
        r"\W+(?:nutzern?|benutzern?|lesern?|leserin)\W+"
        r"(?:nichts?|nie|niemals)\b"
    ),
    r"(?:^|[,:;]\W{0,3}|\bimmer\W+|\bbitte\W+)antworten?\W+(?:sie\W+)?(?:nur|ausschliesslich|lediglich)\W+mit\b",
    (
        r"\bals\W+(?:eine?\W+)?(?:ki|künstliche intelligenz|sprachmodell|chatbot)\W+(?:musst|darfst|sollst|kannst"
        r"|bist)\b"
    ),
    r"\b(?:zeige?|verrate|nenne|gib)\W+(?:mir\W+|uns\W+)?(?:deinen?|den)\W+(?:\w+\W+)?system-?\W?prompt\b",
    (
        r"\b(?:sende|schicke?|übermittle)\b[^.!?]{0,40}\b(?:gespräch|verlauf|frage|passw\w+|zugangsdaten"
        r"|geheimnis\w*|alles)\b[^.!?]{0,40}\ban\W+(?:https?://|www\.)"
    ),
)
_FRENCH = (
    (
        r"\b(?:ignore[rz]?|oublie[rz]?|ne tiens pas compte|ne tenez pas compte)\b(?:\W+\w+){0,5}?"
        r"\W+(?:instructions?|consignes?|directives?|"
        r"règles|invites?)\W+(?:\w+\W+)?(?:précédente?s?|antérieure?s?|ci-dessus|du système|système|initiales?)"
    ),
    (
        r"\b(?:tu es|vous êtes)\W+(?:maintenant|désormais)\W+(?:dan\b|une?\W+(?:\w+\W+){0,3}?(?:assistante?|ia"
        r"|bot|modèle|pirate)\b|en mode\b|libre\b)"
    ),
    (
        r"\bne\W+(?:le\W+)?(?:dis|dites|révèle[sz]?|mentionne[sz]?)\W+(?:rien|pas"
        r"|jamais)\b[^.!?]{0,20}\W(?:à l'utilisateur|aux utilisateurs|au lecteur)"
    ),
    r"(?:^|[,:;]\W{0,3}|\btoujours\W+)répond(?:s|ez|re)\W+(?:uniquement|seulement|exclusivement)\W+(?:par|avec)\b",
    r"\ben tant qu(?:e\W+|')\W*(?:une?\W+)?(?:ia|intelligence artificielle|modèle de langage)\W+(?:tu|vous)\b",
    (
        r"\b(?:affiche|révèle|donne|montre)[zr]?\W+(?:-?moi\W+)?(?:ton|ta|votre|le|l')\W*(?:prompt|invite)"
        r"\W+(?:de |du )?système\b"
    ),
    (
        r"\b(?:envoie|envoyez|transmets|transmettez)\b[^.!?]{0,40}\b(?:conversation|historique|question"
        r"|mots? de passe|identifiants|secrets?)\b[^.!?]{0,40}\Wà\W+(?:https?://|www\.)"
    ),
)
_SPANISH = (
    (
        r"\b(?:ignor[ae]|ignoren|olvid[ae]|descart[ae])\b(?:\W+\w+){0,4}?\W+(?:instrucciones|órdenes|indicaciones"
        r"|reglas|directrices)\W+"
        r"(?:\w+\W+)?(?:anteriores|previas|de arriba|del sistema|iniciales)\b"
    ),
    (
        r"\b(?:ahora eres|a partir de ahora eres|ya no eres|usted es ahora)\W+(?:dan\b|una?"
        r"\W+(?:\w+\W+){0,3}?(?:asistente|ia|bot|modelo|pirata)\b|libre\b)"
    ),
    (
        r"\bno\W+(?:se lo\W+|le\W+|les\W+)?(?:digas?|menciones?|reveles?|cuentes?)\W+(?:nada\W+"
        r"|esto\W+)?(?:de esto\W+)?(?:al|a los)\W+(?:usuarios?|lector(?:es)?)\b"
    ),
    r"(?:^|[,:;]\W{0,3}|\bsiempre\W+)(?:respond[ae]|contest[ae])\W+(?:solo|sólo|únicamente|solamente)\W+con\b",
    r"\bcomo\W+(?:una?\W+)?(?:ia|inteligencia artificial|modelo de lenguaje)\W+(?:debes|tienes|no puedes|eres)\b",
    (
        r"\b(?:muestra|revela|dime|imprime)\W+(?:tu|el|la|las)\W+(?:\w+\W+)?(?:prompt|instrucciones)"
        r"\W+(?:del? )?sistema\b"
    ),
    (
        r"\b(?:envía|envíe|manda|mande)\b[^.!?]{0,40}\b(?:conversación|historial|pregunta|contraseñas?"
        r"|credenciales|secretos?)\b[^.!?]{0,40}\ba\W+(?:https?://|www\.)"
    ),
)
_CHINESE = (
    (
        r"(?:忽略|无视|無視|忽視|忘记|忘記|忘掉|不要理会|不要遵守|不要遵循)[^。！？]{0,6}(?:之前|以前|以上|先前"
        r"|上面|前面|此前|所有|一切|你的|系统|系統)"
        r"[^。！？]{0,8}(?:指令|指示|提示|规则|規則|命令)"
    ),
    (
        r"你(?:现在|現在)(?:是|扮演)(?:一个|一個|一名)?[^。！？]{0,10}(?:助手|模型|机器人|機器人|黑客|dan|ai"
        r"|模式)|(?:从现在|從現在)(?:开始|開始|起)[,，]?你(?:是|必须|必須|将|將)|你不再是"
    ),
    r"不要(?:告诉|告訴|向)(?:任何)?(?:用户|用戶|使用者|读者|讀者)",
    r"(?:^|[,，:：；])(?:请|請)?(?:只能?|仅)(?:回复|回答|回覆)",
    r"(?:输出|輸出|显示|顯示|泄露|告诉我|告訴我|复述)[^。！？]{0,6}(?:你的|系统|系統)提示",
    r"作为(?:一个|一名)?(?:ai|人工智能|语言模型)[^。！？]{0,6}(?:你|必须|不能)",
    (
        r"(?:发送|發送|上传|传送)[^。！？]{0,12}(?:对话|聊天|问题|密码|密钥)[^。！？]{0,12}(?:https?://|www\.)"
        r"|(?:把|将)[^。！？]{0,12}(?:对话|聊天|问题|密码|密钥)[^。！？]{0,8}发[送到给][^。！？]{0,6}(?:https?://"
        r"|www\.)"
    ),
)
_JAPANESE = (
    (
        r"(?:以前|これまで|上記|先|前|すべて|全て|今まで|あなた)の[^。！？]{0,10}(?:指示|命令|プロンプト|ルール"
        r"|規則)[^。！？]{0,6}(?:無視|忘れ|従わ|破棄)"
    ),
    (
        r"あなたは(?:今から|これから|今や|もう)[^。！？]{0,14}(?:アシスタント|ai|モデル|ボット|ハッカー|海賊"
        r"|モード|ではありません)"
    ),
    r"(?:ユーザー|利用者|読者)に[^。！？]{0,12}(?:言わない|伝えない|教えない|知らせない|話さない)(?:で|こと|よう)",
    r"(?:だけ|のみ)(?:で|を|と)?(?:答え|回答し|返信し|返答し)(?:て|なさい|ろ)",
    r"システムプロンプト[^。！？]{0,8}(?:表示し|出力し|教え|開示し)",
    r"(?:ai|人工知能|言語モデル)として[^。！？]{0,6}あなた",
    r"(?:会話|質問|パスワード|履歴)[^。！？]{0,12}(?:https?://|www\.)[^。！？]{0,80}(?:に|へ)送",
)
_ORDER = re.compile("|".join((*_ENGLISH, *_GERMAN, *_FRENCH, *_SPANISH, *_CHINESE, *_JAPANESE)))

# Where a turn begins in the templates of open models, and in conversations as text.
_ROLE = re.compile(
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|end_header_id|eot_id|begin_of_text)\|>"
    r"|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>"
    r"|^\s*(?:[-*+>]\s+)*#{1,6}\s*(?:system|assistant|user|human|instructions?)(?:\s+(?:prompt|message))?\s*:"
    r"|^\s*(?:[->]\s+)*(?:assistant|ai|chatbot|system (?:prompt|message))\s*:\s*\S",
    re.MULTILINE,
)
_HEADING = re.compile(r"(?:system|assistant|human)(?:\s+(?:prompt|message))?\s*:")
_BLOB = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/=])")


@dataclass(frozen=True, slots=True)
class Instruction:
    """A sentence that reads like an order, cut to what is told, and the anchor of the section that holds it."""

    anchor: str | None
    sentence: str


def find_instructions(sections: Iterable[Section]) -> Iterator[Instruction]:
    """Yield what reads like an order to a model in a page's headings and blocks, code left out."""
    for section in sections:
        if section.heading and (_HEADING.match(_folded(section.heading)) or _orders(section.heading)):
            yield Instruction(section.anchor, _shown(section.heading))
        for text in _prose(section.blocks):
            yield from (Instruction(section.anchor, found) for found in _found(text))


def _prose(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if block.parts:
            yield block.head
            yield from _prose(block.parts)
        elif block.kind is not BlockKind.CODE:
            yield _INLINE_CODE.sub("`…`", block.text)


def _found(text: str) -> Iterator[str]:
    """Yield the sentences of a block that are orders, and its lines that take on a role, each once."""
    found = {_shown(s): None for s in _SENTENCE_END.split(" ".join(text.split())) if _orders(s)}
    found.update((_shown(line), None) for line in text.split("\n") if _ROLE.search(_folded(line)))
    found.update((_shown(blob), None) for blob in _BLOB.findall(text) if _orders(_decoded(blob)))
    return iter(found)


def _orders(sentence: str) -> bool:
    return _ORDER.search(_MARKUP.sub("", _folded(sentence)).strip()) is not None


def _folded(text: str) -> str:
    """Return the text in one case, and letters that are drawn wide, bold or in circles as what they are."""
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def _decoded(blob: str) -> str:
    """Return what base64 hides; "" where it is no text."""
    try:
        return base64.b64decode(blob + "=" * (-len(blob) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _shown(sentence: str) -> str:
    flat = " ".join(sentence.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1].rstrip()}…"
