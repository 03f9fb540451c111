"""Random everyday Markdown of models and authors, by seed."""

from __future__ import annotations

from random import Random

WORDS = (
    "run the lock file again before you sync it, which takes a moment. It's done (mostly); see below: "
    'yes! why? snake_case_name __init__ 2 * 3 C# a_b user@host $HOME 100% <b>bold</b> R&D "quoted" naïve '
    "größer 安装 設定 مرحبا 🔒 [x] [1] f(x) --flag ~/.config *.py **/*.md # ! | ... – — and/or C:\\Users "
    "foo_bar_ _private 5 > 4 < 6"
).split()
TARGETS = (
    "https://a.org/", "https://a.org/x?a=1&b=2#c", "/guide/#locking", "../up.html", "#here", "<https://a.org/a>",
    'https://a.org/ "A title"', "https://a.org/x_(y)", "https://a.org/%20", "https://a.org/?a=1&amp;b=2",
)  # fmt: skip
CODE = ("uv lock", "a_b", "**kwargs", "x = [1, 2]", "<div>", "&amp;", "a\\b", "--all", "list[int]")
ODD = (
    "\\*not this\\*", "\\_nor_ this", "&lt;tag&gt;", "&amp;&gt;", "&nbsp;", "\\\\", "\\[a\\](b)", "**", "*", "_",
    "](b)", "&copy", "<https://a.org/q>", "**a*", "*a**", "***both***", "**a *b* c**", "*a **b** c*",
    "**`code` and**", "`` a ` b ``", "**重要**です", "_a_b", "a__b__c", "\"*a*\"", "(**a**)", "**a**: b", "**(a)** b",
    "*a*b*", "**a.** b", "*a*, *b*", "a*b*c", "_(a)_.", "__a__, b", "**a**-**b**",
)  # fmt: skip
LANGUAGES = ("", "python", "sh", "yaml title", "c++", "text")
LINES = ("a = 1", "", "# no heading", "- no item", "    deep", "> no quote", "`x` **y**", "| no | table |", "~~~", "``")


def document(seed: int) -> str:
    """Make one document of one to five blocks."""
    chance = Random(seed)
    return _blocks(chance, chance.randint(1, 5), 0)


def _blocks(chance: Random, count: int, depth: int) -> str:
    kinds = [_paragraph] * 5 + [_fence] * 2 + [_heading, _table, _divider]
    kinds += [_list] * 4 + [_quote] if depth < 3 else []
    text = ""
    for _ in range(count):
        make = chance.choice(kinds)
        text += make(chance, depth)
        # Behind a heading, a rule or code writers often leave no blank line.
        text += chance.choice(["\n", "\n\n"] if make in (_heading, _divider, _fence) else ["\n\n"])
    return text.rstrip("\n")


def _inline(chance: Random, most: int = 8) -> str:
    return " ".join(_span(chance) for _ in range(chance.randint(1, most)))


def _span(chance: Random) -> str:
    words = " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 4)))
    match chance.randrange(14):
        case 0:
            return f"**{words.replace('*', '')}**" + chance.choice(["", ".", ":", ","])
        case 1:
            sign = chance.choice("*_")
            return f"{sign}{words.replace(sign, '')}{sign}" + chance.choice(["", ".", ")", "s"])
        case 2 | 3:
            return f"`{chance.choice(CODE)}`" + chance.choice(["", ".", "s"])
        case 4:
            return f"[{words.replace('[', '').replace(']', '')}]({chance.choice(TARGETS)})"
        case 5:
            return f"[`{chance.choice(CODE)}`]({chance.choice(TARGETS)}) {words}"
        case 6 | 7:
            return chance.choice(ODD)
        case _:
            return words


def _paragraph(chance: Random, depth: int) -> str:
    breaks = ["\n", "\n", "  \n", "\\\n", "\n  "]
    lines = [_inline(chance) for _ in range(chance.randint(1, 3))]
    return "".join(line + chance.choice(breaks) for line in lines[:-1]) + lines[-1]


def _heading(chance: Random, depth: int) -> str:
    return "#" * chance.randint(1, 6) + " " + _inline(chance, 3) + chance.choice(["", "", " ##"])


def _divider(chance: Random, depth: int) -> str:
    return chance.choice(["---", "***", "* * *", "___"])


def _fence(chance: Random, depth: int) -> str:
    ticks = chance.choice(["```", "```", "````", "~~~~"])
    body = "\n".join(chance.choice(LINES) for _ in range(chance.randint(1, 4)))
    return f"{ticks}{chance.choice(LANGUAGES)}\n{body}\n{ticks}"


def _table(chance: Random, depth: int) -> str:
    width = chance.randint(2, 4)
    rule = [chance.choice(["---", ":--", "--:", ":-:", "--"]) for _ in range(width)]
    cells = [[_inline(chance, 2).replace("|", r"\|") for _ in range(width)] for _ in range(chance.randint(1, 4))]
    edge = chance.choice(["| ", "| ", ""])
    return "\n".join(edge + " | ".join(row) + edge[::-1] for row in (cells[0], rule, *cells[1:]))


def _quote(chance: Random, depth: int) -> str:
    body = _blocks(chance, chance.randint(1, 2), depth + 1)
    return "\n".join(("> " + line).rstrip() for line in body.split("\n"))


def _list(chance: Random, depth: int) -> str:
    sign = chance.choice(["-", "*", "+", "1.", "1)", "7."])
    gap = chance.choice(["\n", "\n", "\n\n"])
    number = int(sign[:-1]) if sign[0].isdigit() else 0
    items = []
    for index in range(chance.randint(1, 4)):
        bullet = f"{number + index}{sign[-1]} " if number else f"{sign} "
        items.append(_item(chance, bullet, depth))
    return gap.join(items)


def _item(chance: Random, bullet: str, depth: int) -> str:
    body = chance.choice(["", "", "[ ] ", "[x] "]) + _inline(chance, 4)
    if chance.random() < 0.4:
        body += chance.choice(["\n", "\n\n"]) + _blocks(chance, 1, depth + 1)
    elif chance.random() < 0.15:
        # A line that goes on lazily, at the margin.
        return bullet + body + "\n" + chance.choice(("and so on", "lazy **words** here"))
    margin = chance.choice([" " * len(bullet)] * 3 + ["    "]) if bullet[0] in "-*+" else " " * max(len(bullet), 3)
    return bullet + body.replace("\n", "\n" + margin).replace("\n" + margin + "\n", "\n\n")
