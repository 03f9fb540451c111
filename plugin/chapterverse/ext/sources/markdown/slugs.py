"""Computes the id that each generator gives a heading.

Only for folders of Markdown that were never built; a built page says itself which ids it has.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from chapterverse.readers.urls import SiteGenerator


class Slugger:
    """Gives out the ids of one page, in the order of its headings, each once."""

    def __init__(self, generator: SiteGenerator) -> None:
        self._generator = generator
        self._used: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._last: dict[str, str] = {}

    def reserve(self, explicit: str) -> None:
        """Note an id that an author wrote; Docusaurus alone forgets those."""
        if not self._generator.is_docusaurus:
            self._used.add(explicit)

    def slug(self, heading: str) -> str:
        """Return the id of the page's next heading."""
        make, make_unique = _RULES[self._generator]
        slug = make_unique(self, make(heading))
        self._used.add(slug)
        return slug

    def _underscore(self, base: str) -> str:
        """`setup`, `setup_1`; a number that the heading itself ends with is counted up."""
        # Going on from the last one given out finds the same id as counting from the start, in linear time.
        slug = self._last.get(base, base)
        while not slug or slug in self._used:
            stem, _, number = slug.rpartition("_")
            slug = f"{stem}_{int(number) + 1}" if _COUNTED.match(slug) else f"{slug}_1"
        self._last[base] = slug
        return slug

    def _counted(self, base: str) -> str:
        """`setup`, `setup-1`; an id of one heading is taken for all."""
        slug = base
        while slug in self._used:
            self._counts[base] += 1
            slug = f"{base}-{self._counts[base]}"
        return slug

    def _number(self, base: str) -> str:
        """`setup`, `id1`; one counter for the page, which headings without a usable text share."""
        slug = base
        while not slug or slug in self._used:
            self._counts[""] += 1
            slug = f"id{self._counts['']}"
        return slug


_COUNTED = re.compile(r".*_[0-9]{1,9}$", re.DOTALL)


def slugify(heading: str, generator: SiteGenerator) -> str:
    """Return the id of a heading before duplicates get numbers; it may be empty."""
    return _RULES[generator][0](heading)


def _mkdocs(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _github(heading: str) -> str:
    return "".join(c for c in heading.lower() if c in " -" or _is_word(c)).replace(" ", "-")


def _hugo(heading: str) -> str:
    # Goldmark's ids as Hugo makes them by default (autoHeadingIDType "github"): letters, decimal digits, "_" and "-".
    characters = (c for c in heading.strip() if c in " -_" or unicodedata.category(c)[0] == "L" or c.isdecimal())
    return "".join(characters).replace(" ", "-").lower()


def _is_word(char: str) -> bool:
    # Alphabetic, marks, decimal digits, connectors: the \p{Word} of Ruby, which github-slugger's table copies.
    category = unicodedata.category(char)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or "Ⓐ" <= char <= "ⓩ"


def _vitepress(heading: str) -> str:
    plain = re.sub(r"[\u0300-\u036f\x00-\x1f]", "", unicodedata.normalize("NFKD", heading))
    dashed = re.sub(r"""[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:"'“”‘’<>,.?/]+""", "-", plain).strip("-")
    return re.sub(r"^([0-9])", r"_\1", dashed).lower()


def _sphinx(heading: str) -> str:
    lettered = heading.lower().translate(_DOCUTILS_LETTERS)
    plain = unicodedata.normalize("NFKD", lettered).encode("ascii", "ignore").decode()
    return re.sub(r"^[-0-9]+|-+$", "", re.sub(r"[^a-z0-9]+", "-", plain))


#: Letters that have no decomposition and that docutils spells in ASCII (docutils.nodes.make_id).
_DOCUTILS_LETTERS = str.maketrans(
    dict(zip("øđħıłŧƀƃƈƌƒƙƚƞƥƫƭƴƶǥȥȴȵȶȷȼȿɀɇɉɋɍɏ", "odhiltbbcdfklnpttyzgzlntjcszejqry", strict=True))
    | {"ß": "sz", "æ": "ae", "œ": "oe", "ȸ": "db", "ȹ": "qp"}
)
#: How each generator makes an id of a heading, and a duplicate unique.
_RULES: dict[SiteGenerator, tuple[Callable[[str], str], Callable[[Slugger, str], str]]] = {
    SiteGenerator.MKDOCS: (_mkdocs, Slugger._underscore),
    SiteGenerator.GITHUB: (_github, Slugger._counted),
    SiteGenerator.VITEPRESS: (_vitepress, Slugger._counted),
    SiteGenerator.SPHINX: (_sphinx, Slugger._number),
    SiteGenerator.HUGO: (_hugo, lambda slugger, base: slugger._counted(base or "heading")),
    SiteGenerator.DOCUSAURUS: (_github, Slugger._counted),
}
