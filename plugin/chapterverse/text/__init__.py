"""Text processing for search: terms, tokens, plain text."""
