"""The marks that open models write and read beside words: of reasoning, of turns, of ends. One table of each.

Reasoning in a known mark is never shown. The marks of turns are broken up in what a prompt quotes, because local
servers interpret them anywhere in a text. Known by their shape are marks that look like nothing else; the others are
listed word by word, so that `[OPTIONS]`, a task box or `arr[i]` stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningMark:
    """How a kind of model marks its reasoning in plain text; servers that know a model send it in a field of its own.

    Attributes:
        start: what it begins with.
        end: what it ends with.
    """

    start: str
    end: str


_NAME = r"(?:[a-z]{2,12}[:_])?(?:think(?:ing)?|thoughts?|reasoning)"
_HARMONY = r"(?:<\|start\|>assistant)?<\|channel\|>"
_FINAL = rf"{_HARMONY}final(?:[^<]|<\|constrain\|>){{0,40}}<\|message\|>"

REASONING = (
    # Qwen, DeepSeek and most others; `seed:think`, `longcat_think` and the like.
    ReasoningMark(rf"<{_NAME}>", rf"</{_NAME}>"),
    # Magistral, Kimi, Sky-T1 and OpenThinker, Command A, Gemma 4, MedGemma.
    ReasoningMark(r"\[think\]", r"\[/think\]"),
    ReasoningMark(r"◁think▷", r"◁/think▷"),
    ReasoningMark(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    ReasoningMark(r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    ReasoningMark(r"<\|channel>thought", r"<channel\|>"),
    ReasoningMark(r"<unused94>", r"<unused95>"),
    # gpt-oss: all channels but the last, with its marks and without them.
    ReasoningMark(
        rf"{_HARMONY}(?:analysis|commentary)[^<]{{0,80}}<\|message\|>",
        rf"{_HARMONY}final(?:[^<]|<\|constrain\|>){{0,40}}<\|message\|>",
    ),
    ReasoningMark(r"(?-i:analysis(?=[A-Z]))", r"(?-i:assistantfinal)"),
)
#: What stands before an answer that no reasoning precedes, and behind its last word.
ANSWER_START = (
    rf"{_HARMONY}final(?:[^<]|<\|constrain\|>){{0,40}}<\|message\|>|<\|(?:start_response|begin_of_solution)\|>"
)
ANSWER_END = (
    r"<\|(?:return|end|im_end|eot_id|eom_id|endoftext|end_of_text|end_response|end_of_solution)\|>"
    r"|</s>|<end_of_turn>|<turn\|>|<eos>"
)
#: Characters of the longest mark.
MAX_MARK_CHARS = 160

#: Tokens in angle brackets that no shape tells from a tag.
_ANGLE_WORDS = (
    r"/?(?:s|bos|eos|pad|unk|sop|eop)|(?:start|end)_of_\w{1,20}|</?SYS>|/?tool_(?:call|response)|/?think(?:ing)?"
    r"|/?thought|_(?:user|bot|system|end|start)|unused\d{1,4}|reserved_\d{1,4}|extra_id_\d{1,3}|SPECIAL_\d{1,4}"
    r"|/?(?:seed|minimax):[a-z_]{1,32}|role>(?:SYSTEM|HUMAN|ASSISTANT|OBSERVATION)</role"
)
#: Tokens in square brackets, as no shape tells them from a placeholder.
_SQUARE_WORDS = (
    r"/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|MODEL_SETTINGS|THINK)"
    r"|gMASK|UNUSED_TOKEN_\d{1,4}|unused\d{1,4}"
)
#: The first character of each mark of a turn: `<|im_start|>`, `<|turn>`, `<turn|>`, `</｜DSML｜x>`; `[|system|]`,
#: `[e~[`, `]~b]`.
TURN = re.compile(
    rf"""<(?=/?[|｜][^\s|｜<>]{{1,64}}(?:[|｜][^\s|｜<>]{{0,64}})?>|/?[^\s|｜<>]{{1,64}}[|｜]>|(?:{_ANGLE_WORDS})>)
        | \[(?=\|[^\s|\[\]]{{1,64}}\|\]|[a-z!]{{1,3}}~\[|(?:{_SQUARE_WORDS})\])
        | \](?=~!?[a-z]{{1,3}}[\[\]])""",
    re.VERBOSE,
)
