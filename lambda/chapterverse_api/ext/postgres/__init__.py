"""Conversations on Postgres."""
