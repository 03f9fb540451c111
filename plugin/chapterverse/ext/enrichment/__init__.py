"""Enrichment of pages by a language model: questions and keywords by which a search finds a section.

    page ─ cut ─> sections ─ model ─> questions, keywords ─ trial ─> the expansion of a chunk

It is off by default (`CHAPTERVERSE_ENRICHER`). The model is asked once for each changed page. Nothing that it writes is
shown: an expansion enters the word weights and the vector of its chunk, and no answer, prompt or citation.
"""
