"""Answers without a model: quotes whole blocks of the documentation, and marks the part that answers."""
