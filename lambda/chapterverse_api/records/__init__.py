"""Databases that keep conversations. A setting names one, and nothing is kept without it.

The text that a reader selected and the words that they say about themselves are never kept.
"""
