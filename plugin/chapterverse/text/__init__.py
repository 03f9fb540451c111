"""Text for search: terms, tokens, plain text."""
