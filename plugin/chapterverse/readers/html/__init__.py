"""Parses HTML: tags, the tree of elements, the facts of a page, and the text that a reader sees."""
