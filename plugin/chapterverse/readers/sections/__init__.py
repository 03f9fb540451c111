"""Converts a tree of HTML elements to the sections of a page, each with blocks of Markdown."""
