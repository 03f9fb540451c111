"""Cohere's models that embed, rerank and write."""
