"""Structured output: schemas of the owner's, and data that fits them with the source of each value."""
