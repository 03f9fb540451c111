"""The conversation before a question: its history, its signatures, and its records."""
