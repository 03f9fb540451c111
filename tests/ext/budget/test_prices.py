from __future__ import annotations

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.ext.budget.prices import FREE, Price, Prices, Use, economy_generator_name
from chapterverse_api.ext.cohere import generator as cohere
from chapterverse_api.ext.cohere import reranker as cohere_reranker
from chapterverse_api.ext.models.prompts import MAX_REASONING_TOKENS


def prices(embedder_price: float | None = None, /, **settings: str) -> Prices:
    return Prices.from_settings(Settings().override(**settings), embedder_price)


def test_a_dollar_for_a_million_tokens_is_a_microdollar_for_one() -> None:
    assert Price(2.5, 10, search=2000).cost(Use(1000, 100, 2)) == 2500 + 1000 + 4000


def test_what_runs_here_costs_nothing() -> None:
    assert prices() == Prices()
    local = prices(embedder="fastembed:some/model", reranker="local")
    assert (local.embedder, local.reranker, local.generator, local.economy) == (FREE, FREE, FREE, FREE)


def test_a_provider_that_is_named_without_a_model_has_its_defaults_price() -> None:
    named = prices(0.1, generator="cohere", reranker="cohere")
    assert named.generator == Price(2.5, 10)
    assert named.reranker == Price(search=2000)
    assert prices(generator=f"cohere:{cohere.DEFAULT_GENERATOR}").generator == named.generator
    assert prices(reranker=f"cohere:{cohere_reranker.DEFAULT_RERANKER}").reranker == named.reranker


def test_an_embedder_has_the_price_that_it_states_and_else_costs_something() -> None:
    stated = prices(0.1, embedder="cohere").embedder
    assert stated == Price(0.1)
    for unknown in (prices(embedder="cohere:new"), prices(0, embedder="cohere:new")):
        assert unknown.embedder.input_token > stated.input_token
        assert unknown.embedder.output_token == 0


@pytest.mark.parametrize(
    ("settings", "price"),
    [
        ({}, FREE),
        ({"checker": "openai:bespoke-minicheck", "openai_url": "http://localhost:11434"}, FREE),
        ({"checker": "openai:gpt-4.1-mini"}, Price(0.4, 1.6)),
        ({"checker": "openai:unknown"}, Price(5, 25, search=2500)),
        ({"checker": "openai:unknown", "prices": "checker=1/2"}, Price(1, 2)),
        # By the thousand characters of source, question and claim.
        ({"checker": "bedrock:guardrail/abc"}, Price(search=100)),
        ({"checker": "bedrock:guardrail/abc", "prices": "checker=0.25"}, Price(search=250)),
    ],
)
def test_a_second_vote_is_priced_by_the_token_or_by_the_guardrails_unit(settings: dict[str, str], price: Price) -> None:
    assert prices(**settings).checker == price


@pytest.mark.parametrize(
    ("settings", "thoughts"),
    [
        ({"generator": "openai:x"}, MAX_REASONING_TOKENS),
        ({"generator": "cohere", "economy_generator": "openai:x"}, MAX_REASONING_TOKENS),
        ({"generator": "cohere"}, 0),
        ({}, 0),
    ],
)
def test_a_generator_that_may_think_is_billed_for_its_thoughts(settings: dict[str, str], thoughts: int) -> None:
    assert prices(**settings).thoughts == thoughts


# "acme" is a part that an owner has added.
@pytest.mark.parametrize("name", ["cohere:command-z", "openai:some-new-one", "bedrock:us.vendor.model-v1:0", "acme"])
def test_a_model_that_nobody_knows_is_counted_as_a_dear_one(name: str) -> None:
    unknown, dearest = prices(generator=name).generator, prices(generator="cohere").generator
    assert unknown.input_token > dearest.input_token
    assert unknown.output_token > dearest.output_token


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:11434", "http://[::1]:1", "http://10.1.2.3:8000", "http://localhost:1", "http://gpu.local"],
)
def test_a_server_of_ones_own_costs_nothing(url: str) -> None:
    own = prices(generator="openai:llama", embedder="openai:nomic", openai_url=url)
    assert (own.generator, own.economy, own.embedder) == (FREE, FREE, FREE)


@pytest.mark.parametrize(
    "url", ["https://api.openai.com", "https://8.8.8.8", "https://localhost.example.com", "openai", ""]
)
def test_a_server_of_others_does_not(url: str) -> None:
    assert prices(generator="openai:llama", openai_url=url).generator != FREE


def test_an_agreed_price_goes_before_the_list() -> None:
    agreed = prices(generator="cohere", reranker="cohere", prices="generator=1/2, reranker=0.5,economy=0,embedder=0.3")
    assert agreed.generator == Price(1, 2)
    assert agreed.reranker == Price(search=500)
    assert agreed.economy == FREE
    assert agreed.embedder == Price(0.3, 0.3)


def test_where_no_cheaper_model_is_known_the_usual_one_costs_what_it_costs() -> None:
    agreed = prices(generator="openai:x", openai_url="https://models.example.com", prices="generator=1/2")
    assert agreed.economy == agreed.generator == Price(1, 2)


@pytest.mark.parametrize("name", ["amazon.nova-lite-v1:0", "eu.amazon.nova-lite-v1:0"])
def test_a_model_on_bedrock_costs_the_same_through_every_region(name: str) -> None:
    assert prices(generator=f"bedrock:{name}").generator == Price(0.06, 0.24)


@pytest.mark.parametrize(
    "said",
    ["generator", "generator=", "generator=a/b", "model=1/2", "generator=-1/2", "generator=nan", "reranker=1e6"]
    # The second number too.
    + [f"generator=0.15/{n}" for n in ("nan", "inf", "1e300", "-1")],
)
def test_prices_that_can_not_be_read_are_told(said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"CHAPTERVERSE_PRICES can't be read: write it as generator="):
        prices(prices=said)


def test_the_cheaper_generator_is_one_of_the_same_provider() -> None:
    assert economy_generator_name(Settings(generator="cohere")) == "cohere:command-r7b-12-2024"
    assert economy_generator_name(Settings(generator="openai:x")) == "openai:x"
    assert economy_generator_name(Settings(generator="openai:x", economy_generator="openai:y")) == "openai:y"
    assert economy_generator_name(Settings()) == "extractive"
    assert prices(generator="cohere").economy.output_token < prices(generator="cohere").generator.output_token
