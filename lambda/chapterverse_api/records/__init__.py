"""Databases that keep conversations. A setting names one, and nothing is kept without it.

What a reader selected on a page and what they tell of themselves is never kept.
"""
