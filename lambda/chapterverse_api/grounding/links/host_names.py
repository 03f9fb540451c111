"""Names that tell a host, a file and an HTML element apart."""

from __future__ import annotations

#: Last labels that make a dotted name a host anywhere. Those that also end the names of files and of things in programs
#: (`install.sh`, `user.id`, `conf.py`, `logger.name`) are missing: they make one only before a path or a port.
TOP_LEVEL = frozenset(
    """
    com net org edu gov mil int arpa io ai co dev xyz info biz online site shop top club cloud tech store link click
    live vip win icu cyou fun space website app page blog news wiki chat zone world today life host press agency
    digital network systems support solutions services email academy center capital example invalid test onion
    uk us eu de fr es pt nl be ch lu dk se fi pl cz sk hu ro bg gr tr ru ua by kz cn jp kr tw hk sg th vn ph au nz br
    mx ar cl ve za ng ke ma eg il sa ae ir gg tv ws su ly cx ee lv lt ie si hr рф бел укр рус дети онлайн сайт москва
    орг ком срб мкд қаз ευ ελ бг 닷컴 닷넷 한국 삼성
    technology technologies engineering ventures enterprises consulting marketing international
    hosting domains webcam photography graphics casino poker porn sex sexy adult dating singles
    loans mortgage financial creditcard lawyer attorney clinic dental pharmacy hospital
    college institute foundation charity church construction contractors builders realestate
    apartments rentals restaurant cafe pizza travel tours vacations taxi fashion clothing
    shoes boutique jewelry diamonds beauty gmbh ltd llc inc cheap bargains gratis guru ninja rocks
    racing cricket football fitness yoga broker forex investments industries
    london berlin paris tokyo nyc moscow amsterdam moda mobi travel asia
    surf wtf lol buzz cfd sbs monster beer pub wine vodka ceo agency
    """.split()
) - {"by"}

#: The same in scripts without spaces, where a word that is no domain may follow a stop: those that name little else.
WIDE_TOP_LEVEL = frozenset(
    """
    中国 中國 公司 网络 網絡 网址 网站 网店 商城 商店 商标 在线 中文网 香港 台湾 台灣 新加坡 集团 手机 公益 政务 机构
    组织机构 みんな コム ストア クラウド
    """.split()
)

#: Endings of files: before a slash they name two files ("mkdocs.yml/zensical.toml") and no host.
FILES = frozenset(
    """
    md mdx rst txt yml yaml json jsonl toml ini cfg conf lock log env csv tsv xml html htm xhtml css scss js mjs cjs ts
    tsx jsx vue svg png jpg jpeg gif webp ico pdf py pyi ipynb go java kt rb php lua sql c h cpp hpp cs swift zig whl
    gz tgz bz xz zip tar exe dll dylib db sqlite onnx bin bat ps1 lib egg pem crt cer key csr pfx deb rpm dmg iso apk
    pkg msi jar war git
    """.split()
)

#: Endings of files that are top-level domains too: before a path that names no file they make a host.
FILES_OR_HOSTS = frozenset("zip md py bz".split())

#: Objects of programs whose attributes look like hosts, `request.app`; and top-level domains that are attributes there,
#: of these objects or where they are called: `logger.info(…)`.
OBJECTS = frozenset(
    """
    self this cls app config conf settings request response req res logger logging log console window document
    module process os sys np
    """.split()
)
ATTRIBUTES = frozenset(
    "app click email example host info link live page press site space store test world zone".split()
)

#: Products that are named like hosts.
PRODUCTS = frozenset({"asp.net", "vb.net", "ado.net", "ml.net"})

#: Schemes that lead somewhere without a double slash.
SCHEMES = "javascript|vbscript|livescript|mailto|tel|sms|callto|blob|view-source|intent|data(?=:[\\w/;,])|file(?=:/)"

#: Elements of HTML: any other name, as in `<name>`, is a placeholder and stays.
ELEMENTS = frozenset(
    """
    a abbr address animate applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br
    button canvas center cite code col colgroup content data datalist dd del details dfn dialog dir div dl dt em embed
    fieldset figcaption figure font footer foreignobject form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr
    html i iframe image img input ins isindex kbd keygen label legend li link listing main map mark marquee math menu
    meta meter nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext portal pre
    progress q rp rt ruby s samp script search section select set shadow slot small source span strike strong style sub
    summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul use var video wbr xmp
    """.split()
)
