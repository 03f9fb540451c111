"""Rerankers score a question and a text together. A setting chooses one by name."""
