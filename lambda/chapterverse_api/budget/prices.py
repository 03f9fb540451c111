"""List prices of models. `CHAPTERVERSE_PRICES` replaces each of them.

A dollar for a million tokens is a microdollar for one, so the numbers below are both.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.generation.prompts import MAX_REASONING_TOKENS


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, in microdollars.

    Attributes:
        read: for a token that it is sent.
        written: for a token that it writes.
        search: for one question to a reranker, with up to 100 short texts, or for 1,000 characters to a guardrail.
    """

    read: float = 0.0
    written: float = 0.0
    search: float = 0.0

    def of(self, *, read: float = 0.0, written: float = 0.0, searches: int = 0) -> float:
        """Return what so many tokens and searches cost, in microdollars."""
        return read * self.read + written * self.written + searches * self.search


FREE = Price()

#: Of November 2026, from the providers' public lists.
_GENERATORS = {
    "command-a-03-2025": Price(2.5, 10),
    "command-r7b-12-2024": Price(0.0375, 0.15),
    "command-r-08-2024": Price(0.15, 0.6),
    "command-r-plus-08-2024": Price(2.5, 10),
    "gpt-4.1": Price(2, 8),
    "gpt-4.1-mini": Price(0.4, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.4),
    "gpt-4o": Price(2.5, 10),
    "gpt-4o-mini": Price(0.15, 0.6),
    "amazon.nova-micro-v1:0": Price(0.035, 0.14),
    "amazon.nova-lite-v1:0": Price(0.06, 0.24),
    "amazon.nova-pro-v1:0": Price(0.8, 3.2),
    "cohere.command-r-v1:0": Price(0.5, 1.5),
    "cohere.command-r-plus-v1:0": Price(3, 15),
}
_RERANKERS = {
    "rerank-v3.5": Price(search=2000),
    "rerank-english-v3.0": Price(search=2000),
    "rerank-multilingual-v3.0": Price(search=2000),
    "rerank-v4.0-fast": Price(search=2000),
    "rerank-v4.0-pro": Price(search=2500),
    # By the token; its 50 texts have at most 512 each.
    "rerank-v5.0-fast": Price(search=600),
    "rerank-v5.0-pro": Price(search=1500),
    "cohere.rerank-v3-5:0": Price(search=2000),
}
#: Of a guardrail's contextual grounding check, for a text unit of 1,000 characters: source, query and claim.
_GUARDRAIL = Price(search=100)

#: An unknown model is priced as the most expensive one: to stop too early costs less than to stop too late.
_UNKNOWN = Price(read=5, written=25, search=2500)
_UNKNOWN_EMBEDDER = Price(read=0.2)

#: No model costs as much, in US dollars for a million tokens.
_MAX_DOLLARS = 1e6

#: Prefixes of models on Bedrock: the regions that a request may go to.
_GEOGRAPHY = re.compile(r"(us|eu|apac|global)\.")

#: The model that answers in place of a provider's others when money gets short.
_CHEAPER = {"cohere": "cohere:command-r7b-12-2024"}


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the parts of one service.

    Attributes:
        economy: the price of the generator that answers when most of the budget is gone.
        thoughts: tokens that the generators may think on top of what they write, which are billed as well.
        checker: the price of the second vote on citations.
    """

    embedder: Price = FREE
    reranker: Price = FREE
    generator: Price = FREE
    economy: Price = FREE
    thoughts: int = 0
    checker: Price = FREE

    @classmethod
    def of(cls, settings: Settings, embedder: float | None = None) -> Prices:
        """Return the prices of the models that `settings` name.

        Args:
            embedder: the embedder's own listed price, in US dollars for a million tokens; 0 where none is known.

        Raises:
            ConfigurationError: `CHAPTERVERSE_PRICES` can't be read.
        """
        by_search = {"reranker"} | ({"checker"} if settings.checker.startswith("bedrock:") else set())
        overrides = _overrides(settings.prices, by_search)
        private, cheaper = _is_private(settings.openai_url), economy_generator_name(settings)
        generator = overrides.get("generator", _generator(settings.generator, private=private))
        economy = generator if cheaper == settings.generator else _generator(cheaper, private=private)
        return cls(
            overrides.get("embedder", _embedder(settings.embedder, embedder, private=private)),
            overrides.get("reranker", _reranker(settings.reranker)),
            generator,
            overrides.get("economy", economy),
            # Requests to Cohere turn thinking off.
            MAX_REASONING_TOKENS if "openai:" in f"{settings.generator} {cheaper}" else 0,
            overrides.get("checker", _checker(settings.checker, private=private)),
        )


def economy_generator_name(settings: Settings) -> str:
    """Return the generator that answers when most of the budget is gone; the usual one where none is known."""
    provider = settings.generator.partition(":")[0]
    return settings.economy_generator or _CHEAPER.get(provider, settings.generator)


def _generator(name: str, *, private: bool) -> Price:
    provider, _, model = name.partition(":")
    if provider == "extractive" or (provider == "openai" and private):
        return FREE
    if provider == "cohere" and not model:
        model = "command-a-03-2025"
    return _GENERATORS.get(_GEOGRAPHY.sub("", model), _UNKNOWN)


def _reranker(name: str) -> Price:
    provider, _, model = name.partition(":")
    if provider in {"none", "local"}:
        return FREE
    return _RERANKERS.get(_GEOGRAPHY.sub("", model) or "rerank-v3.5", _UNKNOWN)


def _checker(name: str, *, private: bool) -> Price:
    if name == "words":
        return FREE
    return _GUARDRAIL if name.startswith("bedrock:") else _generator(name, private=private)


def _embedder(name: str, listed: float | None, *, private: bool) -> Price:
    provider = name.partition(":")[0]
    if provider in {"none", "fastembed"} or (provider == "openai" and private):
        return FREE
    return Price(listed) if listed else _UNKNOWN_EMBEDDER


def _is_private(url: str) -> bool:
    """Return whether an address is of this machine or of a private network, where models cost nothing by the token."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


def _overrides(text: str, by_search: Collection[str]) -> dict[str, Price]:
    """Read `generator=0.15/0.60,reranker=2,embedder=0.1`; a search costs thousandths of what a thousand cost."""
    prices = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, amounts = part.partition("=")
        try:
            read, written = (float(n) for n in (amounts.split("/") if "/" in amounts else (amounts, amounts)))
        except ValueError:
            raise _unreadable() from None
        # Each number is checked alone: NaN is neither less nor more than another, so a minimum of two may hide it.
        if name.strip() not in {"embedder", "reranker", "generator", "economy", "checker"} or not all(
            0 <= price < _MAX_DOLLARS for price in (read, written)
        ):
            raise _unreadable()
        prices[name.strip()] = Price(search=1000 * read) if name.strip() in by_search else Price(read, written)
    return prices


def _unreadable() -> ConfigurationError:
    return ConfigurationError(
        "CHAPTERVERSE_PRICES can't be read: write it as generator=0.15/0.60,economy=0.04/0.15,embedder=0.1,reranker=2, "
        "in US dollars for a million tokens, read and written, or for a thousand searches."
    )
