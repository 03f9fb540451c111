from __future__ import annotations

import re

import pytest

from chapterverse_api.ext.evaluation.comparison import Bar, read_bar
from chapterverse_api.ext.evaluation.metrics import METRICS
from evaluation.made import row, run, unanswerable


@pytest.mark.parametrize(
    ("text", "bar"),
    [
        ("recall@5=0.8", Bar("recall@5", 0.8)),
        (" nDCG@10 = .5 ", Bar("ndcg@10", 0.5)),
        ("MRR=1", Bar("mrr", 1.0)),
        ("Page.Recall@3=0", Bar("page.recall@3", 0.0)),
        ("refused=9e-1", Bar("refused", 0.9)),
    ],
)
def test_a_bar_is_read(text: str, bar: Bar) -> None:
    assert read_bar(text) == bar


@pytest.mark.parametrize("name", METRICS)
def test_every_figure_may_have_one(name: str) -> None:
    assert read_bar(f"{name}=0.5") == Bar(name, 0.5)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recall@5", "A --min needs the form NAME=VALUE, such as recall@5=0.8."),
        ("recall@4=0.8", "There is no figure 'recall@4'; there are recall@3, recall@5,"),
        ("page.refused=1", "There is no figure 'page.refused'"),
        ("mrr=high", "The bar of mrr must be a number from 0 to 1."),
        ("mrr=", "The bar of mrr must be a number from 0 to 1."),
        ("mrr=80", "The bar of mrr must be a number from 0 to 1."),
        ("mrr=-0.1", "The bar of mrr must be a number from 0 to 1."),
        ("mrr=nan", "The bar of mrr must be a number from 0 to 1."),
        ("mrr=inf", "The bar of mrr must be a number from 0 to 1."),
    ],
)
def test_what_is_no_bar_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        read_bar(text)
    assert str(error.value).endswith(".")


def test_a_bar_is_met_by_as_much() -> None:
    # Ten times a tenth is not one in floats.
    figures = run(*(row(str(i), 1 if i < 4 else None) for i in range(5))).figures
    assert all(bar.is_met(figures) for bar in (Bar("recall@5", 0.8), Bar("mrr", 0.8)))
    assert Bar("recall@5", 0.3).is_met({"recall@5": 0.1 * 3})
    assert Bar("recall@5", 0.3).is_met({"recall@5": 0.3 - 1e-12})
    assert not Bar("recall@5", 0.3).is_met({"recall@5": 0.2999})


def test_a_bar_that_is_missed_is_one_sentence_each() -> None:
    figures = run(row("a", 1), row("b", None), unanswerable("c", refused=False)).figures
    bars = Bar("mrr", 0.9), Bar("hit@1", 0.5), Bar("refused", 1)
    assert [bar.in_words(figures) for bar in bars if not bar.is_met(figures)] == [
        "mrr is 0.5, below its bar of 0.9.",
        "refused is 0, below its bar of 1.",
    ]


def test_a_bar_that_nothing_is_measured_by_is_missed() -> None:
    figures = run(row("a", 1)).figures
    assert not Bar("refused", 0).is_met(figures)
    assert Bar("refused", 0).in_words(figures) == "refused has a bar of 0, and no question to measure it by."


@pytest.mark.parametrize(
    "text",
    ["citation_validity=1", "refused@unanswerable=.8", "Answered@Answerable=0.92", "caught@foreign=0.99", "nuggets=0"],
)
def test_figures_of_answers_have_bars_too(text: str) -> None:
    bar = read_bar(text)
    assert bar.of_answers
    assert bar.is_met({bar.name: 1.0})
    assert bar.in_words({}) == f"{bar.name} has a bar of {bar.least:g}, and no question to measure it by."


def test_figures_of_a_search_need_no_answers() -> None:
    assert not any(read_bar(f"{name}=1").of_answers for name in ("recall@5", "refused", "answered", "mrr"))
