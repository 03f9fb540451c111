"""List prices of models. `CHAPTERVERSE_PRICES` replaces each of them.

A dollar for a million tokens is a microdollar for one, so the numbers below are both. They are those of November 2026:

    Cohere            https://cohere.com/pricing
    OpenAI            https://openai.com/api/pricing
    Amazon Bedrock    https://aws.amazon.com/bedrock/pricing
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse.text.hosts import is_private
from chapterverse_api.ext.models.prompts import MAX_REASONING_TOKENS


@dataclass(frozen=True, slots=True)
class Use:
    """What one request is billed for."""

    input_tokens: float = 0.0
    output_tokens: float = 0.0
    searches: int = 0


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, in microdollars.

    Attributes:
        input_token: the price of a token that the model is sent.
        output_token: the price of a token that it writes.
        search: the price of one question to a reranker, with up to 100 short texts, or of 1,000 characters to a
            guardrail.
    """

    input_token: float = 0.0
    output_token: float = 0.0
    search: float = 0.0

    def cost(self, use: Use) -> float:
        """Return what these tokens and searches cost, in microdollars."""
        return use.input_tokens * self.input_token + use.output_tokens * self.output_token + use.searches * self.search


FREE = Price()

#: By model; "cohere" is the one that this name alone stands for.
_GENERATORS = {
    "cohere": Price(2.5, 10),
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
    "cohere": Price(search=2000),
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
#: A guardrail's contextual grounding check of a text unit of 1,000 characters: source, query and claim.
_GUARDRAIL = Price(search=100)

#: An unknown model costs no less than any of the tables, because to stop too early costs less than to stop too late.
_UNKNOWN = Price(input_token=5, output_token=25, search=2500)
_UNKNOWN_EMBEDDER = Price(input_token=0.2)

#: Upper bound for `CHAPTERVERSE_PRICES`, in US dollars for a million tokens. It catches typing mistakes.
_MAX_PRICE = 1e6

#: The parts that it prices.
_PRICED = {"embedder", "reranker", "generator", "economy", "checker"}

#: Prefixes of models on Bedrock: the regions that a request may go to.
_GEOGRAPHY = re.compile(r"(us|eu|apac|global)\.")

#: What costs nothing by any model.
_FREE_PROVIDERS = {"none", "extractive", "local", "words", "fastembed"}

#: The model that answers in place of a provider's others at the economy level.
_CHEAPER = {"cohere": "cohere:command-r7b-12-2024"}


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the parts of one service.

    Attributes:
        economy: the price of the generator that answers when most of the budget is gone.
        thoughts: tokens that the generators may think in addition to their answers, which are billed as well.
        checker: the price of the second vote on citations.
    """

    embedder: Price = FREE
    reranker: Price = FREE
    generator: Price = FREE
    economy: Price = FREE
    thoughts: int = 0
    checker: Price = FREE

    @classmethod
    def from_settings(cls, settings: Settings, embedder_price: float | None = None) -> Prices:
        """Return the prices of the models that `settings` name.

        Args:
            embedder_price: the embedder's own listed price, in US dollars for a million tokens; 0 if it is unknown.

        Raises:
            ConfigurationError: `CHAPTERVERSE_PRICES` can't be read.
        """
        by_guardrail = settings.checker.startswith("bedrock:")
        overrides = _parse_overrides(settings.prices, {"reranker", "checker"} if by_guardrail else {"reranker"})
        price = partial(_price, private=is_private(urlsplit(settings.openai_url).hostname or ""))
        cheaper = economy_generator_name(settings)
        generator = overrides.get("generator", price(settings.generator, _GENERATORS))
        listed = {
            "embedder": price(settings.embedder, {}, Price(embedder_price) if embedder_price else _UNKNOWN_EMBEDDER),
            "reranker": price(settings.reranker, _RERANKERS),
            "generator": generator,
            "economy": generator if cheaper == settings.generator else price(cheaper, _GENERATORS),
            "checker": price(settings.checker, {}, _GUARDRAIL)
            if by_guardrail
            else price(settings.checker, _GENERATORS),
        }
        # Requests to Cohere turn thinking off.
        thinks = any(name.startswith("openai:") for name in (settings.generator, cheaper))
        return cls(**{**listed, **overrides}, thoughts=MAX_REASONING_TOKENS if thinks else 0)


def economy_generator_name(settings: Settings) -> str:
    """Return the generator that answers when most of the budget is gone; the usual one if no cheaper one is known."""
    generator: str = settings.generator
    return settings.economy_generator or _CHEAPER.get(generator.partition(":")[0], generator)


def _price(name: str, prices: Mapping[str, Price], unknown: Price = _UNKNOWN, *, private: bool) -> Price:
    """Return the price of the model that a setting names."""
    provider, _, model = name.partition(":")
    # Models of a private server cost nothing by the token.
    if provider in _FREE_PROVIDERS or (provider == "openai" and private):
        return FREE
    return prices.get(_GEOGRAPHY.sub("", model or provider), unknown)


def _parse_overrides(text: str, priced_by_search: Collection[str]) -> dict[str, Price]:
    """Return the prices in `generator=0.15/0.60,reranker=2,embedder=0.1`. Searches are priced per thousand."""
    prices = {}
    try:
        for part in filter(None, map(str.strip, text.split(","))):
            name, amounts = (part.strip() for part in part.split("="))
            first, second = map(float, amounts.split("/") if "/" in amounts else (amounts, amounts))
            # Each number is checked alone: NaN is neither less nor more than another, so a minimum may hide it.
            if name not in _PRICED or not all(0 <= price < _MAX_PRICE for price in (first, second)):
                raise ValueError
            prices[name] = Price(search=1000 * first) if name in priced_by_search else Price(first, second)
    except ValueError:
        raise ConfigurationError(
            "CHAPTERVERSE_PRICES can't be read: write it as generator=0.15/0.60,economy=0.04/0.15,embedder=0.1,"
            "reranker=2, in US dollars for a million tokens, read and written, or for a thousand searches."
        ) from None
    return prices
