"""The model and the check of citations for a build that enriches pages.

Implements `chapterverse.ext.enrichment.setting.Enricher` on a generator and on `check`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chapterverse.errors import ConfigurationError
from chapterverse.ext.enrichment.setting import Weigh
from chapterverse.settings import Settings
from chapterverse_api.answer.resources import Resources
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer
from chapterverse_api.draft.requests import ChatMessage, ModelRequest, Passage, ResponseSchema
from chapterverse_api.ext.budget.prices import Price, Prices, Use
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.verdict import judge, load_model

#: Seconds for one page. No reader waits for it.
_REQUEST_SECONDS = 180.0
#: The marks before and after a question, which a statement doesn't have.
_QUESTION_MARKS = re.compile(r"(?<![\s?？؟¿;])[\s?？؟¿;]++\Z|\A[\s¿]+")


def open_enricher(settings: Settings) -> ServiceEnricher:
    """Return the settings' generator as the enricher of a build. Opens no index. Raises as `Resources.open` does.

    Raises:
        ConfigurationError: the generator has no language model.
    """
    resources = Resources.open(settings)
    generator = resources.models.generator
    if not isinstance(generator, Writer):
        raise ConfigurationError(f"{generator.name} writes no data, so it can't enrich pages.")
    return ServiceEnricher(generator, Prices.from_settings(resources.settings).generator)


@dataclass(frozen=True, slots=True)
class ServiceEnricher:
    """Safe to share between threads, as generators are."""

    writer: Writer
    price: Price

    def write(self, instructions: str, text: str, schema: Mapping[str, Any], tokens: int) -> str:
        form = ResponseSchema("page_enrichment", dict(schema))
        request = ModelRequest(instructions, (ChatMessage("user", text),), tokens, Deadline(_REQUEST_SECONDS))
        return self.writer.write_data(request, form)

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        return self.price.cost(Use(input_tokens, output_tokens)) / 1_000_000

    def carries(self, question: str, path: Sequence[str], text: str, language: str, weigh: Weigh) -> bool:
        """Judge the words of a question as those of an answer that cites the section are judged."""
        passage = Passage("1", tuple(path), text, text)
        sentence = AnalyzedSentence(_QUESTION_MARKS.sub("", question), "prose", language, weigh(question))
        return judge(sentence, [AnalyzedPassage(passage, language)], [], load_model()).supports
