"""Collects findings by kind: counts all of them and keeps the first 1,000 of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chapterverse.page_kinds import listing_lines

_MOST_KEPT = 1000
_SHOWN = 10

#: Title and advice for each kind, in the order of the report.
KINDS = {
    "secret": ("Secrets in files", "Revoke each of them now, then take it out of what builds the site."),
    "link_out": ("Links that lead out of the site", "Put the file itself there, or remove the link."),
    "unreadable": ("Files that can't be read", "A page that the index can't read is never cited: mend or remove it."),
    "ignored_plugin": ("A generator without our plugin", "Run `chapterverse inject` after each build."),
    "no_widget": ("Pages without the widget", "Build with the plugin, or run `chapterverse inject` after each build."),
    "broken_widget": ("Pages whose widget can't start", "Run `chapterverse inject`, or mend the tag by hand."),
    "two_widgets": ("Pages with several widgets", "Leave one: the plugin, `chapterverse inject` or a tag by hand."),
    "content_type": ("Pages of an unknown kind", "State one of the known kinds, or none."),
    "no_address": ("Pages without an address", "Set the site's address in its generator, or pass --base-url."),
    "two_pages": ("Pages with one address", "Remove the copy, or mend its canonical link."),
    "mixed_address": ("Addresses that don't fit together", "Make canonical links, sitemap and index say the same."),
    "dead_anchor": ("Links to headings that aren't there", "Mend the link, or give the heading that id."),
    "no_index": ("No index to compare with", "Run `chapterverse index`, name it with --store, or pass --no-index."),
    "dead_citation": ("Citations that lead nowhere", "Run `chapterverse index` after each build."),
    "stale": ("Pages that the index describes as they were", "Run `chapterverse index` after each build."),
    "unindexed": ("Pages that the index leaves out", "Run `chapterverse index`, or pass --exclude if it should."),
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
        pages: number of checked pages.
        listings: kind of each page that the index leaves out because it only lists others, which is no fault.
    """

    pages: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)
    listings: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, file: str, says: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= _MOST_KEPT:
            self.examples.append(Finding(kind, file, says))

    def scrub(self, scrubbed: Callable[[str], str]) -> None:
        """Replace the texts of all findings by `scrubbed(text)`."""
        self.examples = [Finding(f.kind, scrubbed(f.file), scrubbed(f.says)) for f in self.examples]
        self.listings = {scrubbed(path): kind for path, kind in self.listings.items()}

    def of(self, kind: str) -> list[Finding]:
        return [finding for finding in self.examples if finding.kind == kind]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `check --json` prints: exact counts, and up to 1,000 examples of each kind."""
        findings = [
            {
                "kind": kind,
                "title": title,
                "advice": advice,
                "count": self.counts[kind],
                "examples": [{"file": finding.file, "says": finding.says} for finding in self.of(kind)],
            }
            for kind, (title, advice) in KINDS.items()
            if self.counts[kind]
        ]
        left_out = {"listings": dict(self.listings)} if self.listings else {}
        return {"pages": self.pages, "count": self.counts.total(), "findings": findings, **left_out}

    def lines(self) -> Iterator[str]:
        """Yield the report for people: each kind with its count, advice and some examples."""
        for kind, (title, advice) in KINDS.items():
            if count := self.counts[kind]:
                yield f"{title}: {count:,}. {advice}"
                yield from (f"  {finding.says}" for finding in self.of(kind)[:_SHOWN])
                if count > _SHOWN:
                    yield f"  … and {count - _SHOWN:,} more"
                yield ""
        yield from listing_lines(self.listings)
        summary = f"{self.counts.total():,} found" if self.counts else "nothing wrong"
        yield f"{self.pages:,} pages checked: {summary}."
