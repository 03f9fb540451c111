"""Postgres as a database, and the ledger on it."""
