"""Kept conversations: threads with summaries, and readers' ratings, in the database that a setting names.

The text that a reader selected and the words that they say about themselves are never kept. State: stable.
"""
