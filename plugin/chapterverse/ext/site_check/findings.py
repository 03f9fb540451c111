"""Collects findings by kind. Each kind has a rank: by default only an error, which readers notice, fails a `check`.

A baseline is a file of findings that an owner accepts for now: a check that is given it reports the others alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from chapterverse.errors import InputError
from chapterverse.page_kinds import left_out_lines
from chapterverse.text.json_text import parse_json

_MAX_EXAMPLES = 1000
_MAX_LISTED = 10
#: Kinds of findings that no baseline accepts: what is published is in others' hands.
_NEVER_KNOWN = frozenset({"secret", "link_out"})
#: In a sentence about many pages, whose number may change while the fault stays.
_PAGES = re.compile(r"(?<![\d,])\d[\d,]{0,20}(?= (?:of the )?pages)")

Way = Literal["plugin", "html", "source"]
"""How a site's index is made: by the plugin during the build, from built HTML, or from Markdown with --source."""

Severity = Literal["error", "warning", "note"]
"""Readers notice an error; a warning costs them answers or links; a note is for the owner alone."""

RANKS: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding.

    Attributes:
        advice: what to do, unless `plugin` or `source` has other words for an index that was made in that way.
    """

    rank: Severity
    title: str
    advice: str
    plugin: str = ""
    source: str = ""

    def advice_for(self, way: Way) -> str:
        return {"plugin": self.plugin, "source": self.source}.get(way) or self.advice


_INDEX_AGAIN = {
    "advice": "Run `chapterverse index` on the built site after each build.",
    "plugin": "Build the site again, with the plugin and where it may publish.",
    "source": "Run `chapterverse index --source` after each change.",
}

#: Every kind of finding, in the order of the report.
FINDING_KINDS: Mapping[str, Kind] = {
    "secret": Kind("error", "Secrets in files", "Revoke each of them now, then take it out of what builds the site."),
    "link_out": Kind("error", "Links that lead out of the site", "Put the file itself there, or remove the link."),
    "ignored_plugin": Kind("error", "A generator without our plugin", "Run `chapterverse inject` after each build."),
    "no_widget": Kind(
        "error",
        "Pages without the widget",
        "Run `chapterverse inject` after each build, or name pages without a chat by --exclude.",
        plugin="Build them with the plugin, or name pages of other tools by --exclude.",
    ),
    "broken_widget": Kind(
        "error",
        "Pages whose widget can't start",
        "Run `chapterverse inject`, or mend the tag by hand.",
        plugin="Build the site again into an empty folder.",
    ),
    "no_endpoint": Kind(
        "error",
        "A chat without an API",
        "Run `chapterverse inject` with --endpoint URL, or --endpoint / for the site's own origin.",
        plugin="Set `endpoint` to the API's address, or to `/` if it is at the site's own origin.",
    ),
    "no_index": Kind(
        "error",
        "No index to compare with",
        "Run `chapterverse index`, name it with --store, or pass --no-index.",
        plugin="Build the site with the plugin, name its index with --store, or pass --no-index.",
        source="Run `chapterverse index --source`, name it with --store, or pass --no-index.",
    ),
    "other_address": Kind(
        "error",
        "An index of another address",
        "Run `chapterverse index` with the --base-url of the published site.",
        plugin="Set `site_url` to the address of the published site and build again.",
        source="Run `chapterverse index --source` with the --base-url of the published site.",
    ),
    "dead_citation": Kind("error", "Citations that lead nowhere", **_INDEX_AGAIN),
    "stale": Kind("error", "Pages that the index describes as they were", **_INDEX_AGAIN),
    # Generators find a part of these themselves, so they fail no build by default.
    "dead_link": Kind("warning", "Links to pages that aren't there", "Mend the link, or build the page that it names."),
    "dead_image": Kind("warning", "Images that aren't there", "Mend the address, or put the file there."),
    "dead_anchor": Kind(
        "warning", "Links to headings that aren't there", "Mend the link, or give the heading that id."
    ),
    "unindexed": Kind(
        "warning",
        "Pages that the index leaves out",
        "Run `chapterverse index`, or pass --exclude if the index should leave them out.",
        plugin="The plugin reads pages of the generator only: name the others by --exclude, or build again.",
        source="Add them to the folder of sources, or pass --exclude if the index should leave them out.",
    ),
    "unreadable": Kind(
        "warning",
        "Files that can't be read",
        "A page that the index can't read is never cited: mend or remove it.",
    ),
    "no_text": Kind(
        "warning",
        "Pages without text",
        "A chat can't answer from a page that a script fills: have its generator write the text into the HTML.",
    ),
    "no_address": Kind(
        "warning",
        "Pages without an address",
        "Set the site's address in its generator, or pass --base-url.",
        plugin="Set `site_url` in mkdocs.yml, or pass --base-url.",
    ),
    "two_pages": Kind("warning", "Pages with one address", "Remove the copy, or mend its canonical link."),
    "mixed_address": Kind(
        "warning", "Addresses that don't fit together", "Make canonical links and the sitemap say the same."
    ),
    "two_widgets": Kind(
        "warning", "Pages with several widgets", "Leave one: the plugin, `chapterverse inject` or a tag by hand."
    ),
    "unresolved": Kind(
        "note",
        "References that Sphinx left as text",
        "Mend the name. Without a network Sphinx finds no target of other projects (intersphinx).",
    ),
    "guessed": Kind(
        "note", "Pages whose content is guessed", "Put <main> or <article> around the content in the site's template."
    ),
    "nul": Kind("note", "Pages with NUL bytes", "Remove them: the index holds U+FFFD in their place."),
    "content_type": Kind("note", "Pages of an unknown kind", "State one of the known kinds, or none."),
    "old_version": Kind("note", "Docs versions without a page here", "Remove from the store what you deleted."),
    "twin": Kind(
        "note", "Pages at almost one address", "Rename one, if your server adds or drops a slash or an ending."
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. `file` is relative to the site, "" for the whole site."""

    kind: str
    file: str
    says: str


@dataclass(slots=True)
class Findings:
    """All findings of a check.

    Attributes:
        site: the site's address, "" if it states none.
        pages: number of checked pages.
        way: how the index is made, for the advice.
        listings: kind of each page that the index leaves out because it only lists others, which is no fault.
        known: number of findings that a baseline holds, by whether the site still has them; empty without a baseline.
    """

    site: str = ""
    pages: int = 0
    way: Way = "html"
    found: list[Finding] = field(default_factory=list)
    listings: dict[str, str] = field(default_factory=dict)
    known: Counter[bool] = field(default_factory=Counter)

    def add(self, kind: str, file: str, says: str) -> None:
        self.found.append(Finding(kind, file, says))

    def scrub(self, scrub_text: Callable[[str], str]) -> None:
        """Replace the texts of all findings by `scrub_text(text)`."""
        self.found = [Finding(f.kind, scrub_text(f.file), scrub_text(f.says)) for f in self.found]
        self.listings = {scrub_text(path): kind for path, kind in self.listings.items()}

    def ignore(self, kinds: Collection[str]) -> None:
        self.found = [finding for finding in self.found if finding.kind not in kinds]

    def baseline(self) -> str:
        """Return the findings that a baseline may hold: JSON, sorted, without what changes from run to run."""
        kinds = sorted(self.counts.keys() - _NEVER_KNOWN)
        findings = {kind: sorted({self._stable(finding) for finding in self.of(kind)}) for kind in kinds}
        return json.dumps({"site": self.site, "findings": findings}, ensure_ascii=False, indent=2) + "\n"

    def leave_out_known(self, file: Path) -> None:
        """Leave out the findings that the baseline in a file holds.

        Raises:
            InputError: the file is no baseline, or one of another site.
        """
        site, known = _read_baseline(file)
        # Without its index a site may state no address.
        if site and self.site and site != self.site:
            raise InputError(f"{file} is the baseline of {site}, and not of {self.site}: use --write-baseline.")
        stable = [(finding.kind, self._stable(finding)) for finding in self.found]
        seen = set(stable)
        self.known = Counter(one in seen for one in known)
        self.found = [finding for finding, one in zip(self.found, stable, strict=True) if one not in known]

    def _stable(self, finding: Finding) -> str:
        """Return what a finding says, without the site's address and a number that other pages change."""
        says = finding.says.replace(self.site, "/") if self.site else finding.says
        return _PAGES.sub("…", says)

    @property
    def counts(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.found)

    def ranks(self) -> Counter[Severity]:
        """Return the number of findings by rank; a rank without one is missing."""
        return Counter(FINDING_KINDS[finding.kind].rank for finding in self.found)

    def of(self, kind: str) -> list[Finding]:
        return [finding for finding in self.found if finding.kind == kind]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `check --json` prints: exact counts, and up to 1,000 examples of each kind."""
        findings = [
            {
                "kind": kind,
                "rank": about.rank,
                "title": about.title,
                "advice": about.advice_for(self.way),
                "count": len(found),
                "examples": [{"file": finding.file, "says": finding.says} for finding in found[:_MAX_EXAMPLES]],
            }
            for kind, about in FINDING_KINDS.items()
            if (found := self.of(kind))
        ]
        left_out = {"listings": dict(self.listings)} if self.listings else {}
        known = {"known": {"left_out": self.known[True], "mended": self.known[False]}} if self.known else {}
        counts = {"count": len(self.found), "ranks": dict(self.ranks())}
        return {"pages": self.pages, "way": self.way, **counts, "findings": findings, **left_out, **known}

    def lines(self) -> Iterator[str]:
        """Yield the report for people: each kind with its name, rank, count, advice and some examples."""
        for kind, about in FINDING_KINDS.items():
            if found := self.of(kind):
                rank = about.rank.capitalize()
                yield f"{rank}: {about.title}: {len(found):,} ({kind}). {about.advice_for(self.way)}"
                yield from (f"  {finding.says}" for finding in found[:_MAX_LISTED])
                if len(found) > _MAX_LISTED:
                    yield f"  … and {len(found) - _MAX_LISTED:,} more"
                yield ""
        yield from left_out_lines(self.listings)
        if self.known:
            yield f"Left out by the baseline: {self.known[True]:,}. Mended since: {self.known[False]:,}."
        ranks = self.ranks()
        numbers = [f"{ranks[rank]:,} {rank}{'s' * (ranks[rank] != 1)}" for rank in RANKS if ranks[rank]]
        yield f"{self.pages:,} pages checked: {', '.join(numbers) or 'nothing wrong'}."


def _read_baseline(file: Path) -> tuple[str, set[tuple[str, str]]]:
    """Return the site of a baseline, and each kind with a finding.

    Raises:
        InputError: the file can't be read, or is no baseline.
    """
    try:
        document = parse_json(file.read_text("utf-8"))
        # `list.copy` refuses a text, which has letters.
        findings = ((kind, list.copy(says)) for kind, says in document["findings"].items() if kind not in _NEVER_KNOWN)
        return str(document["site"]), {(kind, str(says)) for kind, sentences in findings for says in sentences}
    except OSError as error:
        raise InputError(f"{file} can't be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{file} is no baseline: write one with --write-baseline {file}.") from None
